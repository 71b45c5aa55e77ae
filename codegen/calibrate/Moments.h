//===- Moments.h - What the inputs of a linear have in common ---*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_CALIBRATE_MOMENTS_H
#define SPARKC_CODEGEN_CALIBRATE_MOMENTS_H

#include "codegen/calibrate/Dense.h"
#include <string>
#include <vector>

namespace sparkc {

/// Sums over the tokens of a calibration text. A token gives x, the input that
/// the linear has in the quantized model so far, y, the one it has in the
/// unquantized model, and, of a linear whose output is added to the residual
/// stream, r, how much that stream lacks: unquantized less quantized.
struct Moments {
  Moments(int64_t cols, int64_t residuals)
      : cols(cols), residuals(residuals), second(cols * cols),
        lack(residuals * cols) {}

  /// Adds `tokens` rows of x and y [cols] and r [residuals]; y may be null where
  /// it is x, r where there are none. Bits depend on how tokens are cut into
  /// calls, not on the number of threads.
  void add(const DenseKernels &dense, const float *x, const float *y,
           const float *r, int64_t tokens);
  /// Fills the lower triangle of `second`, which `add` leaves alone. Call once.
  void finish();
  /// Whether all sums are finite.
  bool isFinite() const;

  int64_t cols, residuals;
  int64_t tokens = 0;
  std::vector<float> second; ///< [cols, cols]: sum x x^T
  /// [cols, cols]: sum (y - x) x^T; empty where there was no y.
  std::vector<float> drift;
  std::vector<float> lack;   ///< [residuals, cols]: sum r x^T
};

/// The factor that error-compensated rounding walks along: upper triangular U
/// with (S + damp)^-1 = U^T U, S the second moments. Row j of U says how an
/// error in column j is best made up for by the columns after it.
struct ErrorFactor {
  int64_t cols = 0;
  std::vector<float> upper;  ///< [cols, cols]
  std::vector<float> damped; ///< [cols, cols]: S + damp
  float damp = 0;            ///< added to the diagonal

  /// `share` of the mean of the diagonal is added to it, ten times as much
  /// where that is not positive definite, and so on. False where even the whole
  /// mean does not do, or there is nothing but zeros.
  static bool of(const DenseKernels &dense, const std::vector<float> &second,
                 int64_t cols, float share, ErrorFactor &factor);

  /// rows [n, cols] becomes rows * (S + damp)^-1.
  void divide(const DenseKernels &dense, float *rows, int64_t n) const;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_CALIBRATE_MOMENTS_H
