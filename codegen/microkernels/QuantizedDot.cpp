//===- QuantizedDot.cpp - A tile of codes times int8 activations ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each activation group, in order of K, a lane takes the exact integer
//
//   D = sum (code - zero) * x = sum code * x  -  zero * sum x
//
// and then the one float operation f = fma(scale * x_scale, float(D), f). |D|
// is below 2^24, so float(D) is exact, and every instruction set gives the same
// bits. Forms with a float minimum have no zero, and a second operation behind
// the first, f = fma(minimum, x_scale * float(sum x), f). What differs between
// instruction sets is how four products are added to a lane.
//
// The body reads a tile forward, line by line, as PackedLayout.h lays it out:
// batches of groups, each batch's scales and zero points first. Two tiles
// side by side, group by group, are two streams: memory delivers more to them
// than to one. A processor looks some 40 lines ahead of what it waits for, since
// instructions that depend on a line fill its queues; prefetches do not, so with
// them memory has enough to do where its answer takes longer than that.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/QuantizedTile.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

namespace {

class QuantizedDot : QuantizedTile {
public:
  QuantizedDot(Emitter &e, const TileOperands &in, Layout layout, Dot4 kind)
      : QuantizedTile(e, layout, in.cols, in.group, kind), in(in),
        qvec(in.cols, in.xGroup) {}
  SmallVector<Value> emit();

private:
  /// Four activations, columns k .. k+3 from `xs`, in every lane.
  Value activations(Value xs, int64_t k);
  Sums zeroSums() { return Sums(halves(), e.c(ints(lanes()), 0)); }
  void prefetch(Value at, int64_t bytes);
  Value group(Value batch, Value index, int64_t inBatch, Factors factors,
              Value f);
  SmallVector<Value> batchOf(Value offset, Value firstGroup, int64_t groups,
                             ValueRange f);

  const TileOperands &in;
  QVecLayout qvec;
};

} // namespace

Value QuantizedDot::activations(Value xs, int64_t k) {
  return e.broadcast(e.load(e.i32(), e.at(xs, k)), lanes());
}

void QuantizedDot::prefetch(Value at, int64_t bytes) {
  for (int64_t i = 0; in.ahead && i < bytes; i += 64)
    e.prefetch(e.at(at, i + in.ahead), in.once ? Emitter::Locality::Once
                                               : Emitter::Locality::All);
}

/// Group `inBatch` of a batch; `index` is its number in the tile.
Value QuantizedDot::group(Value batch, Value index, int64_t inBatch,
                          Factors factors, Value f) {
  // Groups do not mix, or there were more sums than registers; and where K is
  // short, all of its activations would be read once for all tiles, to be
  // spilled. Behind a fence (no instruction) each group of each tile reads its
  // own, folded into the products.
  LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::seq_cst,
                        "singlethread");
  Value scales = this->scales(batch, e.c(inBatch), factors);
  bool withMinimum = hasMinimum(form);
  Value minima, zeros;
  if (withMinimum)
    minima = this->minima(batch, e.c(inBatch), factors);
  else
    zeros = this->zeros(batch, e.c(inBatch));
  Value lines =
      e.at(batch, matrix.headBytes() + 64 * matrix.groupLines() * inBatch);
  prefetch(lines, 64 * matrix.groupLines());
  int64_t parts = in.group / in.xGroup;
  for (int64_t part = 0; part < parts; ++part) {
    Value xIndex = e.addC(e.mulC(index, parts), part);
    Value xs = e.at(in.x, e.mulC(index, in.group));
    Sums low = zeroSums(), high = zeroSums();
    int64_t first = part * in.xGroup;
    columns(lines, first, in.xGroup, halves(),
            [&](int64_t i, int64_t half, Value codes) {
              Value &sum = (i / 4 % 2 ? high : low)[half];
              sum = dot4(sum, codes, activations(xs, first + i));
            });
    Value word = e.mulC(xIndex, 4);
    Value xSum = e.load(e.i32(), e.at(in.x, e.addC(word, qvec.sums)));
    Value xScale = e.load(e.f32(), e.at(in.x, e.addC(word, qvec.scales)));
    Value d = e.add(whole(low), whole(high)), sums = e.broadcast(xSum);
    if (!withMinimum)
      d = e.sub(d, e.mul(zeros, sums));
    auto toFloat = [&](Value v) -> Value {
      return arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), v);
    };
    Value xScales = e.broadcast(xScale);
    f = e.fma(e.fmul(scales, xScales), toFloat(d), f);
    if (withMinimum)
      f = e.fma(minima, e.fmul(xScales, toFloat(sums)), f);
  }
  return f;
}

/// The batch at `offset` of every tile.
SmallVector<Value> QuantizedDot::batchOf(Value offset, Value firstGroup,
                                         int64_t groups, ValueRange f) {
  SmallVector<Value> next(f), batches;
  SmallVector<Factors> factors;
  for (Value tile : in.tiles) {
    batches.push_back(e.at(tile, offset));
    prefetch(batches.back(), matrix.headBytes());
    factors.push_back(this->factors(batches.back()));
  }
  for (int64_t g = 0; g < groups; ++g)
    for (auto [batch, common, sum] : llvm::zip_equal(batches, factors, next))
      sum = group(batch, e.addC(firstGroup, g), g, common, sum);
  return next;
}

SmallVector<Value> QuantizedDot::emit() {
  const int64_t perBatch = matrix.batchGroups();
  int64_t groups = matrix.groups(), batches = groups / perBatch;
  SmallVector<Value> f(in.tiles.size(), e.zero16());
  if (batches)
    f = e.reduce(e.c(0), e.c(batches), 1, f, [&](Value i, ValueRange carried) {
      return batchOf(e.mulC(i, matrix.batchBytes()), e.mulC(i, perBatch),
                     perBatch, carried);
    });
  if (int64_t rest = groups % perBatch)
    f = batchOf(e.c(batches * matrix.batchBytes()), e.c(batches * perBatch),
                rest, f);
  return f;
}

template <Layout layout, Dot4 kind>
static SmallVector<Value> dotQuantized(Emitter &e, const TileOperands &in) {
  return QuantizedDot(e, in, layout, kind).emit();
}

static const TileKernel kernels[] = {
    {"dot_q4_avx2", "tile16_q4", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q4, Dot4::AVX2>},
    {"dot_q5_avx2", "tile16_q5", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q5, Dot4::AVX2>},
    {"dot_q6_avx2", "tile16_q6", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q6, Dot4::AVX2>},
    {"dot_q8_avx2", "tile16_q8", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q8, Dot4::AVX2>},
    {"dot_q4m_avx2", "tile16_q4m", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q4M, Dot4::AVX2>},
    {"dot_q5m_avx2", "tile16_q5m", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q5M, Dot4::AVX2>},
    {"dot_q4k_avx2", "tile16_q4k", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q4K, Dot4::AVX2>},
    {"dot_q5k_avx2", "tile16_q5k", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q5K, Dot4::AVX2>},
    {"dot_q6k_avx2", "tile16_q6k", SPARKC_ISA_AVX2, 2,
     dotQuantized<Layout::Tile16Q6K, Dot4::AVX2>},
    {"dot_q4_avxvnni", "tile16_q4", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q4, Dot4::VNNI256>},
    {"dot_q5_avxvnni", "tile16_q5", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q5, Dot4::VNNI256>},
    {"dot_q6_avxvnni", "tile16_q6", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q6, Dot4::VNNI256>},
    {"dot_q8_avxvnni", "tile16_q8", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q8, Dot4::VNNI256>},
    {"dot_q4m_avxvnni", "tile16_q4m", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q4M, Dot4::VNNI256>},
    {"dot_q5m_avxvnni", "tile16_q5m", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q5M, Dot4::VNNI256>},
    {"dot_q4k_avxvnni", "tile16_q4k", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q4K, Dot4::VNNI256>},
    {"dot_q5k_avxvnni", "tile16_q5k", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q5K, Dot4::VNNI256>},
    {"dot_q6k_avxvnni", "tile16_q6k", SPARKC_ISA_AVXVNNI, 2,
     dotQuantized<Layout::Tile16Q6K, Dot4::VNNI256>},
    {"dot_q4_avx512vnni", "tile16_q4", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q4, Dot4::VNNI512>},
    {"dot_q5_avx512vnni", "tile16_q5", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q5, Dot4::VNNI512>},
    {"dot_q6_avx512vnni", "tile16_q6", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q6, Dot4::VNNI512>},
    {"dot_q8_avx512vnni", "tile16_q8", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q8, Dot4::VNNI512>},
    {"dot_q4m_avx512vnni", "tile16_q4m", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q4M, Dot4::VNNI512>},
    {"dot_q5m_avx512vnni", "tile16_q5m", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q5M, Dot4::VNNI512>},
    {"dot_q4k_avx512vnni", "tile16_q4k", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q4K, Dot4::VNNI512>},
    {"dot_q5k_avx512vnni", "tile16_q5k", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q5K, Dot4::VNNI512>},
    {"dot_q6k_avx512vnni", "tile16_q6k", SPARKC_ISA_AVX512VNNI, 2,
     dotQuantized<Layout::Tile16Q6K, Dot4::VNNI512>},
};

ArrayRef<TileKernel> sparkc::quantizedTileKernels() { return kernels; }
