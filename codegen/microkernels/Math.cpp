//===- Math.cpp - Elementary functions as IR ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Math.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace sparkc;

/// \p type with its element type (or itself, if scalar) replaced.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

static Value splatInt(OpBuilder &b, Location loc, Type type, int64_t value) {
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

Value sparkc::buildSplat(OpBuilder &b, Location loc, Type type, double value) {
  TypedAttr attr = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

namespace {

/// Short names for arithmetic on values of one floating-point type.
class Arith {
public:
  Arith(OpBuilder &b, Location loc, Type type) : b(b), loc(loc), type(type) {}

  Value num(double value) { return buildSplat(b, loc, type, value); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value cmp(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }

  /// c[0] + c[1] x + c[2] x^2 ..., by Horner's rule.
  Value polynomial(Value x, ArrayRef<double> c) {
    Value sum = num(c.back());
    for (double coefficient : llvm::reverse(c.drop_back()))
      sum = fma(sum, x, num(coefficient));
    return sum;
  }

  /// The bits of a float, in integers of the same width.
  Value toBits(Value x) {
    unsigned width = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    return arith::BitcastOp::create(
        b, loc, withElement(type, b.getIntegerType(width)), x);
  }
  Value fromBits(Value bits) {
    return arith::BitcastOp::create(b, loc, type, bits);
  }

private:
  OpBuilder &b;
  Location loc;
  Type type;
};

constexpr double infinity = std::numeric_limits<double>::infinity();

// Coefficients from the lowest power up; see fit_polynomials.py.

/// (e^r - 1 - r) / r^2, |r| <= ln2/2.
constexpr double expTail[] = {4.99999940e-01, 1.66665196e-01, 4.16683927e-02,
                              8.36878084e-03, 1.38144672e-03};

/// (t + 2) Phi(-t) e^(t^2/2) in q = (t - 2) / (t + 2), 0 <= t <= 14.
constexpr double mills[] = {6.72407985e-01,  -3.31404567e-01, 2.87984014e-02,
                            3.67217027e-02,  -4.83227719e-04, -6.75227540e-03,
                            -1.89079298e-03, 8.85927235e-04,  7.25032820e-04,
                            2.93585581e-05,  -7.72848944e-05};

/// (sin r - r) / r^3 in r^2, |r| <= pi/4.
constexpr double sinTail[] = {-1.6666666640776262e-01, 8.3333293024199385e-03,
                              -1.9839311486185857e-04, 2.7181141244647308e-06};

/// (cos r - 1) / r^2 in r^2, |r| <= pi/4.
constexpr double cosTail[] = {-4.9999999999488776e-01, 4.1666666553327611e-02,
                              -1.3888880654160524e-03, 2.4798959632456319e-05,
                              -2.7174710617080405e-07};

} // namespace

Value sparkc::buildExp(OpBuilder &b, Location loc, Value x) {
  Arith a(b, loc, x.getType());
  // x = n ln2 + r. Adding 1.5 * 2^23 rounds to an integer and leaves n in the
  // low bits of the sum.
  Value magic = a.num(12582912.0);
  Value shifted = a.fma(x, a.num(1.4426950408889634), magic);
  Value n = a.sub(shifted, magic);
  Value r = a.fma(n, a.num(-0.693147182464599609375), x);
  r = a.fma(n, a.num(1.904654323148236e-09), r);
  // e^r = 1 + r (1 + r tail(r)).
  Value one = a.num(1.0);
  Value power = a.polynomial(r, expTail);
  power = a.fma(power, r, one);
  power = a.fma(power, r, one);
  // Times 2^n: n is added to the exponent. The magic number's own bits are
  // shifted out.
  Value bits = a.toBits(shifted);
  bits =
      arith::ShLIOp::create(b, loc, bits, splatInt(b, loc, bits.getType(), 23));
  bits = arith::AddIOp::create(b, loc, bits, a.toBits(power));
  Value result = a.fromBits(bits);
  // Outside the range, where the exponent would leave its field.
  Value under = a.cmp(arith::CmpFPredicate::OLT, x, a.num(-87.3));
  result = a.select(under, a.num(0.0), result);
  // FLT_MAX is e^88.7228317...; the sum is inf, or NaN for NaN.
  Value over = a.cmp(arith::CmpFPredicate::UGT, x, a.num(0x1.62e42ep+6));
  return a.select(over, a.add(x, a.num(infinity)), result);
}

Value sparkc::buildSigmoid(OpBuilder &b, Location loc, Value x) {
  Arith a(b, loc, x.getType());
  Value one = a.num(1.0);
  return a.div(one, a.add(one, buildExp(b, loc, a.neg(x))));
}

Value sparkc::buildGeluErf(OpBuilder &b, Location loc, Value x) {
  Arith a(b, loc, x.getType());
  // gelu(x) = max(x, 0) - t Phi(-t) with t = |x|, and
  // Phi(-t) = e^(-t^2/2) mills(q) / (t + 2). Past 14 the second term is less
  // than the smallest float; the comparisons are such that NaN goes on in
  // `positive`.
  Value zero = a.num(0.0);
  Value negative = a.cmp(arith::CmpFPredicate::OLT, x, zero);
  Value positive = a.select(negative, zero, x);
  Value magnitude = a.select(negative, a.neg(x), x);
  Value limit = a.num(14.0);
  Value t = a.select(a.cmp(arith::CmpFPredicate::OLT, magnitude, limit),
                     magnitude, limit);
  Value inverse = a.div(a.num(1.0), a.add(t, a.num(2.0)));
  Value q = a.fma(inverse, a.num(-4.0), a.num(1.0));
  Value tail = a.mul(a.polynomial(q, mills), inverse);
  // t^2 in two floats, since e^ turns their absolute error into a relative one:
  // e^-(hi + lo)/2 = e^(-hi/2) (1 - lo/2).
  Value hi = a.mul(t, t);
  Value lo = a.fma(t, t, a.neg(hi));
  Value half = a.num(-0.5);
  Value power = buildExp(b, loc, a.mul(hi, half));
  power = a.fma(a.mul(lo, half), power, power);
  // The small factor comes last, so that no product is denormal too early.
  return a.fma(a.neg(a.mul(t, tail)), power, positive);
}

SinCos sparkc::buildSinCos(OpBuilder &b, Location loc, Value angle) {
  Arith a(b, loc, angle.getType());
  // angle = n pi/2 + r, as in buildExp; pi/2 in two doubles.
  Value magic = a.num(6755399441055744.0);
  Value shifted = a.fma(angle, a.num(0.63661977236758134308), magic);
  Value n = a.sub(shifted, magic);
  Value r = a.fma(n, a.num(-1.57079632679489656e+00), angle);
  r = a.fma(n, a.num(-6.12323399573676604e-17), r);
  Value square = a.mul(r, r);
  Value sin = a.fma(a.mul(a.polynomial(square, sinTail), square), r, r);
  Value cos = a.fma(a.polynomial(square, cosTail), square, a.num(1.0));
  // Quadrants 1 and 3 swap the two; the signs are those of quadrant n, and of
  // n + 1 for the cosine.
  Value bits = a.toBits(shifted);
  Type intType = bits.getType();
  Value one = splatInt(b, loc, intType, 1);
  Value two = splatInt(b, loc, intType, 2);
  Value zero = splatInt(b, loc, intType, 0);
  auto any = [&](Value of, Value mask) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                 arith::AndIOp::create(b, loc, of, mask), zero);
  };
  Value odd = any(bits, one);
  Value sinMagnitude = a.select(odd, cos, sin);
  Value cosMagnitude = a.select(odd, sin, cos);
  Value next = arith::AddIOp::create(b, loc, bits, one);
  sin = a.select(any(bits, two), a.neg(sinMagnitude), sinMagnitude);
  cos = a.select(any(next, two), a.neg(cosMagnitude), cosMagnitude);
  Type result = withElement(angle.getType(), b.getF32Type());
  return {arith::TruncFOp::create(b, loc, result, sin),
          arith::TruncFOp::create(b, loc, result, cos)};
}

Value sparkc::buildRsqrt(OpBuilder &b, Location loc, Value x) {
  Arith a(b, loc, x.getType());
  return a.div(a.num(1.0), math::SqrtOp::create(b, loc, x));
}

Value sparkc::buildMax(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  Value greater =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, lhs, rhs);
  return arith::SelectOp::create(b, loc, greater, lhs, rhs);
}

/// Folds the upper half of a vector of 16 onto the lower, until one is left.
static Value
fold16(OpBuilder &b, Location loc, Value x,
       llvm::function_ref<Value(OpBuilder &, Location, Value, Value)> combine) {
  assert(cast<VectorType>(x.getType()).getShape() == ArrayRef<int64_t>{16});
  for (int64_t half = 8; half > 1; half /= 2) {
    SmallVector<int64_t> lower = llvm::to_vector(llvm::seq<int64_t>(0, half));
    SmallVector<int64_t> upper =
        llvm::to_vector(llvm::seq<int64_t>(half, 2 * half));
    x = combine(b, loc, vector::ShuffleOp::create(b, loc, x, x, lower),
                vector::ShuffleOp::create(b, loc, x, x, upper));
  }
  return combine(b, loc, vector::ExtractOp::create(b, loc, x, int64_t(0)),
                 vector::ExtractOp::create(b, loc, x, int64_t(1)));
}

Value sparkc::buildHorizontalSum16(OpBuilder &b, Location loc, Value x) {
  return fold16(b, loc, x,
                [](OpBuilder &b, Location loc, Value lhs, Value rhs) -> Value {
                  return arith::AddFOp::create(b, loc, lhs, rhs);
                });
}

Value sparkc::buildHorizontalMax16(OpBuilder &b, Location loc, Value x) {
  return fold16(b, loc, x, buildMax);
}

Value sparkc::buildExtF16(OpBuilder &b, Location loc, Value x) {
  return arith::ExtFOp::create(b, loc, withElement(x.getType(), b.getF32Type()),
                               x);
}

Value sparkc::buildTruncF16(OpBuilder &b, Location loc, Value x) {
  return arith::TruncFOp::create(b, loc,
                                 withElement(x.getType(), b.getF16Type()), x);
}

Value sparkc::buildExtBF16(OpBuilder &b, Location loc, Value x) {
  Type i16 = withElement(x.getType(), b.getI16Type());
  Type i32 = withElement(x.getType(), b.getI32Type());
  if (x.getType() != i16)
    x = arith::BitcastOp::create(b, loc, i16, x);
  x = arith::ExtUIOp::create(b, loc, i32, x);
  x = arith::ShLIOp::create(b, loc, x, splatInt(b, loc, i32, 16));
  return arith::BitcastOp::create(b, loc,
                                  withElement(x.getType(), b.getF32Type()), x);
}

Value sparkc::buildTruncBF16(OpBuilder &b, Location loc, Value x) {
  Type i16 = withElement(x.getType(), b.getI16Type());
  Type i32 = withElement(x.getType(), b.getI32Type());
  Value nan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  Value bits = arith::BitcastOp::create(b, loc, i32, x);
  Value sixteen = splatInt(b, loc, i32, 16);
  // Half a unit in the last place, less one where the bit kept is even.
  Value odd = arith::AndIOp::create(
      b, loc, arith::ShRUIOp::create(b, loc, bits, sixteen),
      splatInt(b, loc, i32, 1));
  Value bias =
      arith::AddIOp::create(b, loc, odd, splatInt(b, loc, i32, 0x7fff));
  Value rounded = arith::AddIOp::create(b, loc, bits, bias);
  Value quiet =
      arith::OrIOp::create(b, loc, bits, splatInt(b, loc, i32, 0x400000));
  rounded = arith::SelectOp::create(b, loc, nan, quiet, rounded);
  rounded = arith::ShRUIOp::create(b, loc, rounded, sixteen);
  rounded = arith::TruncIOp::create(b, loc, i16, rounded);
  return arith::BitcastOp::create(
      b, loc, withElement(x.getType(), b.getBF16Type()), rounded);
}
