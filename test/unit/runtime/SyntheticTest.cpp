//===- SyntheticTest.cpp - Weights that come from no file -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Synthetic.h"
#include "test/unit/runtime/ToyFiles.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {

float halfToFloat(uint16_t half) {
  int exponent = half >> 10 & 31, mantissa = half & 1023;
  float value = exponent == 31 ? INFINITY
                : exponent == 0
                    ? std::ldexp(float(mantissa), -24)
                    : std::ldexp(float(mantissa | 1024), exponent - 25);
  return half & 0x8000 ? -value : value;
}

TEST(SyntheticTest, SmallHoweverItIsRead) {
  const uint32_t quantized[] = {SPARKC_LAYOUT_VECTOR_F32,
                                SPARKC_LAYOUT_TILE16_Q4};
  const uint32_t plain[] = {SPARKC_LAYOUT_VECTOR_F32, SPARKC_LAYOUT_ROWS_BF16,
                            SPARKC_LAYOUT_TILE16_BF16};
  for (bool scales : {true, false}) {
    std::vector<uint8_t> data(64 * 1024);
    scales ? fillSynthetic(data.data(), data.size(), quantized, 2)
           : fillSynthetic(data.data(), data.size(), plain, 3);
    int negative = 0;
    for (size_t i = 0; i < data.size(); i += 4) {
      float f;
      uint16_t words[2];
      memcpy(&f, &data[i], 4);
      memcpy(words, &data[i], 4);
      negative += f < 0;
      ASSERT_LT(std::fabs(f), 0.05f);
      ASSERT_GT(std::fabs(f), 1e-4f);
      for (uint16_t word : words) {
        uint32_t bits = uint32_t(word) << 16;
        float bf16;
        memcpy(&bf16, &bits, 4);
        ASSERT_LT(std::fabs(bf16), 0.05f);
        ASSERT_TRUE(std::isnormal(bf16));
        if (scales) {
          ASSERT_LE(std::fabs(halfToFloat(word)), 1.0f);
          ASSERT_GT(std::fabs(halfToFloat(word)), 1e-3f);
        }
      }
    }
    EXPECT_NEAR(negative, int(data.size() / 8), int(data.size() / 100));
  }
}

TEST(SyntheticTest, AnyLength) {
  const uint32_t layouts[] = {SPARKC_LAYOUT_TILE16_F32};
  uint8_t data[24];
  memset(data, 0xee, sizeof data);
  fillSynthetic(data, 13, layouts, 1);
  for (size_t i = 13; i < sizeof data; ++i)
    EXPECT_EQ(data[i], 0xee);
}

sparkc_status openSynthetic(const std::string &so, const char *weights,
                            uint32_t flags, ModelPtr &model) {
  sparkc_open_options options = {};
  options.struct_size = sizeof options;
  options.flags = SPARKC_OPEN_SYNTHETIC | flags;
  sparkc_model *opened = nullptr;
  sparkc_status status =
      sparkc_open(so.c_str(), weights, &options, &opened, nullptr);
  model.reset(opened);
  return status;
}

TEST(SyntheticTest, RunsWithoutAWeightsFile) {
  TempDir dir;
  std::string so = dir / "alone.so";
  writeFile(so, objectImage());
  ModelPtr model;
  ASSERT_EQ(openSynthetic(so, nullptr, 0, model), SPARKC_OK);
  sparkc_model_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(sparkc_info(model.get(), &info), SPARKC_OK);
  EXPECT_STREQ(info.weights_path, "");
  EXPECT_EQ(strlen(info.digest), 32u);
  EXPECT_STRNE(info.digest, "1546867423105cd5d7428746842be37e");
  EXPECT_EQ(info.has_tokenizer, 0u);
  size_t n;
  EXPECT_EQ(sparkc_tokenize(model.get(), "x", 1, 0, nullptr, 0, &n, nullptr),
            SPARKC_NO_TOKENIZER);

  // Two of them compute the same; what one saved does not fit a real model.
  std::vector<int32_t> tokens = someTokens(8);
  ModelPtr again;
  ASSERT_EQ(openSynthetic(so, nullptr, 0, again), SPARKC_OK);
  EXPECT_EQ(reference(model, tokens), reference(again, tokens));
  SessionPtr session = newSession(model);
  std::vector<float> logits(TOY_VOCAB);
  ASSERT_EQ(sparkc_decode(session.get(), 3, logits.data()), SPARKC_OK);
  std::string saved = dir / "saved";
  ASSERT_EQ(sparkc_session_save(session.get(), saved.c_str(), nullptr),
            SPARKC_OK);
  EXPECT_EQ(
      sparkc_session_restore(newSession(again).get(), saved.c_str(), nullptr),
      SPARKC_OK);
  ModelPtr real = openToy(dir);
  EXPECT_EQ(
      sparkc_session_restore(newSession(real).get(), saved.c_str(), nullptr),
      SPARKC_MISMATCH);
}

TEST(SyntheticTest, TakesNoFile) {
  TempDir dir;
  std::string so = writePair(dir, objectImage(), weightsImage());
  ModelPtr model;
  EXPECT_EQ(openSynthetic(so, (dir / "model.weights").c_str(), 0, model),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(openSynthetic(so, nullptr, SPARKC_OPEN_VERIFY, model),
            SPARKC_INVALID_ARGUMENT);
}

} // namespace
