//===- Attention.cpp - Grouped-query attention over the cache -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decode: items are (KV head, chunk of keys at an absolute position). A lane is
// a key while scores are taken, a dim while values are summed, so no sum over
// dims or keys crosses lanes but the sum of a chunk's weights. All query heads
// of the group share each K and V line. Of a quantized cache the item of the
// token's own chunk, which one thread alone has, first writes the token to it.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "sparkc_abi.h"
#include <limits>

using namespace mlir;
using namespace sparkc;

using arith::CmpIPredicate;

/// Query heads whose accumulators stay in registers together.
static constexpr int64_t kHeadBlock = 8;
/// Accumulators that may be live at once.
static constexpr int64_t kAccumulators = 16;

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

namespace {

/// One item: chunk `c` for the query heads [head0, head0 + heads) of KV head
/// `kvHead`.
struct Item {
  Emitter &e;
  const AttentionShape &shape;
  CacheAddress &cache;
  Value kvHead, chunkSlot, keyLo, keyHi;
  int64_t heads;
  /// First query head's q, the room for its scores, its record.
  Value query, scores, record;

  int64_t dim() const { return cache.dim; }
  int64_t recordBytes() const { return 4 * step::partialFloats(dim()); }
  Value scoresOf(int64_t g, Value key) {
    return e.at(scores, e.add(e.c(g * shape.chunk * 4), e.mulC(key, 4)));
  }

  SmallVector<Value> emitDots(const KeyGroup &group, Value from, int64_t dims,
                              int64_t chains, ValueRange sums);
  SmallVector<Value> emitScores();
  SmallVector<Value> emitWeights(ValueRange maxima);
  void emitValues();
  void emit();
};

} // namespace

/// Adds to the sums of each head's chains what `dims` dims of a block of keys
/// give; `from`: the first head's elements of these dims.
SmallVector<Value> Item::emitDots(const KeyGroup &group, Value from,
                                  int64_t dims, int64_t chains,
                                  ValueRange sums) {
  return e.reduceUnrolled(
      dims / chains, std::max<int64_t>(1, 4 / chains), sums,
      [&](Value i, ValueRange in) {
        SmallVector<Value> next(in);
        for (int64_t ch = 0; ch < chains; ++ch) {
          Value d = e.addC(e.mulC(i, chains), ch);
          Value k = cache.loadKeys(group, d);
          for (int64_t g = 0; g < heads; ++g) {
            Value q = e.load(
                e.f32(), e.at(from, e.addC(e.mulC(d, 4), g * dim() * 4)), true);
            Value &sum = next[g * chains + ch];
            sum = e.fma(k, e.broadcast(q), sum);
          }
        }
        return next;
      });
}

/// Masked scores of the chunk to `scores`; returns their maxima (scalars).
SmallVector<Value> Item::emitScores() {
  // One chain of products a head where there are enough heads, else more.
  int64_t chains = std::max<int64_t>(1, 4 / heads);
  while (dim() % chains)
    chains /= 2;
  Value minusInf =
      e.fconst(e.v16f32(), -std::numeric_limits<double>::infinity());
  Value blockLo = e.divC(keyLo, kLanes);
  Value blockHi = e.divC(e.addC(keyHi, kLanes - 1), kLanes);
  Value keys = e.at(e.kv, cache.key(kvHead, chunkSlot));
  VectorType ids = e.vec(e.i64());
  SmallVector<int64_t> lanes(kLanes);
  for (int64_t i = 0; i < kLanes; ++i)
    lanes[i] = i;
  Value lane = arith::ConstantOp::create(
      e.b, e.loc, ids, DenseElementsAttr::get(ids, ArrayRef<int64_t>(lanes)));

  SmallVector<Value> maxima = e.reduce(
      blockLo, blockHi, 1, SmallVector<Value>(heads, minusInf),
      [&](Value block, ValueRange carried) {
        Value lines = e.at(keys, e.mulC(block, kLanes * cache.keyBytes));
        SmallVector<Value> sums(heads * chains, e.zero16());
        sums = cache.reduceGroups(
            sums, [&](Value group, int64_t dims, ValueRange in) {
              return emitDots(cache.keyGroup(lines, group),
                              e.at(query, e.mulC(group, cache.groupDims * 4)),
                              dims, chains, in);
            });
        Value id = arith::AddIOp::create(
            e.b, e.loc, lane, e.broadcast(e.mulC(block, kLanes)));
        Value seen = arith::AndIOp::create(
            e.b, e.loc, e.cmp(CmpIPredicate::uge, id, e.broadcast(keyLo)),
            e.cmp(CmpIPredicate::ult, id, e.broadcast(keyHi)));
        SmallVector<Value> next;
        for (int64_t g = 0; g < heads; ++g) {
          Value sum = sums[g * chains];
          for (int64_t ch = 1; ch < chains; ++ch)
            sum = e.fadd(sum, sums[g * chains + ch]);
          Value score = e.select(
              seen, e.fmul(sum, e.fconst(e.v16f32(), shape.scale)), minusInf);
          e.store(score, scoresOf(g, e.mulC(block, kLanes)));
          next.push_back(buildMax(e.b, e.loc, score, carried[g]));
        }
        return next;
      });
  for (Value &m : maxima)
    m = buildHorizontalMax16(e.b, e.loc, m);
  return maxima;
}

/// exp(score - maximum) over `scores`; returns the sums (scalars).
SmallVector<Value> Item::emitWeights(ValueRange maxima) {
  SmallVector<Value> sums = e.reduce(
      e.divC(keyLo, kLanes), e.divC(e.addC(keyHi, kLanes - 1), kLanes), 1,
      SmallVector<Value>(heads, e.zero16()),
      [&](Value block, ValueRange carried) {
        SmallVector<Value> next;
        for (int64_t g = 0; g < heads; ++g) {
          Value address = scoresOf(g, e.mulC(block, kLanes));
          Value p = buildExp(e.b, e.loc,
                             e.fsub(e.load(e.v16f32(), address),
                                    e.broadcast(maxima[g])));
          e.store(p, address);
          next.push_back(e.fadd(carried[g], p));
        }
        return next;
      });
  for (Value &s : sums)
    s = buildHorizontalSum16(e.b, e.loc, s);
  return sums;
}

/// Weighted sums of the values to the records.
void Item::emitValues() {
  int64_t vectors = cache.paddedDim / kLanes;
  int64_t width = std::clamp<int64_t>(kAccumulators / heads, 1, vectors);
  Value values = e.at(e.kv, cache.value(kvHead, chunkSlot));
  auto strip = [&](Value firstVector, int64_t count) {
    SmallVector<Value> sums = e.reduce(
        keyLo, keyHi, 1, SmallVector<Value>(heads * count, e.zero16()),
        [&](Value key, ValueRange in) {
          SmallVector<Value> next(in);
          Value row = e.at(values, e.mulC(key, cache.valueBytes));
          SmallVector<Value> p;
          for (int64_t g = 0; g < heads; ++g)
            p.push_back(e.broadcast(e.load(e.f32(), scoresOf(g, key))));
          for (int64_t i = 0; i < count; ++i) {
            Value v = cache.loadValues(row, e.addC(firstVector, i));
            for (int64_t g = 0; g < heads; ++g)
              next[g * count + i] = e.fma(p[g], v, next[g * count + i]);
          }
          return next;
        });
    for (int64_t g = 0; g < heads; ++g)
      for (int64_t i = 0; i < count; ++i)
        e.store(sums[g * count + i],
                e.at(record, e.add(e.mulC(firstVector, kLanes * 4),
                                   e.c(g * recordBytes() + i * kLanes * 4))),
                true);
  };
  int64_t whole = vectors / width * width;
  e.loop(e.c(0), e.c(whole), width, [&](Value v) { strip(v, width); });
  if (whole < vectors)
    strip(e.c(whole), vectors - whole);
}

void Item::emit() {
  SmallVector<Value> maxima = emitScores();
  SmallVector<Value> sums = emitWeights(maxima);
  emitValues();
  for (int64_t g = 0; g < heads; ++g) {
    Value tail = e.at(record, g * recordBytes() + cache.paddedDim * 4);
    e.store(maxima[g], tail, true);
    e.store(sums[g], e.at(tail, 4), true);
  }
}

void sparkc::emitAttention(Emitter &e, const AttentionShape &shape, Value query,
                           const TokenKV &token, Value partials) {
  CacheAddress cache(e, shape.cache);
  int64_t group = shape.heads / cache.heads;
  Value scores = e.stack(std::min(group, kHeadBlock) * shape.chunk * 4);
  auto [firstChunk, chunks] = emitChunkRange(e, shape.window, shape.chunk);
  Value seen = e.addC(e.pos(), 1);
  Value firstKey =
      shape.window
          ? e.sub(e.umax(seen, e.c(shape.window)), e.c(shape.window))
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
      e.ifThen(e.cmp(CmpIPredicate::eq, e.addC(relative, 1), chunks), [&] {
        Value at = e.mulC(kvHead, cache.dim * 4);
        emitCacheWrite(cache, kvHead, cache.slotOf(e.pos()),
                       {e.at(token.key, at), e.at(token.value, at)});
      });
    for (int64_t g = 0; g < group; g += kHeadBlock) {
      Value head = e.addC(e.mulC(kvHead, group), g);
      Value record = e.at(
          partials, e.mulC(e.add(e.mulC(relative, shape.heads), head),
                           recordBytes));
      Item item{e,
                shape,
                cache,
                kvHead,
                cache.slotOf(start),
                keyLo,
                keyHi,
                std::min(group - g, kHeadBlock),
                e.at(query, e.mulC(head, cache.dim * 4)),
                scores,
                record};
      item.emit();
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
    SmallVector<Value> folded = e.reduce(
        e.c(0), chunks, 1, init, [&](Value c, ValueRange in) {
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
