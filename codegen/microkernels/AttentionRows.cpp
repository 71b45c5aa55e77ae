//===- AttentionRows.cpp - A few queries over a chunk of keys -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane is a key while scores are taken, a dim while values are summed, so no
// sum over dims or keys crosses lanes but the sum of a chunk's weights. All
// rows share each K and V line.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/AttentionRows.h"
#include "codegen/microkernels/Math.h"
#include "codegen/weights/PackedLayout.h"
#include <limits>

using namespace mlir;
using namespace sparkc;

using arith::CmpIPredicate;

/// Accumulators that may be live at once.
static constexpr int64_t kAccumulators = 16;

AttentionRows::AttentionRows(Emitter &e, const AttentionShape &shape,
                             CacheAddress &cache, int64_t heads, int64_t tokens)
    : e(e), shape(shape), cache(cache), heads(heads), tokens(tokens),
      scores(e.stack(heads * tokens * shape.chunk * 4)) {}

int64_t AttentionRows::chains(int64_t heads, int64_t dim) {
  // One chain of products a head where there are enough heads, else more.
  int64_t chains = std::max<int64_t>(1, 4 / heads);
  while (dim % chains)
    chains /= 2;
  return chains;
}

int64_t AttentionRows::tokensAtOnce(int64_t heads, int64_t dim) {
  return std::max<int64_t>(1, kRowBlock / (heads * chains(heads, dim)));
}

Value AttentionRows::scoresOf(int64_t row, Value key) {
  return e.at(scores, e.add(e.c(row * shape.chunk * 4), e.mulC(key, 4)));
}

// Blocks of 16 keys that any row sees.
Value AttentionRows::firstBlock() { return e.divC(ranges.front().lo, kLanes); }
Value AttentionRows::lastBlock() {
  return e.divC(e.addC(ranges.back().hi, kLanes - 1), kLanes);
}

/// Adds to the sums of each row's chains what `dims` dims from `firstDim` on
/// give; prefetches the rows of values at `upcoming`, if any, meanwhile.
SmallVector<Value> AttentionRows::emitDots(const KeyGroup &group,
                                           Value firstDim, int64_t dims,
                                           ValueRange sums, Value upcoming) {
  int64_t chains = this->chains(heads, cache.dim);
  Value offset = e.mulC(firstDim, 4);
  return e.reduceUnrolled(
      dims / chains, std::max<int64_t>(1, 4 / chains), sums,
      [&](Value i, ValueRange in) {
        SmallVector<Value> next(in);
        for (int64_t ch = 0; ch < chains; ++ch) {
          Value d = e.addC(e.mulC(i, chains), ch);
          Value k = cache.loadKeys(group, d);
          Value at = e.add(offset, e.mulC(d, 4));
          if (upcoming) {
            // With each dim its part of their lines.
            int64_t part = std::min(kLineBytes,
                                    kLanes * cache.valueBytes / cache.dim);
            e.prefetch(e.at(upcoming, e.mulC(e.add(firstDim, d), part)),
                       Emitter::Locality::All);
          }
          for (int64_t row = 0; row < rows(); ++row) {
            Value q = e.load(e.f32(), e.at(queries[row], at), true);
            Value &sum = next[row * chains + ch];
            sum = e.fma(k, e.broadcast(q), sum);
          }
        }
        return next;
      });
}

/// Masked scores of the chunk to `scores`; returns their maxima (scalars).
SmallVector<Value> AttentionRows::emitScores() {
  int64_t chains = this->chains(heads, cache.dim);
  Value minusInf =
      e.fconst(e.v16f32(), -std::numeric_limits<double>::infinity());
  Value keys = e.at(e.kv, cache.key(kvHead, chunkSlot));
  VectorType ids = e.vec(e.i64());
  SmallVector<int64_t> lanes(kLanes);
  for (int64_t i = 0; i < kLanes; ++i)
    lanes[i] = i;
  Value lane = arith::ConstantOp::create(
      e.b, e.loc, ids, DenseElementsAttr::get(ids, ArrayRef<int64_t>(lanes)));

  SmallVector<Value> maxima = e.reduce(
      firstBlock(), lastBlock(), 1, SmallVector<Value>(rows(), minusInf),
      [&](Value block, ValueRange carried) {
        Value lines = e.at(keys, e.mulC(block, kLanes * cache.keyBytes));
        // Strips of values are read with gaps, which no hardware prefetcher
        // fills; scores leave memory idle meanwhile.
        Value upcoming;
        if (tokens == 1)
          upcoming = e.at(e.at(e.kv, cache.value(kvHead, chunkSlot)),
                          e.mulC(block, kLanes * cache.valueBytes));
        SmallVector<Value> sums(rows() * chains, e.zero16());
        sums = cache.reduceGroups(
            sums, [&](Value group, int64_t dims, ValueRange in) {
              return emitDots(cache.keyGroup(lines, group),
                              e.mulC(group, cache.groupDims), dims, in,
                              upcoming);
            });
        Value id = arith::AddIOp::create(e.b, e.loc, lane,
                                         e.broadcast(e.mulC(block, kLanes)));
        SmallVector<Value> seen;
        for (const Range &range : ranges)
          seen.push_back(arith::AndIOp::create(
              e.b, e.loc, e.cmp(CmpIPredicate::uge, id, e.broadcast(range.lo)),
              e.cmp(CmpIPredicate::ult, id, e.broadcast(range.hi))));
        SmallVector<Value> next;
        for (int64_t row = 0; row < rows(); ++row) {
          Value sum = sums[row * chains];
          for (int64_t ch = 1; ch < chains; ++ch)
            sum = e.fadd(sum, sums[row * chains + ch]);
          Value score = e.select(seen[row / heads],
                                 e.fmul(sum, e.fconst(e.v16f32(), shape.scale)),
                                 minusInf);
          e.store(score, scoresOf(row, e.mulC(block, kLanes)));
          next.push_back(buildMax(e.b, e.loc, score, carried[row]));
        }
        return next;
      });
  for (Value &m : maxima)
    m = buildHorizontalMax16(e.b, e.loc, m);
  return maxima;
}

void AttentionRows::emitWeights(SmallVectorImpl<Value> &maxima,
                                SmallVectorImpl<Value> &sums) {
  maxima = emitScores();
  SmallVector<Value> offsets(maxima.begin(), maxima.end());
  // Without a key there is no maximum to subtract.
  if (tokens > 1)
    for (int64_t row = 0; row < rows(); ++row)
      offsets[row] =
          e.select(e.cmp(CmpIPredicate::ult, rangeOf(row).lo, rangeOf(row).hi),
                   maxima[row], e.fconst(e.f32(), 0));
  sums = e.reduce(firstBlock(), lastBlock(), 1,
                  SmallVector<Value>(rows(), e.zero16()),
                  [&](Value block, ValueRange carried) {
                    SmallVector<Value> next;
                    for (int64_t row = 0; row < rows(); ++row) {
                      Value address = scoresOf(row, e.mulC(block, kLanes));
                      Value p = buildExp(e.b, e.loc,
                                         e.fsub(e.load(e.v16f32(), address),
                                                e.broadcast(offsets[row])));
                      e.store(p, address);
                      next.push_back(e.fadd(carried[row], p));
                    }
                    return next;
                  });
  for (Value &s : sums)
    s = buildHorizontalSum16(e.b, e.loc, s);
}

void AttentionRows::emitValues(
    function_ref<void(int64_t row, Value vector, Value sums)> use) {
  int64_t vectors = cache.paddedDim / kLanes;
  int64_t width = std::clamp<int64_t>(kAccumulators / rows(), 1, vectors);
  Value values = e.at(e.kv, cache.value(kvHead, chunkSlot));
  // Keys that all rows see lie between those that only some do.
  Value begin = ranges.front().lo, end = ranges.back().hi;
  Value allLo = ranges.back().lo, allHi = ranges.front().hi;
  if (tokens > 1)
    allHi = e.umax(allLo, allHi);

  auto strip = [&](Value firstVector, int64_t count) {
    auto sum = [&](Value lo, Value hi, ValueRange init, bool masked) {
      return e.reduce(lo, hi, 1, init, [&](Value key, ValueRange in) {
        SmallVector<Value> next(in), p, seen;
        Value at = e.at(values, e.mulC(key, cache.valueBytes));
        for (int64_t row = 0; row < rows(); ++row)
          p.push_back(e.broadcast(e.load(e.f32(), scoresOf(row, key))));
        for (const Range &range : ranges)
          if (masked)
            seen.push_back(arith::AndIOp::create(
                e.b, e.loc, e.cmp(CmpIPredicate::uge, key, range.lo),
                e.cmp(CmpIPredicate::ult, key, range.hi)));
        for (int64_t i = 0; i < count; ++i) {
          Value v = cache.loadValues(at, e.addC(firstVector, i));
          for (int64_t row = 0; row < rows(); ++row) {
            Value &old = next[row * count + i];
            Value updated = e.fma(p[row], v, old);
            old = masked ? e.select(seen[row / heads], updated, old) : updated;
          }
        }
        return next;
      });
    };
    SmallVector<Value> sums(rows() * count, e.zero16());
    if (tokens > 1)
      sums = sum(begin, allLo, sums, true);
    sums = sum(allLo, allHi, sums, false);
    if (tokens > 1)
      sums = sum(allHi, end, sums, true);
    for (int64_t row = 0; row < rows(); ++row)
      for (int64_t i = 0; i < count; ++i)
        use(row, e.addC(firstVector, i), sums[row * count + i]);
  };
  int64_t whole = vectors / width * width;
  e.loop(e.c(0), e.c(whole), width, [&](Value v) { strip(v, width); });
  if (whole < vectors)
    strip(e.c(whole), vectors - whole);
}
