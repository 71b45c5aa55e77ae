//===- Moments.cpp - What the inputs of a linear have in common -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Moments.h"
#include "llvm/Support/Parallel.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace sparkc {

/// Columns and rows of a piece of work for one thread; less of a matrix that
/// would be one piece.
static constexpr int64_t kPiece = 256, kSmallPiece = 128;
/// Columns of the triangular factors that are done one by one.
static constexpr int64_t kPanel = 64;

static int64_t pieces(int64_t n, int64_t each = kPiece) {
  return (n + each - 1) / each;
}

/// Calls work(row, rows, column, columns) for the pieces of a matrix.
template <typename Work>
static void forPieces(int64_t rows, int64_t cols, Work work) {
  const int64_t each = std::max(rows, cols) > kPiece ? kPiece : kSmallPiece;
  const int64_t across = pieces(cols, each);
  llvm::parallelFor(0, pieces(rows, each) * across, [&](size_t i) {
    int64_t r = int64_t(i) / across * each, c = int64_t(i) % across * each;
    work(r, std::min(each, rows - r), c, std::min(each, cols - c));
  });
}

void Moments::add(const DenseKernels &dense, const float *x, const float *y,
                  const float *r, int64_t n) {
  tokens += n;
  forPieces(cols, cols, [&](int64_t i, int64_t m, int64_t j, int64_t k) {
    if (j + k > i)
      dense.addTransposed(&second[i * cols + j], cols, x + i, cols, x + j, cols,
                          m, k, n);
  });
  if (y) {
    drift.resize(cols * cols);
    std::vector<float> gap(n * cols);
    llvm::parallelFor(0, n, [&](size_t t) {
      for (int64_t i = int64_t(t) * cols; i < int64_t(t + 1) * cols; ++i)
        gap[i] = y[i] - x[i];
    });
    forPieces(cols, cols, [&](int64_t i, int64_t m, int64_t j, int64_t k) {
      dense.addTransposed(&drift[i * cols + j], cols, &gap[i], cols, x + j,
                          cols, m, k, n);
    });
  }
  if (r)
    forPieces(residuals, cols, [&](int64_t i, int64_t m, int64_t j, int64_t k) {
      dense.addTransposed(&lack[i * cols + j], cols, r + i, residuals, x + j,
                          cols, m, k, n);
    });
}

void Moments::finish() {
  for (int64_t i = 0; i < cols; ++i)
    for (int64_t j = 0; j < i; ++j)
      second[i * cols + j] = second[j * cols + i];
}

bool Moments::isFinite() const {
  auto finite = [](const std::vector<float> &values) {
    float poison = 0; // NaN if any is NaN or infinite
    for (float v : values)
      poison += v * 0.0f;
    return poison == 0;
  };
  return finite(second) && finite(drift) && finite(lack);
}

//===----------------------------------------------------------------------===//
// Triangular factors
//===----------------------------------------------------------------------===//

/// a [n, n], n <= kPanel, leading dimension ld: its lower triangle becomes L
/// with a = L L^T. False if it is not positive definite.
static bool smallCholesky(float *a, int64_t ld, int64_t n) {
  // left [j][i]: what columns before have left of a_ij.
  double left[kPanel * kPanel], column[kPanel];
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i)
      left[j * kPanel + i] = a[i * ld + j];
  for (int64_t j = 0; j < n; ++j) {
    const double *own = &left[j * kPanel];
    if (!(own[j] > 0))
      return false;
    const float root = std::sqrt(own[j]);
    a[j * ld + j] = root;
    for (int64_t i = j + 1; i < n; ++i)
      column[i] = a[i * ld + j] = own[i] / root;
    for (int64_t k = j + 1; k < n; ++k)
      for (int64_t i = k; i < n; ++i)
        left[k * kPanel + i] -= column[i] * column[k];
  }
  return true;
}

/// out [n, n] = the inverse of lower triangular l, zeros above it.
static void smallInverse(const float *l, int64_t ld, int64_t n, float *out) {
  std::fill(out, out + n * n, 0.0f);
  double sum[kPanel];
  for (int64_t i = 0; i < n; ++i) {
    std::fill(sum, sum + i, 0.0);
    for (int64_t k = 0; k < i; ++k)
      for (int64_t j = 0; j <= k; ++j)
        sum[j] += double(l[i * ld + k]) * out[k * n + j];
    for (int64_t j = 0; j < i; ++j)
      out[i * n + j] = -sum[j] / l[i * ld + i];
    out[i * n + i] = 1.0f / l[i * ld + i];
  }
}

/// The lower triangle of a [n, n] becomes L with a = L L^T, panel by panel.
static bool cholesky(const DenseKernels &dense, std::vector<float> &a,
                     int64_t n) {
  std::vector<float> inverse(kPanel * kPanel), below;
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t w = std::min(kPanel, n - p), rest = n - p - w;
    if (!smallCholesky(&a[p * n + p], n, w))
      return false;
    if (!rest)
      break;
    smallInverse(&a[p * n + p], n, w, inverse.data());
    // The transposed inverse, and its product with what is below.
    std::vector<float> turned(w * w);
    for (int64_t i = 0; i < w; ++i)
      for (int64_t j = 0; j < w; ++j)
        turned[i * w + j] = inverse[j * w + i];
    below.assign(rest * w, 0.0f);
    float *under = &a[(p + w) * n + p];
    forPieces(rest, w, [&](int64_t i, int64_t m, int64_t j, int64_t k) {
      dense.addProduct(&below[i * w + j], w, under + i * n, n, &turned[j], w, m,
                       k, w, 1.0f);
    });
    std::vector<float> across(w * rest);
    for (int64_t i = 0; i < rest; ++i)
      for (int64_t j = 0; j < w; ++j)
        across[j * rest + i] = under[i * n + j] = below[i * w + j];
    forPieces(rest, rest, [&](int64_t i, int64_t m, int64_t j, int64_t k) {
      if (j < i + m)
        dense.addProduct(&a[(p + w + i) * n + p + w + j], n, &below[i * w], w,
                         &across[j], rest, m, k, w, -1.0f);
    });
  }
  return true;
}

/// out [n, n] (zeros) becomes the inverse of lower triangular l.
static void invertLower(const DenseKernels &dense, const std::vector<float> &l,
                        int64_t n, std::vector<float> &out) {
  std::vector<float> inverse(kPanel * kPanel);
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t w = std::min(kPanel, n - p);
    smallInverse(&l[p * n + p], n, w, inverse.data());
    for (int64_t i = 0; i < w; ++i)
      std::copy_n(&inverse[i * w], w, &out[(p + i) * n + p]);
    llvm::parallelFor(0, pieces(p), [&](size_t piece) {
      int64_t c = int64_t(piece) * kPiece, k = std::min(kPiece, p - c);
      // Rows above c of these columns are zero.
      std::vector<float> sum(w * k, 0.0f);
      dense.addProduct(sum.data(), k, &l[p * n + c], n, &out[c * n + c], n, w,
                       k, p - c, -1.0f);
      dense.addProduct(&out[p * n + c], n, inverse.data(), w, sum.data(), k, w,
                       k, w, 1.0f);
    });
  }
}

bool ErrorFactor::of(const DenseKernels &dense,
                     const std::vector<float> &second, int64_t cols,
                     float share, ErrorFactor &factor) {
  double trace = 0;
  for (int64_t i = 0; i < cols; ++i)
    trace += second[i * cols + i];
  if (!(trace > 0) || !std::isfinite(trace))
    return false;
  // Of the matrix read backwards the factor is lower triangular.
  std::vector<float> backwards(cols * cols);
  for (; share <= 1; share *= 10) {
    factor.damp = float(share * trace / double(cols));
    for (int64_t i = 0; i < cols; ++i)
      for (int64_t j = 0; j <= i; ++j)
        backwards[i * cols + j] =
            second[(cols - 1 - i) * cols + (cols - 1 - j)] +
            (i == j ? factor.damp : 0.0f);
    if (cholesky(dense, backwards, cols))
      break;
  }
  if (share > 1)
    return false;
  std::vector<float> inverse(cols * cols);
  invertLower(dense, backwards, cols, inverse);
  std::reverse(inverse.begin(), inverse.end());
  factor.cols = cols;
  factor.upper = std::move(inverse);
  factor.damped = second;
  for (int64_t i = 0; i < cols; ++i)
    factor.damped[i * cols + i] += factor.damp;
  return true;
}

void ErrorFactor::divide(const DenseKernels &dense, float *rows,
                         int64_t n) const {
  std::vector<float> turned(cols * cols); // U^T
  for (int64_t i = 0; i < cols; ++i)
    for (int64_t j = i; j < cols; ++j)
      turned[j * cols + i] = upper[i * cols + j];
  llvm::parallelFor(0, pieces(n), [&](size_t piece) {
    int64_t r = int64_t(piece) * kPiece, m = std::min(kPiece, n - r);
    std::vector<float> half(m * cols, 0.0f);
    float *at = rows + r * cols;
    // (rows U^T) U, column by column of pieces: U is triangular.
    for (int64_t c = 0; c < cols; c += kPiece) {
      int64_t k = std::min(kPiece, cols - c);
      dense.addProduct(&half[c], cols, at + c, cols, &turned[c * cols + c],
                       cols, m, k, cols - c, 1.0f);
    }
    std::fill(at, at + m * cols, 0.0f);
    for (int64_t c = 0; c < cols; c += kPiece) {
      int64_t k = std::min(kPiece, cols - c);
      dense.addProduct(at + c, cols, half.data(), cols, &upper[c], cols, m, k,
                       c + k, 1.0f);
    }
  });
}

} // namespace sparkc
