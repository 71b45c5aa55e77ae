//===- BlockAttention.cpp - Attention of a block of tokens ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prefill: items are (KV head, a few tokens), which threads take in turn; later
// tokens see more keys, so that every other head is taken from its end. An item
// walks the chunks that its tokens see, in order, and folds each into
// running maxima, sums and outputs with the operations of emitFold; so a
// token's output has decode's bits, and nothing grows with the square of the
// prompt.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/AttentionRows.h"
#include "codegen/microkernels/Math.h"
#include <limits>

using namespace mlir;
using namespace sparkc;

using arith::CmpIPredicate;

namespace {

class BlockItem {
public:
  BlockItem(Emitter &e, const AttentionShape &shape, CacheAddress &cache,
            int64_t heads, int64_t tokens)
      : e(e), shape(shape), cache(cache), rows(e, shape, cache, heads, tokens),
        heads(heads), tokens(tokens), outRow(cache.paddedDim * 4),
        running(e.stack(rows.rows() * 64)),
        outputs(e.stack(rows.rows() * outRow)) {}

  /// `head`: the first query head; `first`: the first token.
  void emit(Value kvHead, Value head, Value first, Value query,
            int64_t queryRow, Value out, int64_t outputRow);

private:
  Value maximum(int64_t row) { return e.at(running, 64 * row); }
  Value sum(int64_t row) { return e.at(running, 64 * row + 4); }
  Value output(int64_t row, Value vector) {
    return e.at(outputs, e.add(e.c(row * outRow), e.mulC(vector, 64)));
  }
  void clear();
  void chunk(Value index);
  void finish(int64_t row, Value out);

  Emitter &e;
  const AttentionShape &shape;
  CacheAddress &cache;
  AttentionRows rows;
  int64_t heads, tokens, outRow;
  Value running, outputs;
  /// Of each token: the first key it sees, and one past the last.
  SmallVector<Value> firstKey, seen;
};

} // namespace

void BlockItem::clear() {
  for (int64_t row = 0; row < rows.rows(); ++row) {
    e.store(e.fconst(e.f32(), -std::numeric_limits<double>::infinity()),
            maximum(row));
    e.store(e.fconst(e.f32(), 0), sum(row));
  }
  e.loop(e.c(0), e.c(rows.rows() * outRow), 64,
         [&](Value i) { e.store(e.zero16(), e.at(outputs, i)); });
}

void BlockItem::chunk(Value index) {
  Value start = e.mulC(index, shape.chunk);
  rows.chunkSlot = cache.slotOf(start);
  rows.ranges.clear();
  auto inChunk = [&](Value key) {
    return e.umin(e.sub(e.umax(key, start), start), e.c(shape.chunk));
  };
  for (int64_t t = 0; t < tokens; ++t)
    rows.ranges.push_back({inChunk(firstKey[t]), inChunk(seen[t])});
  SmallVector<Value> maxima, sums, oldScale, newScale, any;
  rows.emitWeights(maxima, sums);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    auto [lo, hi] = rows.ranges[row / heads];
    any.push_back(e.cmp(CmpIPredicate::ult, lo, hi));
    Value m = e.load(e.f32(), maximum(row)), s = e.load(e.f32(), sum(row));
    Value max = buildMax(e.b, e.loc, m, maxima[row]);
    Value a = buildExp(e.b, e.loc, e.fsub(m, max));
    Value b = buildExp(e.b, e.loc, e.fsub(maxima[row], max));
    Value folded = e.fma(sums[row], b, e.fmul(s, a));
    e.store(e.select(any[row], max, m), maximum(row));
    e.store(e.select(any[row], folded, s), sum(row));
    oldScale.push_back(e.broadcast(a));
    newScale.push_back(e.broadcast(b));
  }
  rows.emitValues([&](int64_t row, Value vector, Value o) {
    Value address = output(row, vector);
    Value old = e.load(e.v16f32(), address);
    Value folded = e.fma(o, newScale[row], e.fmul(old, oldScale[row]));
    e.store(e.select(any[row], folded, old), address);
  });
}

void BlockItem::finish(int64_t row, Value out) {
  Value total = e.broadcast(e.load(e.f32(), sum(row)));
  auto store = [&](Value vector, int64_t count) {
    Value o = e.fdiv(e.load(e.v16f32(), output(row, vector)), total);
    e.storeFirst(o, e.at(out, e.mulC(vector, 64)), count, true);
  };
  int64_t whole = cache.dim / kLanes;
  e.loop(e.c(0), e.c(whole), 1, [&](Value v) { store(v, kLanes); });
  if (cache.dim % kLanes)
    store(e.c(whole), cache.dim % kLanes);
}

void BlockItem::emit(Value kvHead, Value head, Value first, Value query,
                     int64_t queryRow, Value out, int64_t outputRow) {
  rows.kvHead = kvHead;
  rows.queries.clear();
  firstKey.clear();
  seen.clear();
  Value last = e.addC(e.tokenCount(), -1), pos = e.pos();
  SmallVector<Value> results;
  for (int64_t t = 0; t < tokens; ++t) {
    // Past the block's end: the last token again.
    Value token = e.umin(e.addC(first, t), last);
    seen.push_back(e.addC(e.add(pos, token), 1));
    firstKey.push_back(shape.window ? e.sub(e.umax(seen[t], e.c(shape.window)),
                                            e.c(shape.window))
                                    : e.c(0));
    Value offset = e.mulC(head, cache.dim * 4);
    for (int64_t h = 0; h < heads; ++h) {
      Value at = e.addC(offset, h * cache.dim * 4);
      rows.queries.push_back(e.at(query, e.add(e.mulC(token, queryRow), at)));
      results.push_back(e.at(out, e.add(e.mulC(token, outputRow), at)));
    }
  }
  clear();
  e.loop(e.divC(firstKey.front(), shape.chunk),
         e.addC(e.divC(e.addC(seen.back(), -1), shape.chunk), 1), 1,
         [&](Value index) { chunk(index); });
  for (int64_t row = 0; row < rows.rows(); ++row)
    finish(row, results[row]);
}

void sparkc::emitBlockAttention(Emitter &e, const AttentionShape &shape,
                                Value query, int64_t queryRow, Value out,
                                int64_t outRow) {
  CacheAddress cache(e, shape.cache);
  int64_t group = shape.heads / cache.heads;
  for (int64_t g = 0; g < group; g += kRowBlock) {
    int64_t heads = std::min(group - g, kRowBlock);
    int64_t tokens = AttentionRows::tokensAtOnce(heads, cache.dim);
    BlockItem item(e, shape, cache, heads, tokens);
    Value spans = e.divC(e.addC(e.tokenCount(), tokens - 1), tokens);
    Value items = e.mulC(spans, cache.heads);
    Value own = e.udiv(e.add(e.sub(e.umax(items, e.tid), e.tid),
                             e.addC(e.n, -1)), e.n);
    e.loop(e.c(0), own, 1, [&](Value turn) {
      Value index = e.add(e.mul(turn, e.n), e.tid);
      Value kvHead = e.udiv(index, spans);
      Value span = e.sub(index, e.mul(kvHead, spans));
      Value mirrored = e.sub(e.addC(spans, -1), span);
      span = e.select(e.cmp(CmpIPredicate::eq, e.remC(kvHead, 2), e.c(1)),
                      mirrored, span);
      item.emit(kvHead, e.addC(e.mulC(kvHead, group), g), e.mulC(span, tokens),
                query, queryRow, out, outRow);
    });
  }
}
