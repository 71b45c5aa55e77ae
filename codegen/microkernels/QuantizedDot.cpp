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
  int64_t xBytes() const override { return 1; }
  /// Of the first and the last four of each eight columns, apart.
  Partial none() override {
    return Partial(2 * halves(), e.c(ints(lanes()), 0));
  }
  void accumulate(Value lines, int64_t k, Value xs, int64_t columns,
                  MutableArrayRef<Value> partial) override;
  Value finish(const Group &group, Value xIndex, ArrayRef<Value> partial,
               Value f) override;

  QVecLayout qvec;
};

} // namespace

void QuantizedDot::accumulate(Value lines, int64_t k, Value xs, int64_t columns,
                              MutableArrayRef<Value> partial) {
  this->columns(lines, k, columns, halves(),
                [&](int64_t i, int64_t half, Value codes) {
                  // Four activations, in every lane.
                  Value x = e.broadcast(e.load(e.i32(), e.at(xs, i)), lanes());
                  Value &sum = partial[i / 4 % 2 * halves() + half];
                  sum = dot4(sum, codes, x);
                });
}

Value QuantizedDot::finish(const Group &group, Value xIndex,
                           ArrayRef<Value> partial, Value f) {
  Value word = e.mulC(xIndex, 4);
  Value xSum = e.load(e.i32(), e.at(in.x, e.addC(word, qvec.sums)));
  Value xScale = e.load(e.f32(), e.at(in.x, e.addC(word, qvec.scales)));
  Value d = e.add(whole(partial.take_front(halves())),
                  whole(partial.take_back(halves())));
  Value sums = e.broadcast(xSum);
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
#define INTEGER_LAYOUT(name, layout)                                           \
  {"dot_" name "_avx2", "tile16_" name, SPARKC_ISA_AVX2, 2,                    \
   dotQuantized<Layout::layout, Dot4::AVX2>},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"dot_" name "_avxvnni", "tile16_" name, SPARKC_ISA_AVXVNNI, 2,              \
   dotQuantized<Layout::layout, Dot4::VNNI256>},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"dot_" name "_avx512vnni", "tile16_" name, SPARKC_ISA_AVX512VNNI, 2,        \
   dotQuantized<Layout::layout, Dot4::VNNI512>},
#include "codegen/microkernels/IntegerLayouts.def"
};

ArrayRef<TileKernel> sparkc::quantizedTileKernels() { return quantizedDots; }
