//===- QuantizedGemmTest.cpp - Integer block kernels by definition --------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each line of the table of block kernels that reads an integer layout is
// compiled for the CPUs whose instruction sets get it, and run on random and
// extreme tiles, one to three of them, by quads of tokens. Every lane of every
// token must have the bits of referenceDot.
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/QuantizedOperands.h"

#include <gtest/gtest.h>


using namespace sparkc;
using namespace sparkc::test;

namespace {

/// Tokens of a call, and bytes between the accumulators of two.
constexpr int64_t kTokens = 2 * kQuad;
constexpr int64_t kRow = kBlockTiles * 64 + 64;

using Case = KernelCase<BlockKernel>;

/// A K longer than a chunk, and of the others those that differ.
std::vector<Shape> gemmShapes(Layout layout) {
  if (scaleForm(layout) != ScaleForm::Zero) {
    int64_t group = scaleForm(layout) == ScaleForm::Super ? 16 : 32;
    return {{712, group, group}, {1064, group, 16}, {1, group, group},
            {96, group, group}};
  }
  return {{712, 64, 64}, {1064, 128, 32}, {1, 32, 32},
          {50, 64, 64},  {96, 128, 64},   {584, 32, 32}};
}

std::string nameOf(const Shape &shape, int64_t count) {
  return shape.name() + "_t" + std::to_string(count);
}

/// A token's activation into its lane of a quad, as !step.block says.
void put(const Operands &o, int64_t token, const QuadLayout &quad,
         uint8_t *quads) {
  uint8_t *to = quads + token / kQuad * quad.bytes + token % kQuad * 4;
  for (int64_t i = 0; i < 4 * quad.words; ++i)
    to[i / 4 * 16 + i % 4] = uint8_t(o.activations()[i] + 128);
  for (int64_t g = 0; g < o.layout.groups; ++g) {
    int32_t sum = -o.sums()[g] & 0xffff;
    std::memcpy(to + quad.scales + 16 * g, &o.scales()[g], 4);
    std::memcpy(to + quad.sums + 16 * g, &sum, 4);
  }
}

class QuantizedGemm : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    const Case &c = GetParam();
    auto target = resolveTarget(c.cpu);
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    if (!hostRuns(*target))
      GTEST_SKIP() << "this host lacks features of " << c.cpu;
    for (const Shape &shape : gemmShapes(*layoutFromName(GetParam().kernel->layout)))
      for (int64_t count = 1; count <= kBlockTiles; ++count)
        object.add(nameOf(shape, count), [&](Emitter &e, mlir::Value tiles,
                                             mlir::Value x, mlir::Value out) {
          c.kernel->build(e, {tiles, e.c(count), x, e.c(kTokens / kQuad), out,
                              kRow, shape.cols, shape.group, shape.xGroup});
        });
    ASSERT_EQ(object.compile(*target), "");
  }

  void check(const Block &block, const Shape &shape, int64_t count,
             std::mt19937 &rng) {
    KernelFn *kernel = object.get(nameOf(shape, count));
    ASSERT_NE(kernel, nullptr);
    PackedMatrix m = PackedMatrix::plain(
        *layoutFromName(GetParam().kernel->layout), 16, shape.cols, shape.group);
    const int64_t bytes = m.tileBytes();
    QuadLayout quad(shape.cols, shape.xGroup);
    GuardedBytes tiles(count * bytes), quads(kTokens / kQuad * quad.bytes),
        out(kTokens * kRow);
    std::vector<std::unique_ptr<Operands>> tokens;
    for (int64_t t = 0; t < kTokens; ++t) {
      tokens.push_back(std::make_unique<Operands>(m, shape));
      fill(block, m, shape, kTileRows, rng, *tokens.back());
      put(*tokens.back(), t, quad, quads.data());
    }
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(tiles.data() + i * bytes, tokens[i]->tile.data(), bytes);
    kernel(tiles.data(), quads.data(), out.data());
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t at = 0; at < count * kTileRows; ++at) {
        int64_t tile = at / kTileRows, lane = at % kTileRows;
        float got = out.as<float>(t * kRow)[at];
        float want = referenceDot(m, tiles.data() + tile * bytes, lane,
                                  tokens[t]->activations(),
                                  tokens[t]->scales(), shape.xGroup);
        ASSERT_TRUE(sameFloat(got, want))
            << block.name << ", " << nameOf(shape, count) << ", token " << t
            << ", tile " << tile << ", lane " << lane << ": " << got
            << ", expected " << want;
      }
  }

  KernelObject object;
};

} // namespace

TEST_P(QuantizedGemm, HasTheBitsOfTheDefinition) {
  std::mt19937 rng(11);
  for (const Shape &shape : gemmShapes(*layoutFromName(GetParam().kernel->layout)))
    for (const Block &block : blocks())
      for (int64_t count = 1; count <= kBlockTiles; ++count) {
        // Fewer tiles are the same code: once is enough.
        if (count < kBlockTiles && &block != &blocks()[0])
          continue;
        ASSERT_NO_FATAL_FAILURE(check(block, shape, count, rng));
      }
}

INSTANTIATE_TEST_SUITE_P(Table, QuantizedGemm,
                         testing::ValuesIn(quantizedCases(blockKernels())),
                         [](const auto &info) { return info.param.name(); });
