//===- QuantizedDotTest.cpp - Every integer kernel against the definition -===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each line of the table of tile kernels that reads an integer layout is
// compiled for the CPUs whose instruction sets get it, and run on random and
// extreme tiles. Every lane must have the bits of referenceDot.
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/QuantizedOperands.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

namespace {

using Case = KernelCase<TileKernel>;

class QuantizedDot : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    const Case &c = GetParam();
    auto target = resolveTarget(c.cpu);
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    if (!hostRuns(*target))
      GTEST_SKIP() << "this host lacks features of " << c.cpu;
    for (const Shape &shape : shapes())
      object.add(shape.name(), [&](Emitter &e, mlir::Value tile, mlir::Value x,
                                   mlir::Value out) {
        // As many side by side as it can; out takes each one's 16 floats.
        int64_t bytes = matrixOf(shape).tileBytes();
        llvm::SmallVector<mlir::Value> tiles;
        for (int64_t i = 0; i < c.kernel->streams; ++i)
          tiles.push_back(e.at(tile, i * bytes));
        auto sums = c.kernel->build(e, {tiles, x, shape.cols, shape.group,
                                        shape.xGroup, /*ahead=*/2048});
        for (auto [i, sum] : llvm::enumerate(sums))
          e.store(sum, e.at(out, 64 * i));
      });
    ASSERT_EQ(object.compile(*target), "");
  }

  /// All of them on the first CPU that is meant for the kernel.
  std::vector<Shape> shapes() {
    Layout layout = *layoutFromName(GetParam().kernel->layout);
    std::vector<Shape> shapes = allShapes(layout);
    if (GetParam().cpu != cpusFor(GetParam().kernel->isa).front())
      llvm::erase_if(shapes, [&](const Shape &shape) {
        return shape.group != usualGroup(layout);
      });
    return shapes;
  }

  PackedMatrix matrixOf(const Shape &shape) {
    return PackedMatrix::plain(*layoutFromName(GetParam().kernel->layout), 16,
                               shape.cols, shape.group);
  }

  /// Runs tiles of `rows` rows, the rest of each padding.
  void check(const Block &block, const Shape &shape, unsigned rows,
             std::mt19937 &rng) {
    KernelFn *kernel = object.get(shape.name());
    ASSERT_NE(kernel, nullptr);
    PackedMatrix m = matrixOf(shape);
    const int64_t count = GetParam().kernel->streams, bytes = m.tileBytes();
    GuardedBytes tiles(count * bytes), out(count * 64);
    Operands o(m, shape);
    // Different tiles side by side for one block, whose activation is that of
    // the last; else the same one twice, to save time.
    const bool differ = &block == &blocks()[0];
    for (int64_t i = 0; i < count; ++i) {
      if (i == 0 || differ)
        fill(block, m, shape, rows, rng, o);
      std::memcpy(tiles.data() + i * bytes, o.tile.data(), bytes);
    }
    kernel(tiles.data(), o.x.data(), out.data());
    for (int64_t i = 1; i < count && !differ; ++i)
      ASSERT_EQ(std::memcmp(out.data(), out.data() + 64 * i, 64), 0)
          << block.name << ", " << shape.name() << ": tile " << i;
    for (int64_t at = 0; at < (differ ? count : 1) * kTileRows; ++at) {
      int64_t lane = at % kTileRows;
      float got = out.as<float>()[at];
      float want = referenceDot(m, tiles.data() + at / kTileRows * bytes, lane,
                                o.activations(), o.scales(), shape.xGroup);
      ASSERT_TRUE(sameFloat(got, want))
          << block.name << ", " << shape.name() << ", tile " << at / kTileRows
          << ", lane " << lane << ": " << got << ", expected " << want;
    }
  }

  KernelObject object;
};

} // namespace

TEST_P(QuantizedDot, HasTheBitsOfTheDefinition) {
  std::mt19937 rng(7);
  for (const Shape &shape : shapes())
    for (const Block &block : blocks())
      ASSERT_NO_FATAL_FAILURE(check(block, shape, kTileRows, rng));
  // Padding rows are zero. (No test of its own: compiling takes most of it.)
  for (const Shape &shape : shapes())
    for (unsigned rows : {1u, 8u, 15u})
      ASSERT_NO_FATAL_FAILURE(check(blocks()[0], shape, rows, rng));
}

/// The definition itself, against double precision where nothing overflows, so
/// that both sides do not agree on something else.
TEST(QuantizedDotReference, IsTheSumOfProducts) {
  std::mt19937 rng(9);
  for (Layout layout : {Layout::Tile16Q4, Layout::Tile16Q5, Layout::Tile16Q6,
                        Layout::Tile16Q8, Layout::Tile16Q4S, Layout::Tile16Q5S,
                        Layout::Tile16Q6S, Layout::Tile16Q8S,
                        Layout::Tile16Q4M, Layout::Tile16Q5M,
                        Layout::Tile16Q4K, Layout::Tile16Q5K,
                        Layout::Tile16Q6K})
    for (const Shape &shape : allShapes(layout)) {
      PackedMatrix m =
          PackedMatrix::plain(layout, 16, shape.cols, shape.group);
      Operands o(m, shape);
      fill(blocks()[0], m, shape, kTileRows, rng, o);
      std::vector<float> weights(kTileRows * m.cols);
      dequantizeTile(m, o.tile.data(), weights.data());
      for (int64_t lane = 0; lane < kTileRows; ++lane) {
        double want = 0, magnitude = 0;
        for (int64_t c = 0; c < m.cols; ++c) {
          double product = double(weights[lane * m.cols + c]) *
                           o.activations()[c] * o.scales()[c / shape.xGroup];
          want += product;
          magnitude += std::fabs(product);
        }
        float got = referenceDot(m, o.tile.data(), lane, o.activations(),
                                 o.scales(), shape.xGroup);
        // A minimum may cancel most of a weight.
        double bound = hasMinimum(scaleForm(layout)) ? 1e-5 : 1e-6;
        ASSERT_NEAR(got, want, magnitude * bound) << shape.name();
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Table, QuantizedDot,
                         testing::ValuesIn(quantizedCases(tileKernels())),
                         [](const auto &info) { return info.param.name(); });
