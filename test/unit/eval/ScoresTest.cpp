//===- ScoresTest.cpp - Losses, KL and their summary ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-eval/ProgressLine.h"
#include "tools/sparkc-eval/Scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace sparkc::eval;

/// ln of the softmax, in long double, without tricks.
static std::vector<long double> logSoftmax(const std::vector<float> &logits) {
  long double sum = 0;
  for (float x : logits)
    sum += std::exp(static_cast<long double>(x));
  std::vector<long double> out;
  for (float x : logits)
    out.push_back(x - std::log(sum));
  return out;
}

TEST(Scores, AgreeWithTheDefinition) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 4);
  for (size_t vocab : {1, 2, 7, 1000}) {
    std::vector<float> x(vocab), y(vocab);
    for (size_t v = 0; v < vocab; ++v) {
      x[v] = normal(rng);
      y[v] = x[v] + 0.3f * normal(rng);
    }
    auto p = logSoftmax(x), r = logSoftmax(y);
    long double kl = 0;
    for (size_t v = 0; v < vocab; ++v)
      kl += std::exp(r[v]) * (r[v] - p[v]);
    const int32_t target = static_cast<int32_t>(vocab / 2);
    RowScore both, alone;
    ASSERT_TRUE(scoreRow(x.data(), y.data(), vocab, target, both));
    ASSERT_TRUE(scoreRow(x.data(), nullptr, vocab, target, alone));
    EXPECT_NEAR(both.loss, double(-p[target]), 1e-12);
    EXPECT_NEAR(both.referenceLoss, double(-r[target]), 1e-12);
    EXPECT_NEAR(both.kl, double(kl), 1e-12);
    EXPECT_EQ(both.sameTop, likeliest(x.data(), vocab) == likeliest(y.data(), vocab));
    EXPECT_EQ(alone.loss, both.loss);
    EXPECT_EQ(alone.kl, 0);
  }
}

// A model against itself has no distance at all, also where exp underflows.
TEST(Scores, AModelEqualsItself) {
  const float far[] = {500.0f, -500.0f, 499.5f, -1e30f};
  RowScore score;
  ASSERT_TRUE(scoreRow(far, far, 4, 1, score));
  EXPECT_EQ(score.kl, 0);
  EXPECT_TRUE(score.sameTop);
  EXPECT_EQ(score.loss, score.referenceLoss);
  EXPECT_NEAR(score.loss, 1000 + std::log(1 + std::exp(-0.5)), 1e-9);
}

// The direction is reference || model: a token that the model thinks impossible
// costs much, one that only the model thinks likely costs little.
TEST(Scores, DirectionOfKL) {
  const float model[] = {0, -20}, reference[] = {0, 0};
  RowScore score, other;
  ASSERT_TRUE(scoreRow(model, reference, 2, 0, score));
  ASSERT_TRUE(scoreRow(reference, model, 2, 0, other));
  EXPECT_NEAR(score.kl, 10 - std::log(2), 1e-6);
  EXPECT_NEAR(other.kl, std::log(2), 1e-6);
}

TEST(Scores, RefuseWhatIsNoNumber) {
  const float good[] = {1, 2, 3};
  for (float bad : {std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    const float row[] = {1, bad, 3};
    RowScore score;
    EXPECT_FALSE(scoreRow(row, nullptr, 3, 0, score));
    EXPECT_FALSE(scoreRow(row, good, 3, 0, score));
    EXPECT_FALSE(scoreRow(good, row, 3, 0, score));
  }
}

TEST(Scores, EqualLogitsPreferTheLowerId) {
  const float row[] = {1, 3, 2, 3};
  EXPECT_EQ(likeliest(row, 4), 1);
}

TEST(Scores, MeanAndItsError) {
  Mean m = meanOf({1, 2, 3, 6});
  EXPECT_DOUBLE_EQ(m.value, 3);
  // s^2 = (4 + 1 + 0 + 9) / 3
  EXPECT_DOUBLE_EQ(m.error, std::sqrt(14.0 / 3 / 4));
  EXPECT_EQ(meanOf({5}).value, 5);
  EXPECT_TRUE(std::isnan(meanOf({5}).error));
}

TEST(Scores, Quantiles) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
  std::vector<double> hundred;
  for (int i = 100; i >= 0; --i)
    hundred.push_back(i);
  EXPECT_DOUBLE_EQ(quantile(hundred, 0.99), 99);
}

TEST(Scores, Summary) {
  // loss, the reference's, KL, same top
  std::vector<RowScore> rows = {{1, 1, 0.1, true}, {3, 2, 0.3, false}};
  Summary all = summarize(rows);
  EXPECT_EQ(all.tokens, 2u);
  EXPECT_DOUBLE_EQ(all.perplexity.value, std::exp(2.0));
  EXPECT_DOUBLE_EQ(all.perplexity.error, std::exp(2.0) * 1.0);
  EXPECT_DOUBLE_EQ(all.referencePerplexity.value, std::exp(1.5));
  EXPECT_DOUBLE_EQ(all.increase.value, std::exp(0.5) - 1);
  EXPECT_DOUBLE_EQ(all.increase.error, std::exp(0.5) * 0.5);
  EXPECT_DOUBLE_EQ(all.kl.value, 0.2);
  EXPECT_DOUBLE_EQ(all.kl99, 0.298);
  EXPECT_DOUBLE_EQ(all.top1.value, 0.5);
}

TEST(ProgressLine, FitsAnEightyColumnTerminal) {
  EXPECT_EQ(ProgressLine::text(0, 4, 0, 0),
            "[........................] 0/4 windows");
  EXPECT_EQ(ProgressLine::text(1, 4, 32.7981, 2),
            "[######..................] 1/4 windows, perplexity 32.798, 6 s "
            "left");
  EXPECT_LT(ProgressLine::text(99999999, 100000000, 1e30, 1e9).size(), 80u);
}
