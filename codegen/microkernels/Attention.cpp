//===- Attention.cpp - Grouped-query attention over the cache -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decode: items are (KV head, chunk of keys at an absolute position), each with
// all query heads of the group. Their records are folded later. Of a quantized
// cache the item of the token's own chunk, which one thread alone has, first
// writes the token to it.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/AttentionRows.h"
#include "codegen/microkernels/Math.h"
#include <limits>

using namespace mlir;
using namespace sparkc;

std::pair<Value, Value> sparkc::emitChunkRange(Emitter &e, int64_t window,
                                               int64_t chunk) {
  Value pos = e.pos();
  Value last = e.divC(pos, chunk);
  if (!window)
    return {e.c(0), e.addC(last, 1)};
  Value seen = e.addC(pos, 1);
  Value firstKey = e.sub(e.umax(seen, e.c(window)), e.c(window));
  Value first = e.divC(firstKey, chunk);
  return {first, e.addC(e.sub(last, first), 1)};
}

void sparkc::emitAttention(Emitter &e, const AttentionShape &shape, Value query,
                           const TokenKV &token, Value partials) {
  CacheAddress cache(e, shape.cache);
  int64_t group = shape.heads / cache.heads;
  auto [firstChunk, chunks] = emitChunkRange(e, shape.window, shape.chunk);
  Value seen = e.addC(e.pos(), 1);
  Value firstKey =
      shape.window ? e.sub(e.umax(seen, e.c(shape.window)), e.c(shape.window))
                   : e.c(0);
  auto [lo, hi] = e.share(e.mulC(chunks, cache.heads));
  int64_t recordBytes = 4 * step::partialFloats(cache.dim);

  e.loop(lo, hi, 1, [&](Value index) {
    Value kvHead = e.udiv(index, chunks);
    Value relative = e.sub(index, e.mul(kvHead, chunks));
    Value start = e.mulC(e.add(firstChunk, relative), shape.chunk);
    Value keyLo = e.sub(e.umax(firstKey, start), start);
    Value keyHi = e.umin(e.sub(seen, start), e.c(shape.chunk));
    if (token.key)
      e.ifThen(e.cmp(arith::CmpIPredicate::eq, e.addC(relative, 1), chunks), [&] {
        Value at = e.mulC(kvHead, cache.dim * 4);
        emitCacheWrite(cache, kvHead, cache.slotOf(e.pos()),
                       {e.at(token.key, at), e.at(token.value, at)});
      });
    for (int64_t g = 0; g < group; g += kRowBlock) {
      int64_t heads = std::min(group - g, kRowBlock);
      Value head = e.addC(e.mulC(kvHead, group), g);
      Value records =
          e.at(partials,
               e.mulC(e.add(e.mulC(relative, shape.heads), head), recordBytes));
      AttentionRows rows(e, shape, cache, heads, 1);
      rows.kvHead = kvHead;
      rows.chunkSlot = cache.slotOf(start);
      rows.ranges.push_back({keyLo, keyHi});
      Value first = e.at(query, e.mulC(head, cache.dim * 4));
      for (int64_t h = 0; h < heads; ++h)
        rows.queries.push_back(e.at(first, h * cache.dim * 4));
      SmallVector<Value> maxima, sums;
      rows.emitWeights(maxima, sums);
      rows.emitValues([&](int64_t h, Value vector, Value o) {
        e.store(o,
                e.at(records, e.add(e.c(h * recordBytes), e.mulC(vector, 64))),
                true);
      });
      for (int64_t h = 0; h < heads; ++h) {
        Value tail = e.at(records, h * recordBytes + cache.paddedDim * 4);
        e.store(maxima[h], tail, true);
        e.store(sums[h], e.at(tail, 4), true);
      }
    }
  });
}

void sparkc::emitFold(Emitter &e, Value partials, int64_t heads,
                      int64_t headDim, int64_t window, int64_t chunk,
                      Value out) {
  Value chunks = emitChunkRange(e, window, chunk).second;
  int64_t vectors = ceilDiv(headDim, kLanes);
  int64_t recordBytes = 4 * step::partialFloats(headDim);
  // Heads in order; see emitHeadGate on the last vector of a head.
  e.loop(e.c(0), e.c(heads), 1, [&](Value h) {
    Value records = e.at(partials, e.mulC(h, recordBytes));
    SmallVector<Value> init{
        e.fconst(e.f32(), -std::numeric_limits<double>::infinity()),
        e.fconst(e.f32(), 0)};
    init.append(vectors, e.zero16());
    SmallVector<Value> folded =
        e.reduce(e.c(0), chunks, 1, init, [&](Value c, ValueRange in) {
          Value record = e.at(records, e.mulC(c, heads * recordBytes));
          Value tail = e.at(record, alignTo16(headDim) * 4);
          Value m = e.load(e.f32(), tail, true);
          Value s = e.load(e.f32(), e.at(tail, 4), true);
          Value max = buildMax(e.b, e.loc, in[0], m);
          Value a = buildExp(e.b, e.loc, e.fsub(in[0], max));
          Value b = buildExp(e.b, e.loc, e.fsub(m, max));
          SmallVector<Value> next{max, e.fma(s, b, e.fmul(in[1], a))};
          Value va = e.broadcast(a), vb = e.broadcast(b);
          for (int64_t i = 0; i < vectors; ++i) {
            Value o = e.load(e.v16f32(), e.at(record, i * 64), true);
            next.push_back(e.fma(o, vb, e.fmul(in[2 + i], va)));
          }
          return next;
        });
    Value sum = e.broadcast(folded[1]);
    Value base = e.mulC(h, headDim * 4);
    for (int64_t i = 0; i < vectors; ++i)
      e.store(e.fdiv(folded[2 + i], sum), e.at(out, e.addC(base, i * 64)));
  });
}
