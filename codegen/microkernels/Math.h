//===- Math.h - Elementary functions as IR ----------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builders of the elementary functions that kernels use, made of `arith`,
// `vector`, `math.fma` and `math.sqrt` only: every op becomes a few plain
// instructions, none a call. None carries a fast-math flag, a sum is taken in
// one fixed order, and a multiply-add is fused where it says `fma` and nowhere
// else: the same bits come out on every x86-64-v3 machine and above, for a
// scalar and in any lane of a vector of any length.
//
// Floating-point arguments are f32 scalars or vectors of f32 (any shape) unless
// a builder says otherwise; the result has the type of the argument. Errors are
// against the exact function of the f32 argument, over all f32 arguments; they
// are asserted by test/unit/microkernels. Polynomials come from
// fit_polynomials.py beside this file.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_MATH_H
#define SPARKC_CODEGEN_MICROKERNELS_MATH_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace sparkc {

/// A constant of \p type (f32 or f64 scalar or vector): \p value everywhere.
mlir::Value buildSplat(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                       double value);

/// e^x within 1 ulp. Exactly 0 for x < -87.3 (results never are denormal),
/// +inf above ln(FLT_MAX); NaN for NaN.
mlir::Value buildExp(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// 1 / (1 + e^-x) within 2.6 ulp for x >= -87.3, and within 2^-126 below; no
/// overflow turns into NaN: 0 at -inf, 1 at +inf. NaN for NaN.
mlir::Value buildSigmoid(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// The exact GELU x * Phi(x), Phi the normal distribution (erf form, not tanh),
/// within 6 ulp for x >= -13.2: the negative tail is computed as such, not as a
/// difference. Below that +-0 (the exact value is above -1.5e-38). NaN for NaN.
mlir::Value buildGeluErf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

struct SinCos {
  mlir::Value sin;
  mlir::Value cos;
};

/// Sine and cosine as f32 (scalar or vector) of an f64 \p angle of the same
/// shape, in radians, |angle| <= 2^21: both within 0.501 ulp of f32, or within
/// 2^-52 absolute where that is more. Range reduction and polynomials are in
/// double; one rounding to float ends them.
SinCos buildSinCos(mlir::OpBuilder &b, mlir::Location loc, mlir::Value angle);

/// 1 / sqrt(x), each of the two operations rounded correctly.
mlir::Value buildRsqrt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// The larger of two numbers, lane by lane: a > b ? a : b, one instruction. So
/// it gives b where either is NaN.
mlir::Value buildMax(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lhs,
                     mlir::Value rhs);

/// The sum of the 16 lanes of vector<16xf32>, as f32, in this order: lane i
/// plus lane i + 8 for i < 8, of these i plus i + 4, then i + 2, then the two
/// left. The same tree as for two vector<8xf32> halves that are added first.
mlir::Value buildHorizontalSum16(mlir::OpBuilder &b, mlir::Location loc,
                                 mlir::Value x);

/// The largest of the 16 lanes of vector<16xf32>, as f32; by buildMax in the
/// order of buildHorizontalSum16. Not meant for NaN.
mlir::Value buildHorizontalMax16(mlir::OpBuilder &b, mlir::Location loc,
                                 mlir::Value x);

/// f16 to f32, exact. Scalar or vector.
mlir::Value buildExtF16(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// f32 to f16, rounded to nearest even; beyond 65520 it is inf. Scalar or
/// vector.
mlir::Value buildTruncF16(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value x);

/// bf16 (or the i16 that holds one) to f32, exact. Scalar or vector.
mlir::Value buildExtBF16(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// f32 to bf16, rounded to nearest even, by integer operations: denormals are
/// kept (AVX512-BF16's own instruction flushes them), NaN becomes a quiet NaN.
mlir::Value buildTruncBF16(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value x);

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_MATH_H
