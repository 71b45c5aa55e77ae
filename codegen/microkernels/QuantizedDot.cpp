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
// bits. What differs between them is how four products are added to a lane.
//
// The body reads a tile forward, line by line, as PackedLayout.h lays it out:
// batches of four groups, each batch's scales and zero points first. It has no
// prefetch: a stream of lines is what hardware prefetchers are made for, and one
// for each line, far ahead, occupies the buffers that they need.
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
  Value emit();

private:
  /// Four activations, columns k .. k+3 from `xs`, in every lane.
  Value activations(Value xs, int64_t k);
  Sums zeroSums() { return Sums(halves(), e.c(ints(lanes()), 0)); }
  Value group(Value batch, Value index, int64_t inBatch, Value f);
  Value batchOf(Value batch, Value firstGroup, int64_t groups, Value f);

  const TileOperands &in;
  QVecLayout qvec;
};

} // namespace

Value QuantizedDot::activations(Value xs, int64_t k) {
  return e.broadcast(e.load(e.i32(), e.at(xs, k)), lanes());
}

/// Group `inBatch` of a batch; `index` is its number in the tile.
Value QuantizedDot::group(Value batch, Value index, int64_t inBatch, Value f) {
  // Groups do not mix, or there were more sums than registers; and where K is
  // short, all of its activations would be read once for all tiles, to be
  // spilled. Behind a fence (no instruction) each group of each tile reads its
  // own, folded into the products.
  LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::seq_cst,
                        "singlethread");
  Value scales = this->scales(batch, e.c(inBatch));
  Value zeros = this->zeros(batch, e.c(inBatch));
  Value lines =
      e.at(batch, kBatchHeadBytes + 64 * matrix.groupLines() * inBatch);
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
    Value d =
        e.sub(e.add(whole(low), whole(high)), e.mul(zeros, e.broadcast(xSum)));
    Value scale = e.fmul(scales, e.broadcast(xScale));
    f = e.fma(scale, arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), d), f);
  }
  return f;
}

Value QuantizedDot::batchOf(Value batch, Value firstGroup, int64_t groups,
                            Value f) {
  for (int64_t g = 0; g < groups; ++g)
    f = group(batch, e.addC(firstGroup, g), g, f);
  return f;
}

Value QuantizedDot::emit() {
  int64_t groups = matrix.groups(), batches = groups / kBatchGroups;
  SmallVector<Value> f{e.zero16()};
  if (batches)
    f = e.reduce(e.c(0), e.c(batches), 1, f, [&](Value i, ValueRange carried) {
      return SmallVector<Value>{
          batchOf(e.at(in.tile, e.mulC(i, matrix.batchBytes())),
                  e.mulC(i, kBatchGroups), kBatchGroups, carried[0])};
    });
  if (int64_t rest = groups % kBatchGroups)
    f[0] = batchOf(e.at(in.tile, batches * matrix.batchBytes()),
                   e.c(batches * kBatchGroups), rest, f[0]);
  return f[0];
}

template <Layout layout, Dot4 kind>
static Value dotQuantized(Emitter &e, const TileOperands &in) {
  return QuantizedDot(e, in, layout, kind).emit();
}

static const TileKernel kernels[] = {
    {"dot_q4_avx2", "tile16_q4", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q4, Dot4::AVX2>},
    {"dot_q5_avx2", "tile16_q5", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q5, Dot4::AVX2>},
    {"dot_q6_avx2", "tile16_q6", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q6, Dot4::AVX2>},
    {"dot_q8_avx2", "tile16_q8", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q8, Dot4::AVX2>},
    {"dot_q4_avxvnni", "tile16_q4", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q4, Dot4::VNNI256>},
    {"dot_q5_avxvnni", "tile16_q5", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q5, Dot4::VNNI256>},
    {"dot_q6_avxvnni", "tile16_q6", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q6, Dot4::VNNI256>},
    {"dot_q8_avxvnni", "tile16_q8", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q8, Dot4::VNNI256>},
    {"dot_q4_avx512vnni", "tile16_q4", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q4, Dot4::VNNI512>},
    {"dot_q5_avx512vnni", "tile16_q5", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q5, Dot4::VNNI512>},
    {"dot_q6_avx512vnni", "tile16_q6", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q6, Dot4::VNNI512>},
    {"dot_q8_avx512vnni", "tile16_q8", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q8, Dot4::VNNI512>},
};

ArrayRef<TileKernel> sparkc::quantizedTileKernels() { return kernels; }
