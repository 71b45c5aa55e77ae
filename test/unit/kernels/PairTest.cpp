//===- PairTest.cpp - Kernels for activations of bf16 ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each line of the table of tile kernels that takes activations of bf16 against
// their exact sums in double, within the bound that PairDot.cpp states; those
// that multiply by fused multiply-adds also against the definition, bit for bit.
// The block kernel of the same line must have the bits of the tile kernel.
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Half.h"
#include "test/unit/kernels/QuantizedOperands.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

namespace {

float floatOf(uint16_t bf16) { return floatFromBits(uint32_t(bf16) << 16); }

/// To nearest, ties to even, by the two neighbours.
uint16_t bf16Of(float x) {
  if (std::isnan(x))
    return bitsFromFloat(x) >> 16 | 0x40;
  uint16_t down = bitsFromFloat(x) >> 16;
  if (std::isinf(x))
    return down;
  uint16_t up = down + 1; // away from zero; perhaps infinite
  double low = std::fabs(double(floatOf(down)));
  double high = (up & 0x7fff) == 0x7f80 ? 0x1p128 : std::fabs(floatOf(up));
  double toLow = std::fabs(x) - low, toHigh = high - std::fabs(x);
  if (toLow == toHigh)
    return down & 1 ? up : down;
  return toLow < toHigh ? down : up;
}

/// An activation, in order of its columns.
struct Activation {
  Activation(int64_t size, int64_t group)
      : layout(size, group, /*bf16=*/true), group(group),
        x(ceilDiv(size, 128) * 128) {}
  template <typename Fn> void fill(int64_t size, Fn value) {
    for (int64_t c = 0; c < size; ++c)
      x[c] = bf16Of(value(c));
    for (int64_t g = 0; g < layout.groups; ++g) {
      float sum = 0;
      for (int64_t c = 0; c < group; ++c)
        sum += floatOf(x[g * group + c]);
      sums.push_back(sum);
    }
  }
  /// The word of columns (c, c + 2) that is number i of all.
  uint32_t word(int64_t i) const {
    int64_t c = i / 2 * 4 + i % 2;
    return x[c] | uint32_t(x[c + 2]) << 16;
  }
  /// As !step.qvec says.
  void store(uint8_t *to) const {
    for (size_t i = 0; i < x.size() / 2; ++i) {
      uint32_t both = word(i);
      std::memcpy(to + 4 * i, &both, 4);
    }
    std::memcpy(to + layout.sums, sums.data(), 4 * sums.size());
  }
  /// As !step.block says, for one token.
  void put(int64_t token, const QuadLayout &quad, uint8_t *quads) const {
    uint8_t *to = quads + token / kQuad * quad.bytes + token % kQuad * 4;
    for (int64_t i = 0; i < quad.words; ++i) {
      uint32_t both = word(i);
      std::memcpy(to + 16 * i, &both, 4);
    }
    for (size_t g = 0; g < sums.size(); ++g)
      std::memcpy(to + quad.sums + 16 * g, &sums[g], 4);
  }

  QVecLayout layout;
  int64_t group;
  std::vector<uint16_t> x;
  std::vector<float> sums;
};

/// How codes of a group stand for weights.
struct Terms {
  float scale, minimum = 0;
  int zero = 0;
};
Terms termsOf(const PackedMatrix &m, const TileCodes &t, int64_t lane,
              int64_t g) {
  int64_t at = kTileRows * g + lane;
  int64_t batch = kTileRows * (g / m.batchGroups()) + lane;
  switch (scaleForm(m.layout)) {
  case ScaleForm::Zero:
    return {floatFromF16(t.scales[at]), 0, t.zeros[at]};
  case ScaleForm::Symmetric:
    return {floatFromF16(t.scales[at]), 0, middleCode(m.layout)};
  case ScaleForm::Minimum:
    return {floatFromF16(t.scales[at]), floatFromF16(t.minima[at])};
  case ScaleForm::SuperMinimum:
    return {floatFromF16(t.scales[batch]) * t.subScales[at],
            floatFromF16(t.minima[batch]) * t.subMinima[at]};
  case ScaleForm::Super:
    return {floatFromF16(t.scales[batch]) * int8_t(t.subScales[at]), 0,
            middleCode(m.layout)};
  }
  return {};
}

/// The definition: what fused multiply-adds give.
float defined(const PackedMatrix &m, const TileCodes &tile, int64_t lane,
              const Activation &a) {
  float f = 0;
  for (int64_t first = 0; first < m.paddedCols(); first += a.group) {
    Terms terms = termsOf(m, tile, lane, first / m.group);
    float chain[2] = {0, 0};
    for (int64_t i = 0; i < a.group / 2; ++i)
      for (int64_t c : {first + i / 2 * 4 + i % 2 + 2,
                        first + i / 2 * 4 + i % 2})
        chain[i % 2] = std::fma(float(tile.codes[kTileRows * c + lane]),
                                floatOf(a.x[c]), chain[i % 2]);
    float d = chain[0] + chain[1], sum = a.sums[first / a.group];
    if (hasMinimum(scaleForm(m.layout)))
      f = std::fma(terms.minimum, sum, std::fma(terms.scale, d, f));
    else
      f = std::fma(terms.scale, std::fma(float(-terms.zero), sum, d), f);
  }
  return f;
}

/// The exact sum, and the bound on what is computed of it.
std::pair<double, double> exact(const PackedMatrix &m, const TileCodes &tile,
                                int64_t lane, const Activation &a) {
  double sum = 0, size = 0, vanishing = 0;
  for (int64_t c = 0; c < m.paddedCols(); ++c) {
    Terms terms = termsOf(m, tile, lane, c / m.group);
    double code = tile.codes[kTileRows * c + lane], x = floatOf(a.x[c]);
    double scale = terms.scale, minimum = terms.minimum;
    sum += (scale * (code - terms.zero) + minimum) * x;
    size += (std::fabs(scale) * (code + terms.zero) + std::fabs(minimum)) *
            std::fabs(x);
    vanishing += std::fabs(scale) * (code + 2) * 0x1p-126 + 0x1p-149;
  }
  return {sum, (m.cols + 4) * 0x1p-23 * size + vanishing};
}

/// What a generated block kernel is given.
struct Call {
  const void *tiles;
  int64_t count;
  const void *x;
  int64_t quads;
};

struct PairCase {
  const TileKernel *tile;
  const BlockKernel *block;
};

std::vector<PairCase> cases() {
  std::vector<PairCase> all;
  for (auto [tile, block] :
       llvm::zip_equal(pairTileKernels(), pairBlockKernels()))
    all.push_back({&tile, &block});
  return all;
}

const char *cpuOf(const TileKernel &kernel) {
  return kernel.features                  ? "cooperlake"
         : kernel.isa == SPARKC_ISA_AVX512 ? "x86-64-v4"
                                          : "x86-64-v3";
}

std::vector<Shape> pairShapes(Layout layout) {
  int64_t group = usualGroup(layout);
  if (!isPlain(scaleForm(layout)))
    return {{712, group, group}, {1064, group, 16}, {1, group, group}};
  return {{712, 64, 64}, {1064, 128, 32}, {50, 128, 128}, {33, 32, 32}};
}

class Pairs : public testing::TestWithParam<PairCase> {
protected:
  void SetUp() override {
    auto [tile, block] = GetParam();
    ASSERT_STREQ(tile->layout, block->layout);
    ASSERT_EQ(tile->isa, block->isa);
    ASSERT_EQ(tile->features, block->features);
    ASSERT_TRUE(tile->pairs && block->pairs);
    auto target = resolveTarget(cpuOf(*tile), /*bf16=*/true);
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    if (!hostRuns(*target))
      GTEST_SKIP() << "this host lacks features of " << cpuOf(*tile);
    for (const Shape &shape : shapes()) {
      object.add(shape.name(), [&](Emitter &e, mlir::Value tiles, mlir::Value x,
                                   mlir::Value out) {
        llvm::SmallVector<mlir::Value> two = {
            tiles, e.at(tiles, matrixOf(shape).tileBytes())};
        auto sums = tile->build(e, {two, x, shape.cols, shape.group,
                                    shape.xGroup, /*ahead=*/2048});
        for (auto [i, sum] : llvm::enumerate(sums))
          e.store(sum, e.at(out, 64 * i));
      });
      object.add("block_" + shape.name(), [&](Emitter &e, mlir::Value call,
                                              mlir::Value, mlir::Value out) {
        auto field = [&](mlir::Type type, size_t offset) {
          return e.load(type, e.at(call, int64_t(offset)));
        };
        block->build(e, {field(e.ptr(), offsetof(Call, tiles)),
                         field(e.i64(), offsetof(Call, count)),
                         field(e.ptr(), offsetof(Call, x)),
                         field(e.i64(), offsetof(Call, quads)), out, kRow,
                         shape.cols, shape.group, shape.xGroup});
      });
    }
    ASSERT_EQ(object.compile(*target), "");
  }

  Layout layout() const { return *layoutFromName(GetParam().tile->layout); }
  std::vector<Shape> shapes() const { return pairShapes(layout()); }
  PackedMatrix matrixOf(const Shape &shape) const {
    return PackedMatrix::plain(layout(), 16, shape.cols, shape.group);
  }

  /// Two tiles by `tokens` tokens, whose column c is value(c).
  template <typename Fn>
  void check(const char *what, const Block &block, const Shape &shape,
             int64_t tokens, Fn value) {
    PackedMatrix m = matrixOf(shape);
    const int64_t bytes = m.tileBytes(), quads = ceilDiv(tokens, kQuad);
    QuadLayout quad(shape.cols, shape.xGroup, /*bf16=*/true);
    GuardedBytes tiles(2 * bytes), x(quads * quad.bytes),
        out(quads * kQuad * kRow - 64);
    Operands operands[2] = {{m, shape}, {m, shape}};
    for (int64_t i = 0; i < 2; ++i) {
      fill(block, m, shape, kTileRows, rng, operands[i]);
      std::memcpy(tiles.data() + i * bytes, operands[i].tile.data(), bytes);
    }
    std::vector<Activation> all;
    for (int64_t t = 0; t < quads * kQuad; ++t) {
      all.emplace_back(shape.cols, shape.xGroup);
      all.back().fill(shape.cols, value);
      all.back().put(t, quad, x.data());
    }
    Call call = {tiles.data(), 2, x.data(), quads};
    object.get("block_" + shape.name())(&call, nullptr, out.data());
    for (int64_t t = 0; t < quads * kQuad; ++t) {
      const Activation &a = all[t];
      GuardedBytes one(a.layout.bytes), sums(2 * 64);
      a.store(one.data());
      object.get(shape.name())(tiles.data(), one.data(), sums.data());
      for (int64_t at = 0; at < 2 * kTileRows; ++at) {
        int64_t lane = at % kTileRows;
        const TileCodes &codes = operands[at / kTileRows].codes;
        float got = sums.as<float>()[at], blocks = out.as<float>(t * kRow)[at];
        std::string where =
            llvm::formatv("{0}, {1}, {2}, token {3}, lane {4}: ", what,
                          block.name, shape.name(), t, at);
        ASSERT_TRUE(sameFloat(got, blocks)) << where << got << " and " << blocks;
        float want = defined(m, codes, lane, a);
        if (!GetParam().tile->features) {
          ASSERT_TRUE(sameFloat(got, want)) << where << got << ", not " << want;
        }
        auto [sum, bound] = exact(m, codes, lane, a);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got)) << where << got;
        } else if (std::isfinite(want) && bound < FLT_MAX) {
          ASSERT_NEAR(got, sum, bound) << where;
        }
      }
    }
  }

  float random() {
    return std::ldexp(float(int(rng() % 2001) - 1000), int(rng() % 8) - 10);
  }

  /// Of a token's results: three tiles, and room that nobody writes.
  static constexpr int64_t kRow = 64 * kBlockTiles + 64;
  KernelObject object;
  std::mt19937 rng{17};
};

} // namespace

TEST_P(Pairs, AreWithinTheBound) {
  auto random = [&](int64_t) { return this->random(); };
  for (const Shape &shape : shapes()) {
    for (const Block &block : blocks())
      ASSERT_NO_FATAL_FAILURE(check("random", block, shape, 4, random));
    const Block &block = blocks()[0];
    ASSERT_NO_FATAL_FAILURE(check("more tokens", block, shape, 12, random));
    ASSERT_NO_FATAL_FAILURE(
        check("zeros", block, shape, 4, [](int64_t) { return 0.0f; }));
    ASSERT_NO_FATAL_FAILURE(check("one of many", block, shape, 4, [&](int64_t c) {
      return c == shape.cols / 2 ? -3.0f : 0.0f;
    }));
    ASSERT_NO_FATAL_FAILURE(check("alike", block, shape, 4,
                                  [](int64_t) { return 1.00390625f; }));
    ASSERT_NO_FATAL_FAILURE(check("denormal", block, shape, 4, [&](int64_t) {
      return std::ldexp(this->random(), -130);
    }));
    ASSERT_NO_FATAL_FAILURE(check("huge", block, shape, 4, [&](int64_t) {
      return std::ldexp(this->random(), 100);
    }));
    ASSERT_NO_FATAL_FAILURE(check("no number", block, shape, 4, [&](int64_t c) {
      return c == shape.cols - 1 ? NAN : this->random();
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Pairs, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return std::string(info.param.tile->name);
                         });

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

namespace {
class RoundBF16 : public testing::TestWithParam<const char *> {};
} // namespace

TEST_P(RoundBF16, HasNearestValuesInPairs) {
  auto target = resolveTarget(GetParam(), /*bf16=*/true);
  ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
  if (!hostRuns(*target))
    GTEST_SKIP() << "this host lacks features of " << GetParam();
  KernelObject object;
  const std::pair<int64_t, int64_t> shapes[] = {
      {1, 32}, {50, 16}, {128, 128}, {300, 64}, {2880, 64}};
  auto nameOf = [](auto shape) { return "n" + std::to_string(shape.first); };
  for (auto shape : shapes)
    object.add(nameOf(shape), [&](Emitter &e, mlir::Value x, mlir::Value,
                                  mlir::Value out) {
      emitRoundBF16(e, x, shape.first, shape.second, out);
    });
  ASSERT_EQ(object.compile(*target), "");
  std::mt19937 rng(3);
  for (auto shape : shapes)
    for (int round = 0; round < 40; ++round) {
      auto [size, group] = shape;
      int64_t padded = ceilDiv(size, 128) * 128;
      GuardedBytes x(padded * 4);
      for (int64_t i = 0; i < padded; ++i) {
        // Any bits, ties among them, and numbers of one size.
        uint32_t bits = rng();
        if (round % 4 == 1)
          bits = (bits & 0xffff0000) | 0x8000;
        float value = round % 4 < 2 ? floatFromBits(bits)
                                    : std::ldexp(float(int32_t(bits)), -31);
        x.as<float>()[i] = i < size ? value : 0.0f;
      }
      Activation want(size, group);
      want.fill(size, [&](int64_t i) { return x.as<float>()[i]; });
      QVecLayout layout(size, group, /*bf16=*/true);
      GuardedBytes out(layout.bytes), wanted(layout.bytes);
      std::memset(out.data(), 0xa5, out.size());
      object.get(nameOf(shape))(x.data(), nullptr, out.data());
      want.store(wanted.data());
      for (int64_t i = 0; i < padded; ++i)
        ASSERT_EQ(out.as<uint16_t>()[i], wanted.as<uint16_t>()[i])
            << "word " << i << " of " << size;
      for (int64_t g = 0; g < layout.groups; ++g) {
        double sum = 0, magnitude = 0;
        for (int64_t i = g * group; i < (g + 1) * group; ++i) {
          sum += floatOf(want.x[i]);
          magnitude += std::fabs(floatOf(want.x[i]));
        }
        float got = out.as<float>(layout.sums)[g];
        if (std::isnan(sum)) {
          ASSERT_TRUE(std::isnan(got) || std::isinf(got));
        } else if (magnitude < FLT_MAX) {
          ASSERT_NEAR(got, sum, 12 * 0x1p-24 * magnitude);
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Cpus, RoundBF16,
                         testing::Values("x86-64-v3", "x86-64-v4", "cooperlake"));
