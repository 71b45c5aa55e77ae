//===- RoundingTest.cpp - Rounding that makes up for its errors -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Rounding.h"
#include "Activations.h"
#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/Half.h"
#include "gtest/gtest.h"

using namespace sparkc;
using namespace sparkc::test;

namespace {

struct Problem {
  Problem(int64_t rows, int64_t cols, unsigned seed)
      : rows(rows), cols(cols), weights(normals(rows, cols, seed)),
        moments(cols, 0) {
    std::vector<float> x = activations(4 * cols, cols, seed + 1);
    moments.add(dense(), x.data(), x.data(), nullptr, 4 * cols);
    moments.finish();
    EXPECT_TRUE(
        ErrorFactor::of(dense(), moments.second, cols, 0.01f, factor));
  }
  /// sum e (S + damp) e^T of a rounding.
  double loss(const Rounded &rounded) const {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<double> e(cols);
      for (int64_t c = 0; c < cols; ++c)
        e[c] = rounded.value(r, c) - weights[r * cols + c];
      for (int64_t i = 0; i < cols; ++i)
        for (int64_t j = 0; j < cols; ++j)
          sum += e[i] * factor.damped[i * cols + j] * e[j];
    }
    return sum;
  }
  /// Each group fitted for itself, as it is without calibration.
  Rounded plain(const GridSpec &grid) const {
    Rounded out{grid, rows, cols, {}, {}, {}};
    out.codes.resize(rows * cols);
    out.scales.resize(rows * cols / grid.group);
    out.zeros.resize(out.scales.size());
    std::vector<float> group(16 * grid.group);
    std::vector<uint8_t> codes(16 * grid.group);
    uint16_t scales[16];
    uint8_t zeros[16];
    float noise[16];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t g = 0; g < cols / grid.group; ++g) {
        for (int64_t k = 0; k < grid.group; ++k)
          for (int l = 0; l < 16; ++l)
            group[16 * k + l] = weights[r * cols + g * grid.group + k];
        fitGroups16(grid, group.data(), nullptr, codes.data(), scales, zeros,
                    noise);
        for (int64_t k = 0; k < grid.group; ++k)
          out.codes[r * cols + g * grid.group + k] = codes[16 * k];
        out.scales[r * (cols / grid.group) + g] = scales[0];
        out.zeros[r * (cols / grid.group) + g] = zeros[0];
      }
    return out;
  }

  int64_t rows, cols;
  std::vector<float> weights;
  Moments moments;
  ErrorFactor factor;
};

TEST(Rounding, LosesMuchLessThanRoundingToNearest) {
  Problem problem(70, 256, 1); // rows: a strip, and 6 of the next
  for (GridSpec grid : {GridSpec{4, 32}, GridSpec{4, 64}, GridSpec{4, 128},
                        GridSpec{4, 64, true}, GridSpec{5, 64}, GridSpec{6, 64},
                        GridSpec{8, 128}}) {
    Rounded rounded = roundRows(dense(), problem.weights.data(), problem.rows,
                                grid, problem.factor);
    double plain = problem.loss(problem.plain(grid));
    double loss = problem.loss(rounded);
    EXPECT_LT(loss, 0.5 * plain) << grid.bits << " " << grid.group;
    EXPECT_NEAR(rounded.loss, loss, 0.01 * loss);
    EXPECT_LE(rounded.loss, rounded.firstLoss);
    for (size_t i = 0; i < rounded.codes.size(); ++i)
      ASSERT_LE(rounded.codes[i], grid.maxCode());
    for (uint8_t zero : rounded.zeros) {
      ASSERT_LE(zero, grid.maxCode());
      if (grid.symmetric) {
        ASSERT_EQ(zero, 1 << (grid.bits - 1));
      }
    }
  }
}

TEST(Rounding, SweepsOnlyHelp) {
  Problem problem(40, 256, 2);
  double before = 0;
  for (int sweeps : {0, 1, 2, 4}) {
    Rounded rounded = roundRows(dense(), problem.weights.data(), problem.rows,
                                {4, 64}, problem.factor, {sweeps});
    if (sweeps) {
      EXPECT_LE(rounded.loss, before * (1 + 1e-5)) << sweeps;
    }
    before = rounded.loss;
  }
}

TEST(Rounding, TriesMoreThanTheFitOfPlainSquares) {
  // The first rounding without and with scales tried beside the fit differ by
  // more than chance: a fit of the group alone, in the order of the columns,
  // with each error handed on.
  Problem problem(64, 256, 8);
  const GridSpec grid{4, 64};
  Rounded rounded = roundRows(dense(), problem.weights.data(), problem.rows,
                              grid, problem.factor, {0});
  double plain = 0;
  const int64_t cols = problem.cols;
  std::vector<float> rest = problem.weights, importance(cols);
  const std::vector<float> &upper = problem.factor.upper;
  for (int64_t c = 0; c < cols; ++c)
    importance[c] = 1 / (upper[c * cols + c] * upper[c * cols + c]);
  for (int64_t r = 0; r < problem.rows; r += 16)
    for (int64_t at = 0; at < cols; at += 64) {
      std::vector<float> w(64 * 16), zeros(16), scales(16), steps(64 * 16),
          errors(64 * 16), loss(16);
      std::vector<uint8_t> codes(64 * 16);
      uint16_t halves[16];
      uint8_t points[16];
      float noise[16];
      for (int64_t k = 0; k < 64; ++k)
        for (int64_t l = 0; l < 16; ++l)
          w[k * 16 + l] = rest[(r + l) * cols + at + k];
      fitGroups16(grid, w.data(), &importance[at], codes.data(), halves, points,
                  noise);
      for (int64_t l = 0; l < 16; ++l) {
        scales[l] = floatFromF16(halves[l]);
        zeros[l] = points[l];
      }
      dense().roundGroup(w.data(), 64, &upper[at * cols + at], cols,
                         scales.data(), zeros.data(), 15, steps.data(),
                         errors.data(), loss.data());
      for (int64_t l = 0; l < 16; ++l) {
        plain += loss[l];
        for (int64_t k = 0; k < 64; ++k)
          for (int64_t c = at + 64; c < cols; ++c)
            rest[(r + l) * cols + c] -=
                errors[k * 16 + l] * upper[(at + k) * cols + c];
      }
    }
  EXPECT_LT(rounded.firstLoss, 0.98 * plain);
}

TEST(Rounding, RowsAreOnTheirOwn) {
  Problem problem(130, 128, 3);
  GridSpec grid{4, 64};
  Rounded all = roundRows(dense(), problem.weights.data(), 130, grid,
                          problem.factor);
  Rounded part = roundRows(dense(), &problem.weights[64 * 128], 64, grid,
                           problem.factor);
  EXPECT_TRUE(std::equal(part.codes.begin(), part.codes.end(),
                         all.codes.begin() + 64 * 128));
  EXPECT_TRUE(std::equal(part.scales.begin(), part.scales.end(),
                         all.scales.begin() + 64 * 2));
}

TEST(Rounding, KeepsWhatIsOnTheGrid) {
  // Zeros, and rows that 4 bits hold exactly.
  const int64_t cols = 128;
  Problem problem(3, cols, 4);
  for (int64_t c = 0; c < cols; ++c) {
    problem.weights[c] = 0;
    problem.weights[cols + c] = 0.25f * float(c % 16 - 7);
    problem.weights[2 * cols + c] = -0.5f * float(c * 5 % 16 - 3);
  }
  Rounded rounded =
      roundRows(dense(), problem.weights.data(), 3, {4, 64}, problem.factor);
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t c = 0; c < cols; ++c)
      ASSERT_EQ(rounded.value(r, c), problem.weights[r * cols + c]);
}

TEST(Rounding, BlocksReadBack) {
  Problem problem(5, 128, 5);
  for (GridSpec grid : {GridSpec{4, 32}, GridSpec{5, 64}, GridSpec{8, 128}}) {
    Rounded rounded = roundRows(dense(), problem.weights.data(), 5, grid,
                                problem.factor);
    std::vector<uint8_t> bytes = rounded.blocks();
    const BlockFormat &format = codeFormatOf(grid);
    const int64_t row = 128 / format.block * format.bytes;
    ASSERT_EQ(int64_t(bytes.size()), 5 * row);
    SourceMatrix source;
    source.data = bytes.data();
    source.type = format.type;
    source.rows = 5;
    source.cols = 128;
    std::vector<float> values(128);
    for (int64_t r = 0; r < 5; ++r) {
      readBlockRow(source, r, values.data());
      for (int64_t c = 0; c < 128; ++c)
        ASSERT_EQ(values[c], rounded.value(r, c));
    }
  }
}

TEST(Aim, MakesUpForOtherInputs) {
  // Inputs that come out too small by a fifth: what is aimed at is larger.
  const int64_t rows = 4, cols = 64, tokens = 400;
  std::vector<float> y = activations(tokens, cols, 6), x = y,
                     weights = normals(rows, cols, 7);
  for (float &v : x)
    v *= 0.8f;
  Moments moments(cols, 0);
  moments.add(dense(), x.data(), y.data(), nullptr, tokens);
  moments.finish();
  ErrorFactor factor;
  ASSERT_TRUE(ErrorFactor::of(dense(), moments.second, cols, 1e-4f, factor));
  std::vector<float> aim =
      aimOf(dense(), weights.data(), 0, rows, moments, factor);
  for (int64_t i = 0; i < rows * cols; ++i)
    ASSERT_NEAR(aim[i], weights[i] / 0.8f, 0.02f);
  // And what the residual stream lacks: here the weights' own output once more.
  Moments lacking(cols, rows);
  std::vector<float> r(tokens * rows);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < cols; ++c)
        r[t * rows + i] += weights[i * cols + c] * y[t * cols + c];
  lacking.add(dense(), y.data(), y.data(), r.data(), tokens);
  lacking.finish();
  ASSERT_TRUE(ErrorFactor::of(dense(), lacking.second, cols, 1e-4f, factor));
  aim = aimOf(dense(), weights.data(), 0, rows, lacking, factor);
  for (int64_t i = 0; i < rows * cols; ++i)
    ASSERT_NEAR(aim[i], 2 * weights[i], 0.02f);
}

} // namespace
