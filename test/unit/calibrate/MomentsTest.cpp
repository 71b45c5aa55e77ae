//===- MomentsTest.cpp - Sums and factors against plain loops -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Moments.h"
#include "Activations.h"
#include "gtest/gtest.h"

using namespace sparkc;
using namespace sparkc::test;

namespace {

/// a [n, k] b [k, m], or with a transposed.
std::vector<double> product(const std::vector<float> &a,
                            const std::vector<float> &b, int64_t n, int64_t k,
                            int64_t m, bool transposed) {
  std::vector<double> c(n * m);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j)
      for (int64_t l = 0; l < k; ++l)
        c[i * m + j] +=
            double(transposed ? a[l * n + i] : a[i * k + l]) * b[l * m + j];
  return c;
}


TEST(Moments, AreSumsOverTokens) {
  // More columns than one piece of work, and no multiple of it.
  const int64_t cols = 300, residuals = 20, tokens = 70;
  std::vector<float> x = activations(2 * tokens, cols, 1),
                     y = activations(2 * tokens, cols, 2),
                     r = normals(2 * tokens, residuals, 3);
  Moments moments(cols, residuals);
  for (int64_t part : {0, 1})
    moments.add(dense(), &x[part * tokens * cols], &y[part * tokens * cols],
                &r[part * tokens * residuals], tokens);
  moments.finish();
  EXPECT_EQ(moments.tokens, 2 * tokens);
  EXPECT_TRUE(moments.isFinite());
  std::vector<float> gap(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    gap[i] = y[i] - x[i];
  auto near = [&](const std::vector<float> &got,
                  const std::vector<double> &wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-5 * 140 * 30) << i;
  };
  near(moments.second, product(x, x, cols, 2 * tokens, cols, true));
  near(moments.drift, product(gap, x, cols, 2 * tokens, cols, true));
  near(moments.lack, product(r, x, residuals, 2 * tokens, cols, true));
}

TEST(Moments, SayWhenASumIsNoNumber) {
  const int64_t cols = 4;
  for (float bad : {NAN, INFINITY, 3e30f}) {
    std::vector<float> x(cols, 1.0f);
    x[2] = bad;
    Moments moments(cols, 0);
    moments.add(dense(), x.data(), x.data(), nullptr, 1);
    moments.finish();
    EXPECT_FALSE(moments.isFinite()) << bad;
  }
}

TEST(ErrorFactor, IsTheFactorOfTheInverse) {
  for (int64_t cols : {1, 5, 64, 65, 300}) {
    std::vector<float> x = activations(2 * cols + 10, cols, 4);
    Moments moments(cols, 0);
    moments.add(dense(), x.data(), x.data(), nullptr, 2 * cols + 10);
    moments.finish();
    ErrorFactor factor;
    ASSERT_TRUE(
        ErrorFactor::of(dense(), moments.second, cols, 0.01f, factor));
    for (int64_t i = 0; i < cols; ++i)
      for (int64_t j = 0; j < i; ++j)
        ASSERT_EQ(factor.upper[i * cols + j], 0);
    // damped U^T U = 1
    std::vector<double> inverse(cols * cols);
    for (int64_t i = 0; i < cols; ++i)
      for (int64_t j = 0; j < cols; ++j)
        for (int64_t k = 0; k <= std::min(i, j); ++k)
          inverse[i * cols + j] += double(factor.upper[k * cols + i]) *
                                   factor.upper[k * cols + j];
    for (int64_t i = 0; i < cols; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < cols; ++k)
          sum += factor.damped[i * cols + k] * inverse[k * cols + j];
        ASSERT_NEAR(sum, i == j, 2e-3) << cols << ": " << i << ", " << j;
      }
    // divide: rows times that inverse.
    std::vector<float> rows = normals(3, cols, 5), divided = rows;
    factor.divide(dense(), divided.data(), 3);
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t c = 0; c < cols; ++c) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < cols; ++k) {
          double term = rows[r * cols + k] * inverse[k * cols + c];
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(divided[r * cols + c], sum, 1e-4 * size + 1e-7);
      }
  }
}

TEST(ErrorFactor, DampsWhatIsSingular) {
  // Two columns that are always the same.
  std::vector<float> second = {1, 1, 1, 1};
  ErrorFactor factor;
  ASSERT_TRUE(ErrorFactor::of(dense(), second, 2, 0.01f, factor));
  EXPECT_FLOAT_EQ(factor.damp, 0.01f);
  // Nothing to go by at all, or no second moments.
  EXPECT_FALSE(
      ErrorFactor::of(dense(), std::vector<float>(4), 2, 0.01f, factor));
  EXPECT_FALSE(ErrorFactor::of(dense(), {1, 40, 40, 1}, 2, 0.01f, factor));
}

} // namespace
