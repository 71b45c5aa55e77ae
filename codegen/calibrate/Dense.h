//===- Dense.h - Products of matrices of floats -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The arithmetic that calibration spends its time in. Eigen does it, compiled
/// once for AVX2 and once for AVX-512; nothing else includes Eigen, so that no
/// code for one machine reaches another. Matrices are row-major, `ld` floats
/// from row to row. One thread a call; the result of a call depends on the
/// machine, never on what other threads do.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_CALIBRATE_DENSE_H
#define SPARKC_CODEGEN_CALIBRATE_DENSE_H

#include <cstdint>

namespace sparkc {

struct DenseKernels {
  /// c [m, n] += alpha * a [m, k] * b [k, n]
  void (*addProduct)(float *c, int64_t ldc, const float *a, int64_t lda,
                     const float *b, int64_t ldb, int64_t m, int64_t n,
                     int64_t k, float alpha);
  /// c [m, n] += a [k, m]^T * b [k, n]
  void (*addTransposed)(float *c, int64_t ldc, const float *a, int64_t lda,
                        const float *b, int64_t ldb, int64_t m, int64_t n,
                        int64_t k);
  /// y [n] += alpha * x [n]
  void (*axpy)(float *y, const float *x, float alpha, int64_t n);
  /// Rounds a group of columns, sixteen rows side by side: w [group][16]
  /// becomes steps [group][16], integers from -zero to maxCode - zero that stand for
  /// scale * step. Each column's error over u_kk, errors [group][16], is handed
  /// on to the columns behind it by row k of the upper triangular u. loss [16]
  /// gets the sums of squared errors; w is used up.
  void (*roundGroup)(float *w, int64_t group, const float *u, int64_t ldu,
                     const float *scales, const float *zeros, float maxCode,
                     float *steps, float *errors, float *loss);
};

/// Those for this machine; null below AVX2 with FMA.
const DenseKernels *denseKernels();

} // namespace sparkc

#endif // SPARKC_CODEGEN_CALIBRATE_DENSE_H
