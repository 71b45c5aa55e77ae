//===- BlockFormatTest.cpp - GGUF's blocks, to tiles and back -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/BlockFit.h"
#include "codegen/weights/Half.h"
#include "codegen/weights/QuantizedTile.h"
#include "test/unit/weights/RandomWeights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace sparkc;
using namespace sparkc::test;

namespace {
constexpr const char *kNames[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1",
                                  "Q8_0", "Q4_K", "Q5_K", "Q6_K"};

bool isNumber(uint16_t half) { return (half & 0x7c00) != 0x7c00; }

/// Random bytes, whose scales are numbers, signs and denormals included.
std::vector<uint8_t> randomRows(const BlockFormat &format, int64_t rows,
                                int64_t cols, unsigned seed) {
  std::mt19937 rng(seed);
  int64_t blocks = rows * cols / format.block;
  std::vector<uint8_t> bytes(blocks * format.bytes);
  BlockCodes block;
  for (int64_t b = 0; b < blocks; ++b) {
    uint8_t *p = &bytes[b * format.bytes];
    block = {};
    do {
      for (int64_t i = 0; i < format.bytes; ++i)
        p[i] = rng();
      format.read(p, block);
    } while (!isNumber(block.scale) || !isNumber(block.minimum));
  }
  return bytes;
}

/// Signal to noise, in decibels, of a fit of `blocks` blocks.
double fitQuality(const BlockFormat &format, int blocks, float shift,
                  unsigned seed) {
  double signal = 0, noise = 0;
  std::vector<float> w = randomWeights(blocks * format.block, seed);
  BlockCodes block;
  for (int b = 0; b < blocks; ++b) {
    float *x = &w[b * format.block];
    for (int64_t i = 0; i < format.block; ++i)
      x[i] += shift;
    fitBlock(format, x, nullptr, block);
    for (int64_t i = 0; i < format.block; ++i) {
      double error = double(format.value(block, i)) - x[i];
      signal += double(x[i]) * x[i];
      noise += error * error;
    }
  }
  return 10 * std::log10(signal / noise);
}
} // namespace

TEST(BlockFormat, IsFoundByTypeNameAndGrid) {
  for (const char *name : kNames) {
    const BlockFormat *format = blockFormat(llvm::StringRef(name));
    ASSERT_NE(format, nullptr);
    EXPECT_EQ(blockFormat(format->type), format);
    EXPECT_EQ(blockFormatOf(format->grid), format);
    EXPECT_TRUE(isGroupOf(format->grid.layout(), format->grid.group));
    EXPECT_EQ(format->block % format->grid.group, 0);
  }
  EXPECT_EQ(blockFormat(llvm::StringRef("F32")), nullptr);
  EXPECT_EQ(blockFormat(SourceType::BF16), nullptr);
  EXPECT_EQ(blockFormatOf({4, 64, true}), nullptr);
  EXPECT_EQ(blockFormatOf({4, 32, false}), nullptr);
}

// Every bit of a block is read, once, and written back.
TEST(BlockFormat, WritesWhatItReads) {
  for (const char *name : kNames) {
    const BlockFormat &format = *blockFormat(llvm::StringRef(name));
    std::vector<uint8_t> bytes = randomRows(format, 20, format.block, 1);
    std::vector<uint8_t> out(format.bytes);
    for (int b = 0; b < 20; ++b) {
      BlockCodes block = {};
      format.read(&bytes[b * format.bytes], block);
      for (int64_t c = 0; c < format.block; ++c)
        ASSERT_LE(block.codes[c], format.grid.maxCode()) << name;
      std::memset(out.data(), 0xa5, out.size());
      format.write(block, out.data());
      ASSERT_EQ(std::memcmp(out.data(), &bytes[b * format.bytes], out.size()), 0)
          << name;
    }
  }
}

// A few weights worked out by hand.
TEST(BlockFormat, ValuesByHand) {
  uint8_t q4[18] = {0x00, 0x3c}; // 1.0
  q4[2] = 0xf1;                  // weight 0: 1, weight 16: 15
  float w[256];
  readRow({q4, SourceType::Q4_0, 1, 32}, 0, w);
  EXPECT_EQ(w[0], 1 - 8);
  EXPECT_EQ(w[16], 15 - 8);
  EXPECT_EQ(w[1], -8);

  uint8_t q4k[144] = {0x00, 0x3c, 0x00, 0x38}; // d = 1, dmin = 0.5
  q4k[4 + 1] = 0x40 | 3;    // u[1] = 3, and 1 << 4 of u[5]
  q4k[4 + 8 + 1] = 0x25;    // u[5] |= 5, v[5] |= 2
  q4k[4 + 4 + 1] = 7 | 0xc0; // v[1] = 7, and 3 << 4 of v[5]
  q4k[16] = 0x9a;           // weight 0: 10, weight 32: 9
  q4k[16 + 64 + 31] = 0xf0; // weight 64*2 + 31: 0, 64*2 + 63: 15
  readRow({q4k, SourceType::Q4_K, 1, 256}, 0, w);
  EXPECT_EQ(w[0], 0);
  EXPECT_EQ(w[32], 3 * 9 - 0.5f * 7);
  EXPECT_EQ(w[128 + 63], 21 * 15 - 0.5f * 50);

  uint8_t q6k[210] = {};
  q6k[209] = 0x3c;        // d = 1
  q6k[192 + 9] = 0xfe;    // u[9] = -2: weights 144 .. 159
  q6k[64 + 17] = 0x0b;    // weight 128 + 17, low bits 11
  q6k[128 + 32 + 17] = 2; // its high bits
  readRow({q6k, SourceType::Q6_K, 1, 256}, 0, w);
  EXPECT_EQ(w[128 + 17], -2 * (32 + 11 - 32));
  EXPECT_EQ(w[128 + 18], -2 * -32);
}

// What is packed has the values of the file, bit for bit, in rows that are
// permuted, and comes back as the same bytes.
TEST(BlockFormat, StoredTilesKeepEveryBit) {
  for (const char *name : kNames) {
    const BlockFormat &format = *blockFormat(llvm::StringRef(name));
    const int64_t rows = 40, cols = 3 * 256;
    std::vector<uint8_t> bytes = randomRows(format, rows, cols, 2);
    SourceMatrix source = {bytes.data(), format.type, rows, cols, "w"};
    PackedMatrix m = PackedMatrix::tiled(format.grid.layout(), cols,
                                         format.grid.group,
                                         {{4, 5, 10, 0, 0, 0, 5}});
    std::vector<uint8_t> packed;
    QuantizeStats stats;
    std::string error = llvm::toString(packQuantizedMatrix(
        m, format.grid, {source},
        [&](llvm::ArrayRef<uint8_t> b) {
          packed.insert(packed.end(), b.begin(), b.end());
          return llvm::Error::success();
        },
        stats));
    ASSERT_EQ(error, "");
    EXPECT_EQ(stats.sqnr(), 200);
    std::vector<float> want(cols);
    int64_t seen = 0;
    dequantizeMatrix(m, packed, [&](SourceRow at, llvm::ArrayRef<float> got) {
      readRow(source, at.row, want.data());
      ASSERT_EQ(std::memcmp(got.data(), want.data(), 4 * cols), 0) << name;
      ++seen;
    });
    EXPECT_EQ(seen, rows);
    TileCodes codes(m);
    unpackCodes(m, packed.data() + m.tileBytes(), codes); // a B tile
    std::vector<uint8_t> out(format.bytes);
    for (int64_t lane = 0; lane < 16; ++lane) {
      const uint8_t *row = rowData(source, m.rowOf(1, lane).row);
      for (int64_t b = 0; b < cols / format.block; ++b) {
        BlockCodes block = {};
        takeBlock(format, m, codes, b, lane, block);
        format.write(block, out.data());
        ASSERT_EQ(std::memcmp(out.data(), row + b * format.bytes, out.size()), 0)
            << name;
      }
    }
  }
}

TEST(BlockFormat, ScalesThatAreNoNumbersAreNamed) {
  const BlockFormat &format = *blockFormat(llvm::StringRef("Q4_K"));
  std::vector<uint8_t> bytes = randomRows(format, 20, 512, 3);
  SourceMatrix source = {bytes.data(), format.type, 20, 512, "w"};
  PackedMatrix m = PackedMatrix::plain(Layout::Tile16Q4K, 20, 512, 32);
  auto pack = [&] {
    QuantizeStats stats;
    return llvm::toString(packQuantizedMatrix(
        m, format.grid, {source},
        [](llvm::ArrayRef<uint8_t>) { return llvm::Error::success(); }, stats));
  };
  EXPECT_EQ(pack(), "");
  uint8_t *minimum = &bytes[(2 * 18 + 1) * 144 + 2];
  minimum[1] = 0x7c;
  EXPECT_EQ(pack(), "tensor 'w': the block at row 18, column 256 has a scale "
                    "that is NaN or infinity");
}

// dB on normal weights, around zero and beside it: floors that a broken fit
// does not reach.
TEST(BlockFit, KeepsTheSignal) {
  struct {
    const char *name;
    double centred, shifted;
  } bounds[] = {{"Q4_1", 20.5, 23}, {"Q5_1", 27, 29}, {"Q4_K", 20, 17},
                {"Q5_K", 26, 23},   {"Q6_K", 32, 32}};
  for (auto [name, centred, shifted] : bounds) {
    const BlockFormat &format = *blockFormat(llvm::StringRef(name));
    EXPECT_GT(fitQuality(format, 40, 0, 4), centred) << name;
    EXPECT_GT(fitQuality(format, 40, 0.02f, 5), shifted) << name;
  }
}

TEST(BlockFit, ExtremesAreSafe) {
  for (const char *name : {"Q4_1", "Q5_1", "Q4_K", "Q5_K", "Q6_K"}) {
    const BlockFormat &format = *blockFormat(llvm::StringRef(name));
    std::vector<float> w(format.block, 0.0f);
    BlockCodes block;
    auto check = [&](double bound) {
      fitBlock(format, w.data(), nullptr, block);
      for (int64_t i = 0; i < format.block; ++i)
        ASSERT_NEAR(format.value(block, i), w[i], bound) << name;
    };
    check(0);
    w.assign(format.block, 1e-30f); // below every float16
    check(1e-7);
    w.assign(format.block, -0.5f);
    check(1e-2);
    w[3] = 1000; // beside small ones
    check(40);
    for (int64_t i = 0; i < format.block; ++i)
      w[i] = i % 2 ? 60000.0f : -60000.0f;
    check(2500);
  }
}
