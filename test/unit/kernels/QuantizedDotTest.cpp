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

#include "codegen/weights/Half.h"
#include "codegen/weights/QuantizedTile.h"
#include "test/unit/kernels/KernelObject.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

namespace {

/// A kernel of the table and a CPU that runs it.
struct Case {
  const TileKernel *kernel;
  std::string cpu;
};

std::string nameOf(const Case &c) {
  std::string name = std::string(c.kernel->name) + "_on_" + c.cpu;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Which CPUs to compile a kernel for. The AVX2 bodies also serve AVX-512
/// machines without VNNI, whose compiler has other registers at hand.
std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const TileKernel &kernel : tileKernels()) {
    if (!isQuantized(*layoutFromName(kernel.layout)))
      continue;
    switch (kernel.isa) {
    case SPARKC_ISA_AVX2:
      cases.push_back({&kernel, "x86-64-v3"});
      cases.push_back({&kernel, "x86-64-v4"});
      break;
    case SPARKC_ISA_AVXVNNI:
      cases.push_back({&kernel, "alderlake"});
      break;
    case SPARKC_ISA_AVX512VNNI:
      cases.push_back({&kernel, "cascadelake"});
      break;
    default:
      cases.push_back({&kernel, "sapphirerapids"});
    }
  }
  return cases;
}

/// K and groups of one function.
struct Shape {
  int64_t cols, group, xGroup;
  std::string name() const {
    return "k" + std::to_string(cols) + "_g" + std::to_string(group) + "_x" +
           std::to_string(xGroup);
  }
};

/// Batches that are whole, short and absent; K that is no multiple of the
/// group; activations in groups as large as the weights' and smaller.
std::vector<Shape> allShapes() {
  std::vector<Shape> shapes;
  for (int64_t group : {32, 64, 128})
    for (int64_t xGroup = 32; xGroup <= group; xGroup *= 2) {
      std::vector<int64_t> cols = {96, 2880};
      if (xGroup == group)
        cols.insert(cols.end(), {1, 50, group, 4 * group, 5 * group + 8, 6656});
      for (int64_t k : cols)
        shapes.push_back({k, group, xGroup});
    }
  return shapes;
}

/// A tile and the activation it meets.
struct Operands {
  Operands(const PackedMatrix &matrix, const Shape &shape)
      : layout(shape.cols, shape.xGroup), codes(matrix),
        tile(matrix.tileBytes()), x(layout.bytes) {
    std::memset(x.data(), 0, x.size());
  }
  int8_t *activations() const { return x.as<int8_t>(); }
  float *scales() const { return x.as<float>(layout.scales); }
  int32_t *sums() const { return x.as<int32_t>(layout.sums); }

  QVecLayout layout;
  TileCodes codes;
  GuardedBytes tile, x;
};

enum class Fill { Random, Lowest, Highest };

uint32_t pick(Fill fill, std::mt19937 &rng, uint32_t highest) {
  return fill == Fill::Random ? rng() % (highest + 1)
         : fill == Fill::Lowest ? 0
                                : highest;
}

/// What a block is filled with.
struct Block {
  const char *name;
  Fill codes, zeros;
  /// float16 bits; random ones where there are none.
  std::vector<uint16_t> scales;
  /// Activations; random ones where there are none.
  std::vector<int> x;
  std::vector<float> xScales;
};

const uint16_t kMax16 = 0x7bff, kMin16 = 0x0001, kMinus = 0x8000;

const std::vector<Block> &blocks() {
  static const std::vector<Block> all = {
      {"random", Fill::Random, Fill::Random, {}, {}, {}},
      {"random again", Fill::Random, Fill::Random, {}, {}, {}},
      {"codes 0", Fill::Lowest, Fill::Random, {}, {}, {}},
      {"codes max", Fill::Highest, Fill::Random, {}, {}, {}},
      {"zeros 0", Fill::Random, Fill::Lowest, {}, {}, {}},
      {"zeros max", Fill::Random, Fill::Highest, {}, {}, {}},
      {"all 127, largest sum", Fill::Highest, Fill::Lowest, {}, {127}, {}},
      {"all -127, smallest sum", Fill::Highest, Fill::Lowest, {}, {-127}, {}},
      {"all 127, codes below zero", Fill::Lowest, Fill::Highest, {}, {127}, {}},
      {"+-127", Fill::Highest, Fill::Random, {}, {127, -127}, {}},
      {"+-127 by fours", Fill::Highest, Fill::Random, {},
       {127, 127, 127, 127, -127, -127, -127, -127}, {}},
      {"activations 0", Fill::Random, Fill::Random, {}, {0}, {0.0f}},
      {"scales 0", Fill::Random, Fill::Random, {0}, {}, {}},
      {"scales -0", Fill::Random, Fill::Random, {kMinus}, {}, {}},
      {"largest scales", Fill::Random, Fill::Random,
       {kMax16, kMax16 | kMinus}, {}, {}},
      {"denormal scales", Fill::Random, Fill::Random,
       {kMin16, kMin16 | kMinus, 0x03ff}, {}, {}},
      {"all kinds of scales", Fill::Random, Fill::Random,
       {0, kMin16, kMax16, 0x3c00, kMax16 | kMinus, 0x03ff, 0x8400}, {}, {}},
      {"activation scales that vanish", Fill::Random, Fill::Random, {}, {},
       {0x1p-149f, 0x1p-126f, 0.0f, 1.0f}},
      {"activation scales that overflow", Fill::Random, Fill::Random, {}, {},
       {0x1p120f, 0x1p127f, 1.0f}},
      {"no activation scale", Fill::Random, Fill::Random, {}, {},
       {1.0f, NAN, INFINITY}},
  };
  return all;
}

void fill(const Block &block, const PackedMatrix &m, const Shape &shape,
          unsigned rows, std::mt19937 &rng, Operands &o) {
  uint32_t highest = (1u << bitsPerWeight(m.layout)) - 1;
  for (int64_t g = 0; g < m.groups(); ++g)
    for (int64_t lane = 0; lane < kTileRows; ++lane) {
      int64_t at = kTileRows * g + lane;
      // 2^-8 .. 2^-1 of either sign.
      uint16_t scale = (rng() % 8 + 7) << 10 | (rng() & 0x83ff);
      if (!block.scales.empty())
        scale = block.scales[rng() % block.scales.size()];
      o.codes.scales[at] = lane < rows ? scale : 0;
      o.codes.zeros[at] = lane < rows ? pick(block.zeros, rng, highest) : 0;
      for (int64_t c = g * m.group; c < (g + 1) * m.group; ++c)
        o.codes.codes[kTileRows * c + lane] =
            lane >= rows    ? 0
            : c < m.cols ? pick(block.codes, rng, highest)
                            : o.codes.zeros[at];
    }
  packCodes(m, o.codes, o.tile.data());
  int8_t *x = o.activations();
  for (int64_t c = 0; c < m.cols; ++c)
    x[c] = block.x.empty() ? int(rng() % 255) - 127
                           : block.x[c % block.x.size()];
  for (int64_t g = 0; g < o.layout.groups; ++g) {
    int32_t sum = 0;
    for (int64_t c = g * shape.xGroup; c < (g + 1) * shape.xGroup; ++c)
      sum += x[c];
    o.sums()[g] = sum;
    o.scales()[g] = block.xScales.empty()
                        ? std::ldexp(float(rng() % 1000 + 1), -12)
                        : block.xScales[g % block.xScales.size()];
  }
}

class QuantizedDot : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    const Case &c = GetParam();
    auto target = resolveTarget(c.cpu);
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    if (!hostRuns(*target))
      GTEST_SKIP() << "this host lacks features of " << c.cpu;
    for (const Shape &shape : allShapes())
      object.add(shape.name(), [&](Emitter &e, mlir::Value tile, mlir::Value x,
                                   mlir::Value out) {
        e.store(c.kernel->build(e, {tile, x, shape.cols, shape.group,
                                    shape.xGroup}),
                out);
      });
    ASSERT_EQ(object.compile(*target), "");
  }

  /// Runs one block of `rows` rows; the rest of the tile is padding.
  void check(const Block &block, const Shape &shape, unsigned rows,
             std::mt19937 &rng) {
    KernelFn *kernel = object.get(shape.name());
    ASSERT_NE(kernel, nullptr);
    PackedMatrix m = PackedMatrix::plain(
        *layoutFromName(GetParam().kernel->layout), 16, shape.cols, shape.group);
    Operands o(m, shape);
    fill(block, m, shape, rows, rng, o);
    float out[kTileRows];
    kernel(o.tile.data(), o.x.data(), out);
    for (int64_t lane = 0; lane < kTileRows; ++lane) {
      float want = referenceDot(m, o.tile.data(), lane, o.activations(),
                                o.scales(), shape.xGroup);
      bool same = bitsFromFloat(out[lane]) == bitsFromFloat(want) ||
                  (std::isnan(out[lane]) && std::isnan(want));
      ASSERT_TRUE(same) << block.name << ", " << shape.name() << ", lane "
                        << lane << ": " << out[lane] << ", expected " << want;
    }
  }

  KernelObject object;
};

} // namespace

TEST_P(QuantizedDot, HasTheBitsOfTheDefinition) {
  std::mt19937 rng(7);
  for (const Shape &shape : allShapes())
    for (const Block &block : blocks())
      ASSERT_NO_FATAL_FAILURE(check(block, shape, kTileRows, rng));
}

TEST_P(QuantizedDot, PaddingRowsAreZero) {
  std::mt19937 rng(8);
  for (const Shape &shape : allShapes())
    for (unsigned rows : {1u, 8u, 15u})
      ASSERT_NO_FATAL_FAILURE(check(blocks()[0], shape, rows, rng));
}

/// The definition itself, against double precision where nothing overflows, so
/// that both sides do not agree on something else.
TEST(QuantizedDotReference, IsTheSumOfProducts) {
  std::mt19937 rng(9);
  for (Layout layout : {Layout::Tile16Q4, Layout::Tile16Q5, Layout::Tile16Q6,
                        Layout::Tile16Q8})
    for (const Shape &shape : allShapes()) {
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
        ASSERT_NEAR(got, want, magnitude * 1e-6) << shape.name();
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Table, QuantizedDot, testing::ValuesIn(allCases()),
                         [](const auto &info) { return nameOf(info.param); });
