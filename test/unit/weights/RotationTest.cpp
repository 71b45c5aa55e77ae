//===- RotationTest.cpp - Orthogonal matrices that spread outliers --------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Rotation.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace sparkc;

namespace {

using Matrix = std::vector<std::vector<double>>;

/// Row by row: what unit vectors become.
Matrix denseOf(const Rotation &rotation) {
  Matrix rows;
  for (int64_t i = 0; i < rotation.size(); ++i) {
    std::vector<double> v(rotation.size());
    v[i] = 1;
    rotation.apply(v.data());
    rows.push_back(v);
  }
  return rows;
}

class Sizes : public testing::TestWithParam<int64_t> {};

TEST_P(Sizes, AreOrthogonal) {
  const Matrix r = denseOf(Rotation(GetParam(), 7));
  for (size_t i = 0; i < r.size(); ++i)
    for (size_t j = 0; j < r.size(); ++j) {
      double dot = 0;
      for (size_t k = 0; k < r.size(); ++k)
        dot += r[i][k] * r[j][k];
      ASSERT_NEAR(dot, i == j ? 1 : 0, 1e-13) << i << " " << j;
    }
}

TEST_P(Sizes, AreSignsTimesAKroneckerProduct) {
  const int64_t n = GetParam();
  const Matrix r = denseOf(Rotation(n, 7));
  int64_t power = 1;
  while (n % (2 * power) == 0)
    power *= 2;
  const int64_t odd = n / power;
  const double pi = std::acos(-1.0);
  int negative = 0;
  for (int64_t i = 0; i < n; ++i) {
    // Column 0 of both factors is ones: it shows the sign.
    const double sign = r[i][0] * std::sqrt(double(n));
    ASSERT_NEAR(std::fabs(sign), 1, 1e-13);
    negative += sign < 0;
    for (int64_t j = 0; j < n; ++j) {
      const double t = 2 * pi * double(i / power) * double(j / power) / odd;
      const int bits = llvm::popcount(uint64_t(i % power) & (j % power));
      const double want = (std::cos(t) + std::sin(t)) * (bits % 2 ? -1 : 1);
      ASSERT_NEAR(r[i][j], sign * want / std::sqrt(double(n)), 1e-12)
          << i << " " << j;
    }
  }
  if (n >= 16) {
    EXPECT_GT(negative, n / 5);
    EXPECT_LT(negative, n - n / 5);
  }
}

TEST_P(Sizes, VectorsSideBySideAreRotatedAlike) {
  const int64_t n = GetParam();
  const Rotation rotation(n, 3);
  std::mt19937 rng(1);
  std::normal_distribution<double> normal;
  for (int64_t lanes : {2, 5, 16}) {
    std::vector<double> all(n * lanes);
    for (double &x : all)
      x = normal(rng);
    std::vector<double> together = all;
    rotation.apply(together.data(), lanes);
    for (int64_t l = 0; l < lanes; ++l) {
      std::vector<double> one(n);
      for (int64_t i = 0; i < n; ++i)
        one[i] = all[i * lanes + l];
      rotation.apply(one.data());
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(one[i], together[i * lanes + l]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rotation, Sizes,
                         testing::Values(1, 2, 3, 6, 15, 24, 40, 64, 96, 180,
                                         256),
                         testing::PrintToStringParamName());

TEST(Rotation, SeedsDiffer) {
  const Matrix a = denseOf(Rotation(64, 1)), b = denseOf(Rotation(64, 2));
  EXPECT_EQ(a, denseOf(Rotation(64, 1)));
  int different = 0;
  for (int i = 0; i < 64; ++i)
    different += a[i][0] != b[i][0];
  EXPECT_GT(different, 16);
  EXPECT_LT(different, 48);
}

// What a seed stands for does not change: a model that is compiled again has
// the same bits.
TEST(Rotation, SignsOfSeedOne) {
  const Matrix r = denseOf(Rotation(16, 1));
  std::string signs;
  for (int i = 0; i < 16; ++i)
    signs += r[i][0] < 0 ? '-' : '+';
  EXPECT_EQ(signs, "---++---+-+-+-++");
}

} // namespace
