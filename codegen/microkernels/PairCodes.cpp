//===- PairCodes.cpp - Codes as pairs of floats ---------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/PairCodes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sparkc;

static Value shiftedRight(Emitter &e, Value v, int64_t by) {
  if (!by)
    return v;
  return arith::ShRUIOp::create(e.b, e.loc, v, e.c(v.getType(), by));
}

static Value masked(Emitter &e, Value v, int64_t mask) {
  return arith::AndIOp::create(e.b, e.loc, v, e.c(v.getType(), int32_t(mask)));
}

/// The floats from `from` on as bf16, 32 words: the first `codes` of them, again
/// and again.
Value PairCodes::table(int64_t from, int64_t codes) {
  SmallVector<int16_t> words;
  for (int64_t i = 0; i < 32; ++i) {
    APFloat value(float(from + i % codes));
    words.push_back(value.bitcastToAPInt().getZExtValue() >> 16);
  }
  VectorType type = e.vec(e.b.getI16Type(), 32);
  return arith::ConstantOp::create(
      e.b, e.loc, DenseElementsAttr::get(type, ArrayRef<int16_t>(words)));
}

/// The floats that the low bits of 32 words stand for: vpermw looks at five of
/// them, vpermi2w at six. A table of 16 stands twice, since the fifth bit is of
/// another code.
Value PairCodes::look(Value words) {
  Type type = words.getType();
  Value floats;
  if (bits == 6)
    floats = e.intrinsic("llvm.x86.avx512.vpermi2var.hi.512", type,
                         {table(0, 32), words, table(32, 32)});
  else
    floats = e.intrinsic("llvm.x86.avx512.permvar.hi.512", type,
                         {table(0, bits == 4 ? 16 : 32), words});
  return vector::BitCastOp::create(e.b, e.loc, this->type(), floats);
}

/// Of codes of four columns a lane, bytes, the first and the third, or those
/// behind them.
Pair PairCodes::decode(Value codes, int64_t odd) {
  auto toFloat = [&](int64_t column) -> Value {
    Value byte = masked(e, shiftedRight(e, codes, 8 * column), 0xff);
    return arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32(), lanes()), byte);
  };
  if (how != PairDot::BF16x32)
    return {toFloat(odd), toFloat(odd + 2)};
  if (bits < 8) {
    Value words = vector::BitCastOp::create(
        e.b, e.loc, e.vec(e.b.getI16Type(), 32), codes);
    return {look(shiftedRight(e, words, 8 * odd))};
  }
  // 8 bits fill a bf16: the low half of the float is 0.
  auto asBits = [&](Value v) -> Value {
    return arith::BitcastOp::create(e.b, e.loc, ints(lanes()), v);
  };
  Value both = arith::OrIOp::create(e.b, e.loc, asBits(toFloat(odd + 2)),
                                    shiftedRight(e, asBits(toFloat(odd)), 16));
  return {vector::BitCastOp::create(e.b, e.loc, type(), both)};
}

void PairCodes::pairs(Value lines, int64_t k, int64_t count, Use use) {
  if (how != PairDot::BF16x32 || bits != 4) {
    columns(lines, k, count, halves(),
            [&](int64_t i, int64_t part, Value codes) {
              for (int64_t odd : {0, 1})
                use(i / 2 + odd, part, decode(codes, odd));
            });
    return;
  }
  // Straight from the nibbles of a line: those of columns 0, 1, 4 and 5 of a
  // lane's first word.
  for (int64_t i = 0; i < count; i += 8) {
    Value words = vector::BitCastOp::create(
        e.b, e.loc, e.vec(e.b.getI16Type(), 32),
        line(lines, 64 * ((k + i) / 8), 0, kLanes));
    const int64_t shifts[] = {0, 8, 4, 12};
    for (auto [at, shift] : llvm::enumerate(shifts))
      use(i / 2 + at, 0, {look(shiftedRight(e, words, shift))});
  }
}

Value PairCodes::multiply(Value sum, const Pair &pair, Value x) {
  Value xs = e.broadcast(x, lanes());
  if (how == PairDot::BF16x32)
    return e.intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", sum.getType(),
                       {sum, pair[0],
                        vector::BitCastOp::create(e.b, e.loc, type(), xs)});
  auto asFloat = [&](Value v) -> Value {
    return arith::BitcastOp::create(e.b, e.loc, type(), v);
  };
  Value first = arith::ShLIOp::create(e.b, e.loc, xs, e.c(xs.getType(), 16));
  sum = e.fma(pair[1], asFloat(masked(e, xs, 0xffff0000)), sum);
  return e.fma(pair[0], asFloat(first), sum);
}

Value PairCodes::sumFactor(Value zeros, Value minima) {
  if (minima)
    return minima;
  return arith::SIToFPOp::create(e.b, e.loc, e.v16f32(),
                                 e.sub(e.c(ints(kLanes), 0), zeros));
}

Value PairCodes::fold(Value scale, Value sumFactor, Value d, Value xSum,
                      Value f) {
  if (hasMinimum(form))
    return e.fma(sumFactor, xSum, e.fma(scale, d, f));
  return e.fma(scale, e.fma(sumFactor, xSum, d), f);
}
