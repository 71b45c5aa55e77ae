//===- PairCodes.h - Codes as pairs of floats -------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels for activations of bf16 share. In each word of 16 bits of an
// unpacked line stand codes of two columns; of the two words of a lane those two
// columns apart. So a shift of the words brings codes of columns (c, c + 2) to
// their low bits, and an activation in pairs of the same columns (!step.qvec of
// bf16) meets them. Codes are exact in bf16: a vpermw of a table makes them that.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_PAIRCODES_H
#define SPARKC_CODEGEN_MICROKERNELS_PAIRCODES_H

#include "codegen/microkernels/QuantizedTile.h"

namespace sparkc {

/// How products of pairs are added to float lanes: by vdpbf16ps, or by two fused
/// multiply-adds of vectors of 16 or 8 lanes.
enum class PairDot { BF16x32, F32x16, F32x8 };

/// A pair of columns of some lanes: a vector of bf16, or two of f32.
using Pair = llvm::SmallVector<mlir::Value, 2>;

/// Halves that a QuantizedTile cuts the 16 rows in, by way of its kind.
inline Dot4 partsOf(PairDot how) {
  return how == PairDot::F32x8 ? Dot4::AVX2 : Dot4::VNNI512;
}

class PairCodes : QuantizedTile {
public:
  PairCodes(Emitter &e, Layout layout, int64_t cols, int64_t group, PairDot how)
      : QuantizedTile(e, layout, cols, group, partsOf(how)), how(how) {}

  /// Vectors of a pair.
  int64_t perPair() const { return how == PairDot::BF16x32 ? 1 : 2; }
  /// Of lanes; that a panel holds.
  mlir::VectorType type() {
    return how == PairDot::BF16x32 ? e.vec(e.b.getBF16Type(), 2 * lanes())
                                   : e.vec(e.f32(), lanes());
  }

  /// Walks columns [k, k + count) of a group whose lines begin at `lines`: pair
  /// i of them, for each part of the rows, to `use`.
  using Use = llvm::function_ref<void(int64_t i, int64_t part, const Pair &)>;
  void pairs(mlir::Value lines, int64_t k, int64_t count, Use use);

  /// sum + second * x.second, + first * x.first, each rounded; `x` is two bf16
  /// in an i32. (vdpbf16ps takes numbers below 2^-126 for 0.)
  mlir::Value multiply(mlir::Value sum, const Pair &pair, mlir::Value x);

  /// What sum x is multiplied by: minus the zero points, or the minima.
  mlir::Value sumFactor(mlir::Value zeros, mlir::Value minima);
  /// f with what a group adds: `d` is the sum of code * x of the 16 rows.
  mlir::Value fold(mlir::Value scale, mlir::Value sumFactor, mlir::Value d,
                   mlir::Value xSum, mlir::Value f);

private:
  Pair decode(mlir::Value codes, int64_t odd);
  mlir::Value look(mlir::Value words);
  mlir::Value table(int64_t from, int64_t codes);

  PairDot how;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_PAIRCODES_H
