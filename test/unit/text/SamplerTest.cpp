//===- SamplerTest.cpp - Choosing the next token --------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace sparkc;

static const float kNan = std::nanf("");
static const float kInf = INFINITY;

static SamplerOptions options(double temperature, double topP = 1,
                              uint32_t topK = 0, uint64_t seed = 1) {
  SamplerOptions o;
  o.temperature = temperature;
  o.topP = topP;
  o.topK = topK;
  o.seed = seed;
  return o;
}

static int32_t greedy(const std::vector<float> &logits) {
  return Sampler(options(0)).sample(logits.data(), logits.size());
}

/// How often each token is chosen.
static std::vector<int> counts(const std::vector<float> &logits,
                               SamplerOptions o, int draws) {
  Sampler sampler(o);
  std::vector<int> count(logits.size());
  for (int i = 0; i < draws; ++i) {
    int32_t id = sampler.sample(logits.data(), logits.size());
    EXPECT_GE(id, 0);
    ++count[static_cast<size_t>(id)];
  }
  return count;
}

static std::vector<float> randomLogits(size_t n, uint64_t seed) {
  std::vector<float> logits(n);
  for (float &logit : logits) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    logit = static_cast<float>(seed >> 40) * (16.0f / (1 << 24)) - 8;
  }
  return logits;
}

/// The tokens that top-k and then top-p keep, by the definition.
static std::vector<size_t> keptByDefinition(const std::vector<float> &logits,
                                            SamplerOptions o) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (o.topK)
    order.resize(std::min<size_t>(order.size(), o.topK));
  std::vector<double> p;
  for (size_t id : order)
    p.push_back(
        std::exp((double(logits[id]) - logits[order[0]]) / o.temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  double sum = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || sum < o.topP * total))
    sum += p[count++];
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Sampler, GreedyTakesTheLargestThenTheLowest) {
  EXPECT_EQ(greedy({1, 3, 2}), 1);
  EXPECT_EQ(greedy({1, 3, 2, 3}), 1);
  EXPECT_EQ(greedy({-5, -5}), 0);
  EXPECT_EQ(greedy({-0.0f, 0.0f}), 0);
  std::vector<float> logits(1000, 0.0f);
  logits[997] = logits[998] = 1;
  EXPECT_EQ(greedy(logits), 997);
}

TEST(Sampler, NotANumberIsNeverChosen) {
  EXPECT_EQ(greedy({kNan, 1, kNan, 2, kNan}), 3);
  EXPECT_EQ(greedy({kNan, -kInf, kNan, -1e30f}), 3);
  for (const std::vector<float> &none :
       {std::vector<float>{kNan, kNan}, {-kInf, -kInf}, {kNan, -kInf}}) {
    EXPECT_EQ(greedy(none), -1);
    Sampler sampler(options(1));
    EXPECT_EQ(sampler.sample(none.data(), none.size()), -1);
  }
  std::vector<int> count =
      counts({kNan, 1, -kInf, 1, kNan}, options(1, 0.9, 4), 500);
  EXPECT_EQ(count[0] + count[2] + count[4], 0);
  EXPECT_GT(count[1], 0);
  EXPECT_GT(count[3], 0);
  EXPECT_EQ(counts({0, kInf, 5, kInf}, options(1), 20)[1], 20);
}

/// SplitMix64 from 0 begins e220a839.., 6e789e6a.., 06c45d18.., f88bb8a8..:
/// its top two bits choose among four equal tokens.
TEST(Sampler, RandomNumbersAreSplitMix64s) {
  const std::vector<float> logits = {2, 2, 2, 2};
  Sampler sampler(options(1, 1, 0, 0));
  for (int32_t expected : {3, 1, 0, 3})
    EXPECT_EQ(sampler.sample(logits.data(), logits.size()), expected);
}

TEST(Sampler, ASeedFixesTheSequence) {
  const std::vector<float> logits = randomLogits(5000, 5);
  std::vector<int32_t> first, again, other;
  Sampler a(options(0.8, 0.95, 0, 42)), b(options(0.8, 0.95, 0, 42)),
      c(options(0.8, 0.95, 0, 43));
  for (int i = 0; i < 50; ++i) {
    first.push_back(a.sample(logits.data(), logits.size()));
    again.push_back(b.sample(logits.data(), logits.size()));
    other.push_back(c.sample(logits.data(), logits.size()));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(Sampler, FrequenciesAreTheProbabilities) {
  const std::vector<float> logits = {0, 1, 2, 3, -1};
  for (double temperature : {0.5, 1.0, 2.0}) {
    const int draws = 40000;
    std::vector<int> count = counts(logits, options(temperature), draws);
    double total = 0;
    for (float logit : logits)
      total += std::exp(logit / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      double p = std::exp(logits[i] / temperature) / total;
      double sigma = std::sqrt(p * (1 - p) / draws);
      EXPECT_NEAR(double(count[i]) / draws, p, 5 * sigma + 1e-4) << i;
    }
  }
}

/// Exactly the tokens of the definition are chosen, each of them.
TEST(Sampler, TopKAndTopPKeepWhatTheDefinitionKeeps) {
  const std::vector<float> logits = randomLogits(60, 9);
  for (SamplerOptions o :
       {options(1, 0.5), options(1, 0.9), options(3, 0.7), options(1, 1, 5),
        options(2, 0.8, 10), options(1, 1e-9), options(1, 1, 1),
        options(5, 0.99, 59), options(4, 1, 1000)}) {
    std::vector<int> count = counts(logits, o, 20000);
    std::vector<size_t> seen;
    for (size_t i = 0; i < count.size(); ++i)
      if (count[i])
        seen.push_back(i);
    std::vector<size_t> kept = keptByDefinition(logits, o);
    // Draws may miss the rarest, but never go outside.
    EXPECT_TRUE(
        std::includes(kept.begin(), kept.end(), seen.begin(), seen.end()));
    EXPECT_GE(seen.size() + 2, kept.size());
    EXPECT_LE(seen.size(), kept.size());
  }
}

TEST(Sampler, TopPReachesIntoLargeVocabularies) {
  for (uint64_t seed : {1, 2, 3}) {
    const std::vector<float> logits = randomLogits(131072, seed);
    for (SamplerOptions o : {options(0.3, 0.5), options(1, 0.95),
                             options(10, 0.2), options(1, 0.9, 100)}) {
      std::vector<size_t> kept = keptByDefinition(logits, o);
      Sampler sampler(o);
      for (int i = 0; i < 10; ++i) {
        int32_t id = sampler.sample(logits.data(), logits.size());
        EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(),
                                       static_cast<size_t>(id)));
      }
    }
  }
}

TEST(Sampler, TiesAtTheEdgeGoToTheLowerIds) {
  std::vector<int> count = counts({1, 1, 1, 1, 1, 1}, options(1, 1, 2), 200);
  EXPECT_EQ(count[0] + count[1], 200);
  count = counts({0, 1, 1, 1, 1, 0}, options(0.01, 0.5), 200);
  EXPECT_EQ(count[1] + count[2], 200);
}

TEST(Sampler, ExtremeTemperatures) {
  EXPECT_EQ(counts({1, 2, 1.999f}, options(1e-12), 50)[1], 50);
  std::vector<int> count = counts({-1000, 1000}, options(1e6), 2000);
  EXPECT_GT(count[0], 850);
  EXPECT_EQ(counts({3e38f, -3e38f}, options(1), 50)[0], 50);
}

TEST(Sampler, OptionsOutOfRangeAreRefused) {
  std::string error;
  EXPECT_TRUE(Sampler::check(options(0, 0), error));
  EXPECT_FALSE(Sampler::check(options(-1), error));
  EXPECT_EQ(error, "the temperature must be in 0 .. 1000000");
  EXPECT_FALSE(Sampler::check(options(std::nan("")), error));
  EXPECT_FALSE(Sampler::check(options(1, 1.01), error));
  EXPECT_EQ(error, "top-p must be in 0 .. 1");
  EXPECT_FALSE(Sampler::check(options(1, std::nan("")), error));
}
