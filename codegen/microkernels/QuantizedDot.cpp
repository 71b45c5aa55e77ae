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
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/TileWalk.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

namespace {

class QuantizedDot : public TileWalk {
public:
  QuantizedDot(Emitter &e, const TileOperands &in, Layout layout, Dot4 kind)
      : TileWalk(e, in, layout, kind), qvec(in.cols, in.xGroup) {}

private:
  Value part(const Group &group, int64_t part, Value f) override;
  /// Four activations, columns k .. k+3 from `xs`, in every lane.
  Value activations(Value xs, int64_t k) {
    return e.broadcast(e.load(e.i32(), e.at(xs, k)), lanes());
  }
  Sums zeroSums() { return Sums(halves(), e.c(ints(lanes()), 0)); }

  QVecLayout qvec;
};

} // namespace

Value QuantizedDot::part(const Group &group, int64_t part, Value f) {
  Value xIndex = e.addC(e.mulC(group.index, in.group / in.xGroup), part);
  Value xs = e.at(in.x, e.mulC(group.index, in.group));
  Sums low = zeroSums(), high = zeroSums();
  int64_t first = part * in.xGroup;
  columns(group.lines, first, in.xGroup, halves(),
          [&](int64_t i, int64_t half, Value codes) {
            Value &sum = (i / 4 % 2 ? high : low)[half];
            sum = dot4(sum, codes, activations(xs, first + i));
          });
  Value word = e.mulC(xIndex, 4);
  Value xSum = e.load(e.i32(), e.at(in.x, e.addC(word, qvec.sums)));
  Value xScale = e.load(e.f32(), e.at(in.x, e.addC(word, qvec.scales)));
  Value d = e.add(whole(low), whole(high)), sums = e.broadcast(xSum);
  if (!group.minima)
    d = e.sub(d, e.mul(group.zeros, sums));
  auto toFloat = [&](Value v) -> Value {
    return arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), v);
  };
  Value xScales = e.broadcast(xScale);
  f = e.fma(e.fmul(group.scales, xScales), toFloat(d), f);
  if (group.minima)
    f = e.fma(group.minima, e.fmul(xScales, toFloat(sums)), f);
  return f;
}

template <Layout layout, Dot4 kind>
static SmallVector<Value> dotQuantized(Emitter &e, const TileOperands &in) {
  return QuantizedDot(e, in, layout, kind).emit();
}

static const TileKernel quantizedDots[] = {
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

ArrayRef<TileKernel> sparkc::quantizedTileKernels() { return quantizedDots; }
