//===- QuantizedOperands.cpp - What integer kernels are tested on ---------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/QuantizedOperands.h"
#include "codegen/weights/Half.h"

#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

std::vector<std::string> sparkc::test::cpusFor(unsigned isa) {
  switch (isa) {
  case SPARKC_ISA_AVX2:
    return {"x86-64-v3", "x86-64-v4"};
  case SPARKC_ISA_AVXVNNI:
    return {"alderlake"};
  case SPARKC_ISA_AVX512VNNI:
    return {"cascadelake"};
  default:
    return {"sapphirerapids"};
  }
}

int64_t sparkc::test::usualGroup(Layout layout) {
  return isPlain(scaleForm(layout))              ? 64
         : scaleForm(layout) == ScaleForm::Super ? 16
                                                 : 32;
}

std::vector<Shape> sparkc::test::allShapes(Layout layout) {
  std::vector<Shape> shapes;
  for (int64_t group : {16, 32, 64, 128}) {
    if (!isGroupOf(layout, group))
      continue;
    std::vector<int64_t> cols = {50, 5 * group + 8};
    if (group == usualGroup(layout))
      cols.insert(cols.end(), {1, 96, 6656});
    for (int64_t k : cols)
      shapes.push_back({k, group, group});
    if (group > 16)
      shapes.push_back({2880, group, 16});
    if (group > 32)
      shapes.push_back({2880, group, group / 2});
  }
  return shapes;
}

static uint32_t pick(Fill fill, std::mt19937 &rng, uint32_t highest) {
  return fill == Fill::Random ? rng() % (highest + 1)
         : fill == Fill::Lowest ? 0
                                : highest;
}

static const uint16_t kMax16 = 0x7bff, kMin16 = 0x0001, kMinus = 0x8000;

const std::vector<test::Block> &sparkc::test::blocks() {
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

void sparkc::test::fill(const Block &block, const PackedMatrix &m, const Shape &shape,
          unsigned rows, std::mt19937 &rng, Operands &o) {
  uint32_t highest = (1u << bitsPerWeight(m.layout)) - 1;
  auto isRow = [&](size_t at) { return at % kTileRows < rows; };
  for (auto *halves : {&o.codes.scales, &o.codes.minima})
    for (size_t at = 0; at < halves->size(); ++at) {
      // 2^-8 .. 2^-1 of either sign.
      uint16_t scale = (rng() % 8 + 7) << 10 | (rng() & 0x83ff);
      if (!block.scales.empty())
        scale = block.scales[rng() % block.scales.size()];
      (*halves)[at] = isRow(at) ? scale : 0;
    }
  for (size_t at = 0; at < o.codes.zeros.size(); ++at)
    if (scaleForm(m.layout) == ScaleForm::Zero)
      o.codes.zeros[at] = isRow(at) ? pick(block.zeros, rng, highest) : 0;
  // Of six bits, or int8.
  uint32_t mostSub = hasMinimum(scaleForm(m.layout)) ? 63 : 255;
  for (auto *bytes : {&o.codes.subScales, &o.codes.subMinima})
    for (size_t at = 0; at < bytes->size(); ++at)
      (*bytes)[at] = isRow(at) ? pick(block.zeros, rng, mostSub) : 0;
  for (int64_t c = 0; c < m.paddedCols(); ++c)
    for (int64_t lane = 0; lane < kTileRows; ++lane) {
      uint8_t pad = o.codes.zeros.empty()
                        ? 0
                        : o.codes.zeros[c / m.group * kTileRows + lane];
      o.codes.codes[kTileRows * c + lane] =
          !isRow(lane) ? 0
          : c < m.cols ? pick(block.codes, rng, highest)
                       : pad;
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

bool sparkc::test::sameFloat(float a, float b) {
  return bitsFromFloat(a) == bitsFromFloat(b) ||
         (std::isnan(a) && std::isnan(b));
}
