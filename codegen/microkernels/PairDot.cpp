//===- PairDot.cpp - A tile of codes times bf16 activations ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each activation group, in order of K, a lane takes
//
//   d = sum code * x
//
// in two chains, pair i of columns (PairCodes.h) in chain i mod 2, of a pair the
// later column first; d = c0 + c1. Then, in float,
//
//   f = fma(scale, fma(-zero, sum x, d), f)
//   f = fma(minimum, sum x, fma(scale, d, f))   where there is a minimum
//
// Against exact sums of the same activations, f is off by at most (K + 4) * 2^-23
// times the sum of |scale| * (code + zero) * |x|, or of
// (|scale| * code + |minimum|) * |x|. On instruction sets without vdpbf16ps its
// operations are done one by one: that has the same bits, but for numbers below
// 2^-126, which vdpbf16ps takes for 0, on every processor that fuses each of its
// two multiply-adds (Zen 5 does). The bound does not rely on it.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/PairCodes.h"
#include "codegen/microkernels/TileWalk.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

namespace {

class PairTileDot : public TileWalk {
public:
  PairTileDot(Emitter &e, const TileOperands &in, Layout layout, PairDot how)
      : TileWalk(e, in, layout, partsOf(how)),
        codes(e, layout, in.cols, in.group, how),
        qvec(in.cols, in.xGroup, /*bf16=*/true) {}

private:
  int64_t xBytes() const override { return 2; }
  /// Two chains.
  Partial none() override {
    return Partial(2 * halves(), e.fconst(e.vec(e.f32(), lanes()), 0.0));
  }
  void accumulate(Value lines, int64_t k, Value xs, int64_t columns,
                  MutableArrayRef<Value> partial) override {
    codes.pairs(lines, k, columns,
                [&](int64_t i, int64_t half, const Pair &pair) {
                  Value &sum = partial[i % 2 * halves() + half];
                  Value x = e.load(e.i32(), e.at(xs, 4 * i));
                  sum = codes.multiply(sum, pair, x);
                });
  }
  Value finish(const Group &group, Value xIndex, ArrayRef<Value> partial,
               Value f) override {
    Value xSum = e.load(
        e.f32(), e.at(in.x, e.addC(e.mulC(xIndex, 4), qvec.sums)));
    return codes.fold(group.scales, codes.sumFactor(group.zeros, group.minima),
                      e.fadd(whole(partial.take_front(halves())),
                             whole(partial.take_back(halves()))),
                      e.broadcast(xSum), f);
  }

  PairCodes codes;
  QVecLayout qvec;
};

} // namespace

template <Layout layout, PairDot how>
static SmallVector<Value> dot(Emitter &e, const TileOperands &in) {
  return PairTileDot(e, in, layout, how).emit();
}

static const TileKernel pairDots[] = {
#define INTEGER_LAYOUT(name, layout)                                           \
  {"dot_" name "_a16_avx2", "tile16_" name, SPARKC_ISA_AVX2, 2,                \
   dot<Layout::layout, PairDot::F32x8>, /*pairs=*/true},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"dot_" name "_a16_avx512", "tile16_" name, SPARKC_ISA_AVX512, 2,            \
   dot<Layout::layout, PairDot::F32x16>, /*pairs=*/true},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"dot_" name "_a16_avx512bf16", "tile16_" name, SPARKC_ISA_AVX512VNNI, 2,    \
   dot<Layout::layout, PairDot::BF16x32>, /*pairs=*/true,                      \
   SPARKC_CPU_AVX512BF16},
#include "codegen/microkernels/IntegerLayouts.def"
};

ArrayRef<TileKernel> sparkc::pairTileKernels() { return pairDots; }
