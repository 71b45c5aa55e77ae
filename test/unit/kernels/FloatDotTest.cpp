//===- FloatDotTest.cpp - The float kernels against their definition ------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Half.h"
#include "codegen/weights/QuantizedTile.h"
#include "test/unit/kernels/KernelObject.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

namespace {

constexpr int64_t kCols[] = {1, 2, 3, 4, 5, 7, 15, 16, 17, 50, 2880, 2883};

/// The products of column k go to chain k mod 4; (c0 + c1) + (c2 + c3).
float definition(const float *weights, const float *x, int64_t cols) {
  float chains[4] = {};
  for (int64_t k = 0; k < cols; ++k)
    chains[k % 4] = std::fma(weights[k], x[k], chains[k % 4]);
  return (chains[0] + chains[1]) + (chains[2] + chains[3]);
}

class FloatDot
    : public testing::TestWithParam<std::tuple<const char *, const char *>> {};

} // namespace

TEST_P(FloatDot, HasTheBitsOfTheDefinition) {
  auto [name, cpu] = GetParam();
  const TileKernel *kernel = findTileKernel(name);
  ASSERT_NE(kernel, nullptr);
  auto target = resolveTarget(cpu);
  ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
  if (!hostRuns(*target))
    GTEST_SKIP() << "this host lacks features of " << cpu;
  KernelObject object;
  for (int64_t cols : kCols)
    object.add("k" + std::to_string(cols),
               [&](Emitter &e, mlir::Value tile, mlir::Value x,
                   mlir::Value out) {
                 e.store(kernel->build(e, {tile, x, cols})[0], out);
               });
  ASSERT_EQ(object.compile(*target), "");

  std::mt19937 rng(5);
  std::normal_distribution<float> normal;
  for (int64_t cols : kCols) {
    PackedMatrix m =
        PackedMatrix::plain(*layoutFromName(kernel->layout), 16, cols);
    GuardedBytes tile(m.tileBytes()), x(4 * cols);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<float> source(kTileRows * cols);
      for (float &w : source)
        w = std::ldexp(normal(rng), repeat % 2 ? 0 : int(rng() % 60) - 30);
      SourceMatrix matrix{reinterpret_cast<const uint8_t *>(source.data()),
                          SourceType::F32, kTileRows, cols, "w"};
      packFloatTile(m, 0, {matrix}, tile.data());
      // As stored: bfloat16 rounds.
      dequantizeTile(m, tile.data(), source.data());
      for (int64_t k = 0; k < cols; ++k)
        x.as<float>()[k] = normal(rng);
      float out[kTileRows];
      object.get("k" + std::to_string(cols))(tile.data(), x.data(), out);
      for (int64_t lane = 0; lane < kTileRows; ++lane)
        ASSERT_EQ(bitsFromFloat(out[lane]),
                  bitsFromFloat(definition(&source[lane * cols],
                                           x.as<float>(), cols)))
            << cols << " columns, lane " << lane;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, FloatDot,
    testing::Combine(testing::Values("dot_f32", "dot_bf16"),
                     testing::Values("x86-64-v3", "x86-64-v4")),
    [](const auto &info) {
      std::string name = std::string(std::get<0>(info.param)) + "_on_" +
                         std::get<1>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

/// Nothing in the table is left out by these tests.
TEST(TileKernels, EveryLineIsTested) {
  for (const TileKernel &kernel : tileKernels()) {
    auto layout = layoutFromName(kernel.layout);
    ASSERT_TRUE(layout.has_value()) << kernel.name;
    EXPECT_TRUE(isTiled(*layout)) << kernel.name;
    bool here = llvm::StringRef(kernel.name) == "dot_f32" ||
                llvm::StringRef(kernel.name) == "dot_bf16";
    EXPECT_EQ(here, !isQuantized(*layout)) << kernel.name;
    EXPECT_EQ(findTileKernel(kernel.name), &kernel);
  }
}

/// A machine gets the best kernel that it can run.
TEST(TileKernels, Selection) {
  auto selected = [](const char *layout, const char *isa) {
    const TileKernel *kernel = selectTileKernel(layout, *isaFromName(isa));
    return std::string(kernel ? kernel->name : "none");
  };
  EXPECT_EQ(selected("tile16_q4", "avx2"), "dot_q4_avx2");
  EXPECT_EQ(selected("tile16_q4", "avxvnni"), "dot_q4_avxvnni");
  EXPECT_EQ(selected("tile16_q4", "avx512"), "dot_q4_avx2");
  EXPECT_EQ(selected("tile16_q4", "avx512vnni"), "dot_q4_avx512vnni");
  EXPECT_EQ(selected("tile16_q6", "amx"), "dot_q6_avx512vnni");
  EXPECT_EQ(selected("tile16_bf16", "amx"), "dot_bf16");
  EXPECT_EQ(selected("rows_bf16", "amx"), "none");
  EXPECT_EQ(findTileKernel("dot_q3_avx2"), nullptr);
}
