//===- HalfTest.cpp - 16-bit floats ---------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Half.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace sparkc;
using llvm::APFloat;
using llvm::APInt;

static uint16_t narrow(float f, const llvm::fltSemantics &to) {
  APFloat value(f);
  bool lost;
  value.convert(to, APFloat::rmNearestTiesToEven, &lost);
  return value.bitcastToAPInt().getZExtValue();
}

TEST(Half, EveryF16WidensExactlyAndComesBack) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    APFloat value(APFloat::IEEEhalf(), APInt(16, h));
    float f = floatFromF16(h);
    if (value.isNaN()) {
      EXPECT_TRUE(std::isnan(f)) << h;
      continue;
    }
    EXPECT_EQ(bitsFromFloat(value.convertToFloat()), bitsFromFloat(f)) << h;
    EXPECT_EQ(f16FromFloat(f), h);
  }
}

TEST(Half, NarrowingRoundsToNearestEven) {
  std::mt19937 rng(1);
  auto check = [](uint32_t bits) {
    float f = floatFromBits(bits);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(floatFromF16(f16FromFloat(f))));
      EXPECT_TRUE(std::isnan(floatFromBF16(bf16FromFloat(f))));
      return;
    }
    EXPECT_EQ(f16FromFloat(f), narrow(f, APFloat::IEEEhalf())) << f;
    EXPECT_EQ(bf16FromFloat(f), narrow(f, APFloat::BFloat())) << f;
  };
  for (int i = 0; i < 100000; ++i)
    check(rng());
  // The range of float16 and its neighbourhood, all ties included.
  for (uint32_t h = 0; h < 0x8000; ++h)
    for (int32_t d : {-1, 0, 1, 0xfff, 0x1000, 0x1001})
      check(bitsFromFloat(floatFromF16(h)) + d);
  for (float f : {0.0f, -0.0f, 65504.0f, 65519.99f, 65520.0f, 1e30f, 2.98e-8f,
                  5.96e-8f, INFINITY, -INFINITY, NAN})
    check(bitsFromFloat(f));
}
