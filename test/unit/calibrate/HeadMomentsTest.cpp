//===- HeadMomentsTest.cpp - Second moments for sets of the head's rows ---===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/HeadMoments.h"
#include "Activations.h"
#include "codegen/calibrate/Rounding.h"
#include "gtest/gtest.h"
#include <cmath>
#include <mutex>

using namespace sparkc;
using namespace sparkc::test;

namespace {

struct Head {
  Head(int64_t rows, int64_t cols, int64_t tokens)
      : rows(rows), cols(cols), tokens(tokens), weights(normals(rows, cols, 1)),
        x(activations(tokens, cols, 2)), moments(cols, 0) {
    source.data = reinterpret_cast<const uint8_t *>(weights.data());
    source.type = SourceType::F32;
    source.rows = rows;
    source.cols = cols;
    for (int64_t t = 0; t < tokens; ++t)
      text.push_back(int32_t(t * 7 % rows));
    moments.add(dense(), x.data(), x.data(), nullptr, tokens);
    moments.finish();
  }
  /// Of row v behind token t.
  std::vector<double> probabilities(int64_t t) const {
    std::vector<double> p(rows);
    double sum = 0;
    for (int64_t v = 0; v < rows; ++v) {
      double logit = 0;
      for (int64_t c = 0; c < cols; ++c)
        logit += double(weights[v * cols + c]) * x[t * cols + c];
      sum += p[v] = std::exp(logit);
    }
    for (double &value : p)
      value /= sum;
    return p;
  }

  int64_t rows, cols, tokens;
  std::vector<float> weights, x;
  std::vector<int32_t> text;
  SourceMatrix source;
  Moments moments;
};

TEST(HeadMoments, AreThoseOfTheContextsOfASet) {
  Head head(40, 8, 300);
  HeadMoments own(dense(), head.source, head.text);
  own.add(head.x.data(), head.x.data(), 100); // in two pieces
  own.add(&head.x[100 * 8], &head.x[100 * 8], 200);
  own.finish();
  std::vector<bool> seen(40);
  std::mutex mutex;
  int sets = 0;
  auto regular = own.forSets(
      head.moments, 0.01f,
      [&](size_t set, llvm::ArrayRef<int64_t> rows, const ErrorFactor &factor) {
        std::lock_guard<std::mutex> lock(mutex);
        EXPECT_LT(set, own.size());
        ++sets;
        std::vector<double> wanted(64);
        for (int64_t i = 0; i < 64; ++i)
          wanted[i] = head.moments.second[i] * 5.0 / 300;
        for (int64_t t = 0; t < 300; ++t) {
          std::vector<double> p = head.probabilities(t);
          double share = 0;
          for (int64_t v : rows)
            share += p[v];
          for (int64_t i = 0; i < 8; ++i)
            for (int64_t j = 0; j < 8; ++j)
              wanted[i * 8 + j] +=
                  share * head.x[t * 8 + i] * head.x[t * 8 + j];
        }
        for (int64_t i = 0; i < 8; ++i)
          for (int64_t j = 0; j < 8; ++j)
            EXPECT_NEAR(factor.damped[i * 8 + j],
                        wanted[i * 8 + j] + (i == j ? factor.damp : 0),
                        0.02 * std::sqrt(wanted[i * 9] * wanted[j * 9]) + 0.1);
        for (int64_t v : rows) {
          EXPECT_FALSE(seen[v]);
          seen[v] = true;
        }
        return llvm::Error::success();
      });
  ASSERT_TRUE(bool(regular));
  EXPECT_TRUE(*regular);
  EXPECT_EQ(sets, 10); // a quarter of the rows
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](bool b) { return b; }));
}

TEST(HeadMoments, AlikeRowsShareASet) {
  Head head(64, 16, 50);
  // Rows 32 .. 63 are those of 0 .. 31, a little longer; the text has the first
  // sixteen most often.
  for (int64_t i = 0; i < 32 * 16; ++i)
    head.weights[32 * 16 + i] = 1.1f * head.weights[i];
  head.text.clear();
  for (int32_t t = 0; t < 200; ++t)
    head.text.push_back(t % 16);
  HeadMoments own(dense(), head.source, head.text);
  own.add(head.x.data(), head.x.data(), 50);
  own.finish();
  auto regular = own.forSets(
      head.moments, 0.01f,
      [&](size_t, llvm::ArrayRef<int64_t> rows, const ErrorFactor &) {
        for (int64_t v : rows)
          if (v < 16) {
            EXPECT_TRUE(llvm::is_contained(rows, v + 32)) << v;
          }
        return llvm::Error::success();
      });
  ASSERT_TRUE(bool(regular));
}

TEST(HeadMoments, ZerosAreSingular) {
  Head head(16, 8, 20);
  std::vector<float> zeros(20 * 8);
  Moments none(8, 0);
  none.tokens = 20;
  HeadMoments own(dense(), head.source, head.text);
  own.add(zeros.data(), zeros.data(), 20);
  own.finish();
  auto regular = own.forSets(none, 0.01f,
                             [&](size_t, llvm::ArrayRef<int64_t>,
                                 const ErrorFactor &) {
                               ADD_FAILURE();
                               return llvm::Error::success();
                             });
  ASSERT_TRUE(bool(regular));
  EXPECT_FALSE(*regular);
}

TEST(HeadMoments, GivesAnError) {
  Head head(40, 8, 300);
  HeadMoments own(dense(), head.source, head.text);
  own.add(head.x.data(), head.x.data(), 300);
  own.finish();
  auto regular = own.forSets(
      head.moments, 0.01f,
      [&](size_t set, llvm::ArrayRef<int64_t>, const ErrorFactor &) {
        return llvm::createStringError("set " + std::to_string(set));
      });
  ASSERT_FALSE(bool(regular));
  EXPECT_EQ(llvm::toString(regular.takeError()).substr(0, 4), "set ");
}

} // namespace
