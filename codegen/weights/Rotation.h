//===- Rotation.h - Orthogonal matrices that spread outliers ----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_ROTATION_H
#define SPARKC_CODEGEN_WEIGHTS_ROTATION_H

#include <cstdint>
#include <vector>

namespace sparkc {

/// An orthogonal matrix R, fixed by its size and a seed. With size = odd *
/// power, power the largest power of two that divides it,
///
///   R = diag(signs) (T x H) / sqrt(size)
///
/// x the Kronecker product, T[a][b] = cos t + sin t with t = 2 pi a b / odd
/// (Hartley; 1 for a power of two), H the Hadamard matrix of Sylvester's
/// construction. All entries of a power of two's R have one magnitude; others
/// reach sqrt(2) times that.
class Rotation {
public:
  Rotation(int64_t size, uint64_t seed);

  int64_t size() const { return odd * power; }
  /// v becomes v R, for `lanes` vectors side by side: element i of vector l is
  /// v[i * lanes + l].
  void apply(double *v, int64_t lanes = 1) const;

private:
  void applyHartley(double *v, int64_t lanes) const;

  int64_t odd, power;
  std::vector<double> factors; ///< signs / sqrt(size)
  std::vector<double> hartley; ///< cos t + sin t, t = 2 pi i / odd
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_ROTATION_H
