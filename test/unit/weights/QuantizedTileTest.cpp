//===- QuantizedTileTest.cpp - Codes, tiles, and back ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/QuantizedTile.h"
#include "codegen/weights/Half.h"
#include "test/unit/weights/RandomWeights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace sparkc;
using namespace sparkc::test;

namespace {
constexpr Layout kQuantized[] = {Layout::Tile16Q4,  Layout::Tile16Q5,
                                 Layout::Tile16Q6,  Layout::Tile16Q8,
                                 Layout::Tile16Q4S, Layout::Tile16Q5S,
                                 Layout::Tile16Q6S, Layout::Tile16Q8S};

/// The code at (lane, column) by the index equation alone.
int codeAt(const PackedMatrix &m, const uint8_t *tile, int64_t lane,
           int64_t col) {
  ElementLocation at = m.element(lane, col);
  int code = tile[at.byte] >> at.shift & ((1 << at.bits) - 1);
  if (at.highBits)
    code |= (tile[at.highByte] >> at.highShift & ((1 << at.highBits) - 1))
            << at.bits;
  return code;
}

SourceMatrix matrixOf(const std::vector<float> &w, int64_t rows, int64_t cols) {
  return {reinterpret_cast<const uint8_t *>(w.data()), SourceType::F32, rows,
          cols, "w"};
}

struct Packed {
  std::vector<uint8_t> bytes;
  QuantizeStats stats;
  std::string error;
};
Packed pack(const PackedMatrix &m, const GridSpec &grid,
            llvm::ArrayRef<SourceMatrix> sources,
            llvm::ArrayRef<Importance> importance = {}) {
  Packed out;
  out.error = llvm::toString(packQuantizedMatrix(
      m, grid, sources,
      [&](llvm::ArrayRef<uint8_t> b) {
        out.bytes.insert(out.bytes.end(), b.begin(), b.end());
        return llvm::Error::success();
      },
      out.stats, importance));
  return out;
}
} // namespace

// Errors are counted for the source they are in, in pairs of tiles too.
TEST(QuantizedTile, StatisticsOfEachSource) {
  std::vector<float> a = randomWeights(40 * 64, 1), b = randomWeights(40 * 64, 2);
  for (float &x : b)
    x = x > 0 ? 0.5f : -0.5f; // exact in any grid
  SourceMatrix sources[] = {matrixOf(a, 40, 64), matrixOf(b, 40, 64)};
  RowRun pairs;
  pairs.width = 40, pairs.weightA = 0, pairs.weightB = 1;
  GridSpec grid;
  PackedMatrix m = PackedMatrix::tiled(grid.layout(), 64, grid.group, {pairs});
  auto sink = [](llvm::ArrayRef<uint8_t>) { return llvm::Error::success(); };
  QuantizeStats each[2], all, three[3];
  ASSERT_FALSE(bool(packQuantizedMatrix(m, grid, sources, sink, each)));
  ASSERT_FALSE(bool(packQuantizedMatrix(m, grid, sources, sink, all)));
  EXPECT_EQ(each[0].weights, 40 * 64);
  EXPECT_EQ(each[1].weights, 40 * 64);
  EXPECT_GT(each[0].noise, 0);
  EXPECT_EQ(each[1].noise, 0);
  EXPECT_EQ(each[1].signal, 40 * 64 * 0.25);
  EXPECT_NEAR(all.signal, each[0].signal + each[1].signal, 1e-9);
  EXPECT_EQ(all.noise, each[0].noise);
  EXPECT_TRUE(
      llvm::toString(packQuantizedMatrix(m, grid, sources, sink, three)) != "");
}

// Random codes: what is packed stands where the equation says, and unpacks.
TEST(QuantizedTile, CodesFollowTheEquation) {
  std::mt19937 rng(1);
  for (Layout layout : kQuantized)
    for (int64_t group : {32, 64, 128})
      for (int64_t cols : {1, 96, 128, 300, 512, 515}) {
        PackedMatrix m = PackedMatrix::plain(layout, 16, cols, group);
        TileCodes codes(m), back(m);
        for (uint8_t &c : codes.codes)
          c = rng() & ((1 << bitsPerWeight(layout)) - 1);
        for (uint16_t &s : codes.scales)
          s = rng();
        const bool zeros = scaleForm(layout) == ScaleForm::Zero;
        for (uint8_t &z : codes.zeros)
          z = zeros ? rng() : middleCode(layout);
        std::vector<uint8_t> tile(m.tileBytes());
        packCodes(m, codes, tile.data());
        for (int64_t l = 0; l < 16; ++l)
          for (int64_t c = 0; c < m.paddedCols(); ++c) {
            ASSERT_EQ(codeAt(m, tile.data(), l, c), codes.codes[16 * c + l]);
            int64_t g = c / group;
            const uint8_t *s = &tile[m.groupScaleOffset(g) + 2 * l];
            ASSERT_EQ(s[0] | s[1] << 8, codes.scales[16 * g + l]);
            if (zeros) {
              ASSERT_EQ(tile[m.groupZeroOffset(g) + l],
                        codes.zeros[16 * g + l]);
            }
          }
        unpackCodes(m, tile.data(), back);
        EXPECT_TRUE(back.codes == codes.codes && back.scales == codes.scales &&
                    back.zeros == codes.zeros);
      }
}

// The vector recipe of docs/packed-layout.md: whole registers are shifted, bits
// that cross bytes are masked away.
TEST(QuantizedTile, PlanesUnpackByRegisterShifts) {
  std::mt19937 rng(2);
  for (Layout layout : {Layout::Tile16Q5, Layout::Tile16Q6}) {
    int e = bitsPerWeight(layout) - 4, m = 4 / e;
    PackedMatrix matrix = PackedMatrix::plain(layout, 16, 128, 128);
    std::vector<uint8_t> tile(matrix.tileBytes());
    for (uint8_t &b : tile)
      b = rng();
    const uint8_t *line = &tile[matrix.groupLineOffset(0)];
    uint32_t mask = e == 1 ? 0x10101010 : 0x30303030;
    for (int64_t col = 0; col < 128; line += 64 * (m + 1))
      for (int i = 0; i < m; ++i, col += 8)
        for (int64_t l = 0; l < 16; ++l) {
          uint32_t plane, v;
          std::memcpy(&plane, line + 4 * l, 4);
          std::memcpy(&v, line + 64 * (1 + i) + 4 * l, 4);
          uint32_t low = (v & 0x0f0f0f0f) | ((plane << (4 - e * i)) & mask);
          uint32_t high = (v >> 4 & 0x0f0f0f0f) | ((plane >> (e * i)) & mask);
          for (int b = 0; b < 4; ++b) {
            ASSERT_EQ(int(low >> 8 * b & 0xff),
                      codeAt(matrix, tile.data(), l, col + b));
            ASSERT_EQ(int(high >> 8 * b & 0xff),
                      codeAt(matrix, tile.data(), l, col + 4 + b));
          }
        }
  }
}

// The same for the forms of GGUF, whose heads are others.
TEST(QuantizedTile, OtherHeadsFollowTheEquation) {
  std::mt19937 rng(3);
  for (Layout layout : {Layout::Tile16Q4M, Layout::Tile16Q5M, Layout::Tile16Q4K,
                        Layout::Tile16Q5K, Layout::Tile16Q6K})
    for (int64_t cols : {32, 256, 288, 515}) {
      PackedMatrix m = PackedMatrix::plain(layout, 16, cols,
                                           layout == Layout::Tile16Q6K ? 16 : 32);
      ScaleForm form = scaleForm(layout);
      TileCodes codes(m), back(m);
      for (uint8_t &c : codes.codes)
        c = rng() & ((1 << bitsPerWeight(layout)) - 1);
      for (auto *halves : {&codes.scales, &codes.minima})
        for (uint16_t &s : *halves)
          s = rng();
      for (auto *bytes : {&codes.subScales, &codes.subMinima})
        for (uint8_t &s : *bytes)
          s = rng();
      std::vector<uint8_t> tile(m.tileBytes());
      packCodes(m, codes, tile.data());
      auto half = [&](int64_t at) { return tile[at] | tile[at + 1] << 8; };
      for (int64_t l = 0; l < 16; ++l)
        for (int64_t c = 0; c < m.paddedCols(); ++c) {
          ASSERT_EQ(codeAt(m, tile.data(), l, c), codes.codes[16 * c + l]);
          int64_t g = c / m.group, at = 16 * g + l;
          if (!isSuper(form)) {
            ASSERT_EQ(half(m.groupScaleOffset(g) + 2 * l), codes.scales[at]);
            ASSERT_EQ(half(m.groupZeroOffset(g) + 2 * l), codes.minima[at]);
            continue;
          }
          int64_t batch = 16 * (g / m.batchGroups()) + l;
          ASSERT_EQ(half(m.headOffset(g) + 2 * l), codes.scales[batch]);
          ASSERT_EQ(tile[m.groupScaleOffset(g) + l], codes.subScales[at]);
          if (form == ScaleForm::Super)
            continue;
          ASSERT_EQ(half(m.headOffset(g) + 32 + 2 * l), codes.minima[batch]);
          ASSERT_EQ(tile[m.groupZeroOffset(g) + l], codes.subMinima[at]);
        }
      unpackCodes(m, tile.data(), back);
      EXPECT_TRUE(back.codes == codes.codes && back.scales == codes.scales &&
                  back.minima == codes.minima &&
                  back.subScales == codes.subScales &&
                  back.subMinima == codes.subMinima);
    }
}

TEST(QuantizedTile, QuantizesRowsOfAnySize) {
  const double bound[] = {19, 25, 31, 43};
  for (int i = 0; i < 4; ++i)
    for (int group : {32, 64, 128})
      for (bool symmetric : {false, true})
        for (auto [rows, cols] : {std::pair<int64_t, int64_t>{1, 64},
                                  {8, 96},
                                  {24, 300},
                                  {515, 256}}) {
          GridSpec grid{i == 3 ? 8 : 4 + i, group, symmetric};
          std::vector<float> w = randomWeights(rows * cols, rows);
          PackedMatrix m =
              PackedMatrix::plain(grid.layout(), rows, cols, group);
          Packed p = pack(m, grid, {matrixOf(w, rows, cols)});
          ASSERT_EQ(p.error, "");
          ASSERT_EQ(static_cast<int64_t>(p.bytes.size()), m.bytes());
          EXPECT_EQ(p.stats.weights, rows * cols);
          EXPECT_GT(p.stats.sqnr(), bound[i]);
          double noise = 0, signal = 0;
          std::vector<float> values(16 * cols);
          for (int64_t t = 0; t < m.tiles(); ++t) {
            const uint8_t *tile = &p.bytes[t * m.tileBytes()];
            dequantizeTile(m, tile, values.data());
            for (int64_t l = 0; l < 16; ++l) {
              int64_t row = 16 * t + l;
              for (int64_t c = 0; c < m.paddedCols(); ++c) {
                int zero = symmetric
                               ? middleCode(m.layout)
                               : tile[m.groupZeroOffset(c / group) + l];
                if (row >= rows) {
                  ASSERT_EQ(codeAt(m, tile, l, c), 0);
                  ASSERT_TRUE(symmetric || zero == 0);
                } else if (c >= cols) {
                  ASSERT_EQ(codeAt(m, tile, l, c), zero);
                }
              }
              for (int64_t c = 0; c < cols; ++c) {
                if (row >= rows) {
                  ASSERT_EQ(values[l * cols + c], 0);
                  continue;
                }
                double x = w[row * cols + c];
                signal += x * x;
                noise +=
                    (x - values[l * cols + c]) * (x - values[l * cols + c]);
              }
            }
          }
          EXPECT_NEAR(p.stats.signal, signal, signal * 1e-9);
          EXPECT_NEAR(p.stats.noise, noise, noise * 1e-4);
        }
}

// Fused runs with two sources and all, against each row quantized by itself.
TEST(QuantizedTile, RowsDoNotDependOnTheirTile) {
  GridSpec grid{4, 64, false};
  int64_t cols = 320;
  std::vector<float> a = randomWeights(100 * cols, 1),
                     b = randomWeights(40 * cols, 2);
  SourceMatrix sources[] = {matrixOf(a, 100, cols), matrixOf(b, 40, cols)};
  PackedMatrix m = PackedMatrix::tiled(
      grid.layout(), cols, 64,
      {{3, 6, 20, 0, 0, 0, 6}, {1, 40, 0, 0, 60}, {1, 40, 0, 1, 0}});
  Packed fused = pack(m, grid, sources);
  ASSERT_EQ(fused.error, "");
  std::vector<float> want(16 * cols);
  int64_t seen = 0;
  dequantizeMatrix(
      m, fused.bytes, [&](SourceRow at, llvm::ArrayRef<float> got) {
        PackedMatrix one = PackedMatrix::tiled(grid.layout(), cols, 64,
                                               {{1, 1, 0, at.weight, at.row}});
        Packed single = pack(one, grid, sources);
        dequantizeTile(one, single.bytes.data(), want.data());
        EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin()));
        ++seen;
      });
  EXPECT_EQ(seen, m.rows());
}

TEST(QuantizedTile, Deterministic) {
  GridSpec grid{5, 32, false};
  std::vector<float> w = randomWeights(3000 * 256, 4);
  PackedMatrix m = PackedMatrix::plain(grid.layout(), 3000, 256, 32);
  Packed a = pack(m, grid, {matrixOf(w, 3000, 256)}),
         b = pack(m, grid, {matrixOf(w, 3000, 256)});
  EXPECT_TRUE(a.bytes == b.bytes);
  EXPECT_EQ(a.stats.noise, b.stats.noise);
  EXPECT_EQ(a.stats.signal, b.stats.signal);
}

TEST(QuantizedTile, AllZerosAndSQNR) {
  GridSpec grid{4, 64, false};
  std::vector<float> w(16 * 64, 0.0f);
  Packed p = pack(PackedMatrix::plain(grid.layout(), 16, 64, 64), grid,
                  {matrixOf(w, 16, 64)});
  EXPECT_EQ(p.error, "");
  EXPECT_EQ(p.stats.sqnr(), 200);
  EXPECT_EQ(std::count(p.bytes.begin(), p.bytes.end(), 0),
            static_cast<int64_t>(p.bytes.size()));
  QuantizeStats stats{100, 1, 5};
  EXPECT_NEAR(stats.sqnr(), 20, 1e-12);
}

TEST(QuantizedTile, BadWeightsAreNamed) {
  GridSpec grid{4, 64, false};
  PackedMatrix m = PackedMatrix::plain(grid.layout(), 40, 100, 64);
  auto with = [&](float value, int64_t row, int64_t col) {
    std::vector<float> w = randomWeights(40 * 100, 5);
    w[row * 100 + col] = value;
    return pack(m, grid, {matrixOf(w, 40, 100)}).error;
  };
  EXPECT_EQ(with(NAN, 33, 7), "tensor 'w': weight at row 33, column 7 is NaN");
  EXPECT_EQ(with(-INFINITY, 0, 99),
            "tensor 'w': weight at row 0, column 99 is infinity");
  EXPECT_EQ(with(1e9f, 39, 0),
            "tensor 'w': weight at row 39, column 0 is too large for its grid");
  EXPECT_EQ(with(1e5f, 39, 0), "");
  std::vector<float> w = randomWeights(40 * 100, 5);
  EXPECT_EQ(pack(m, {4, 32, false}, {matrixOf(w, 40, 100)}).error,
            "layout tile16_q4 with groups of 64 is not that of a grid of 4 "
            "bits with groups of 32");
  EXPECT_EQ(pack(m, grid, {matrixOf(w, 40, 100)}, {Importance(99, 1)}).error,
            "importance of other columns");
  EXPECT_EQ(pack(m, grid, {matrixOf(w, 40, 100)}, {Importance(100, -1)}).error,
            "importance that is not a factor >= 0");
}

TEST(QuantizedTile, ImportanceIsPerSourceColumn) {
  GridSpec grid{4, 64, false};
  int64_t rows = 64, cols = 200;
  std::vector<float> w = randomWeights(rows * cols, 6);
  Importance factors(cols, 1);
  for (int64_t c = 0; c < cols; c += 5)
    factors[c] = 50;
  PackedMatrix m = PackedMatrix::plain(grid.layout(), rows, cols, 64);
  auto weighted = [&](const Packed &p) {
    std::vector<float> values(16 * cols);
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      dequantizeTile(m, &p.bytes[r / 16 * m.tileBytes()], values.data());
      for (int64_t c = 0; c < cols; ++c) {
        double e = w[r * cols + c] - values[r % 16 * cols + c];
        sum += factors[c] * e * e;
      }
    }
    return sum;
  };
  EXPECT_LT(weighted(pack(m, grid, {matrixOf(w, rows, cols)}, {factors})),
            weighted(pack(m, grid, {matrixOf(w, rows, cols)})) * 0.95);
}

// The oracle of the kernels against plain arithmetic in double.
TEST(QuantizedTile, ReferenceDot) {
  std::mt19937 rng(8);
  for (Layout layout : kQuantized)
    for (int64_t group : {32, 64, 128}) {
      GridSpec grid = GridSpec::of(layout, group);
      int64_t rows = 24, cols = 300;
      std::vector<float> w = randomWeights(rows * cols, 9);
      PackedMatrix m = PackedMatrix::plain(layout, rows, cols, group);
      Packed p = pack(m, grid, {matrixOf(w, rows, cols)});
      for (int64_t xGroup : {int64_t(32), group}) {
        std::vector<int8_t> x(m.paddedCols());
        for (int64_t c = 0; c < cols; ++c)
          x[c] = int(rng() % 255) - 127;
        std::vector<float> xScales(m.paddedCols() / xGroup);
        for (float &s : xScales)
          s = 0.001f * (1 + rng() % 100);
        std::vector<float> values(16 * cols);
        for (int64_t r = 0; r < rows; ++r) {
          const uint8_t *tile = &p.bytes[r / 16 * m.tileBytes()];
          dequantizeTile(m, tile, values.data());
          double want = 0, size = 0;
          for (int64_t c = 0; c < cols; ++c) {
            double term =
                double(values[r % 16 * cols + c]) * x[c] * xScales[c / xGroup];
            want += term;
            size += std::fabs(term);
          }
          EXPECT_NEAR(
              referenceDot(m, tile, r % 16, x.data(), xScales.data(), xGroup),
              want, size * 1e-6);
        }
      }
    }
}

TEST(QuantizedTile, DequantizesFloatTiles) {
  std::vector<float> w = randomWeights(24 * 33, 10);
  SourceMatrix source = matrixOf(w, 24, 33);
  for (Layout layout : {Layout::Tile16F32, Layout::Tile16BF16}) {
    PackedMatrix m = PackedMatrix::plain(layout, 24, 33);
    std::vector<uint8_t> tile(m.tileBytes());
    packFloatTile(m, 1, {source}, tile.data());
    std::vector<float> out(16 * 33);
    dequantizeTile(m, tile.data(), out.data());
    for (int64_t l = 0; l < 16; ++l)
      for (int64_t c = 0; c < 33; ++c) {
        float x = l < 8 ? w[(16 + l) * 33 + c] : 0;
        EXPECT_EQ(out[l * 33 + c], layout == Layout::Tile16F32
                                       ? x
                                       : floatFromBF16(bf16FromFloat(x)));
      }
  }
}
