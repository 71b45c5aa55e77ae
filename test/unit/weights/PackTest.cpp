//===- PackTest.cpp - Float tiles -----------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Pack.h"
#include "codegen/weights/Half.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace sparkc;

namespace {
/// A random matrix with storage of its own.
struct Random {
  Random(SourceType type, int64_t rows, int64_t cols, unsigned seed)
      : bytes(rows * sourceRowBytes(type, cols)) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, 1);
    for (int64_t i = 0; i < rows * cols; ++i) {
      float f = normal(rng);
      if (type == SourceType::F32) {
        std::memcpy(&bytes[4 * i], &f, 4);
        continue;
      }
      uint16_t h =
          type == SourceType::BF16 ? bf16FromFloat(f) : f16FromFloat(f);
      std::memcpy(&bytes[2 * i], &h, 2);
    }
    source = {bytes.data(), type, rows, cols, "random"};
  }
  float at(int64_t row, int64_t col) const {
    std::vector<float> values(source.cols);
    readRow(source, row, values.data());
    return values[col];
  }
  std::vector<uint8_t> bytes;
  SourceMatrix source;
};

std::vector<uint8_t> pack(const PackedMatrix &m,
                          llvm::ArrayRef<SourceMatrix> sources) {
  std::vector<uint8_t> out;
  llvm::Error e = packFloatMatrix(m, sources, [&](llvm::ArrayRef<uint8_t> b) {
    out.insert(out.end(), b.begin(), b.end());
    return llvm::Error::success();
  });
  EXPECT_EQ(llvm::toString(std::move(e)), "");
  EXPECT_EQ(static_cast<int64_t>(out.size()), m.bytes());
  return out;
}

/// Reads all of `packed` back through the index equation.
void check(const PackedMatrix &m, llvm::ArrayRef<const Random *> weights,
           const std::vector<uint8_t> &packed) {
  bool narrow = bitsPerWeight(m.layout) == 16;
  int64_t lanes = isTiled(m.layout) ? 16 : 1, valid = 0;
  for (int64_t t = 0; t < m.tiles(); ++t)
    for (int64_t l = 0; l < lanes; ++l) {
      SourceRow at = m.rowOf(t, l);
      std::vector<float> row(m.paddedCols());
      if (!at.isPadding())
        readRow(weights[at.weight]->source, at.row, row.data());
      valid += !at.isPadding();
      for (int64_t c = 0; c < m.paddedCols(); ++c) {
        const uint8_t *p = &packed[t * m.tileBytes() + m.element(l, c).byte];
        if (narrow) {
          uint16_t h;
          std::memcpy(&h, p, 2);
          ASSERT_EQ(h, bf16FromFloat(row[c])) << t << " " << l << " " << c;
        } else {
          float f;
          std::memcpy(&f, p, 4);
          ASSERT_EQ(f, row[c]) << t << " " << l << " " << c;
        }
      }
    }
  EXPECT_EQ(valid, m.rows());
}
} // namespace

TEST(Pack, PlainRowsOfAnySize) {
  for (Layout layout : {Layout::Tile16F32, Layout::Tile16BF16, Layout::RowsF32,
                        Layout::RowsBF16})
    for (SourceType type : {SourceType::F32, SourceType::BF16, SourceType::F16})
      for (int64_t rows : {1, 8, 16, 24, 515})
        for (int64_t cols : {1, 31, 64}) {
          Random w(type, rows, cols, rows * 100 + cols);
          PackedMatrix m = isTiled(layout)
                               ? PackedMatrix::plain(layout, rows, cols)
                               : PackedMatrix::rowMajor(layout, rows, cols);
          check(m, {&w}, pack(m, {w.source}));
          if (HasFatalFailure())
            return;
        }
}

TEST(Pack, FusedRuns) {
  // 3 heads of 20 with 12 rotary dims, one KV head, 3 gate rows: all odd.
  Random qkv(SourceType::BF16, 100, 34, 1), gate(SourceType::F32, 3, 34, 2);
  PackedMatrix m = PackedMatrix::tiled(Layout::Tile16BF16, 34, 0,
                                       {{3, 6, 20, 0, 0, 0, 6},
                                        {1, 6, 20, 0, 60, 0, 66},
                                        {3, 8, 20, 0, 12},
                                        {1, 8, 20, 0, 72},
                                        {1, 20, 0, 0, 80},
                                        {1, 3, 0, 1, 0}});
  check(m, {&qkv, &gate}, pack(m, {qkv.source, gate.source}));
  Random up(SourceType::F16, 88, 34, 3), down(SourceType::F16, 88, 34, 4);
  m = PackedMatrix::tiled(Layout::Tile16F32, 34, 0, {{1, 88, 0, 1, 0, 0, 0}});
  check(m, {&up, &down}, pack(m, {up.source, down.source}));
}

TEST(Pack, VectorIsPaddedFloat32) {
  Random w(SourceType::BF16, 1, 17, 5);
  PackedMatrix m = PackedMatrix::vector(17);
  check(m, {&w}, pack(m, {w.source}));
}

TEST(Pack, Bfloat16IsCopied) {
  // Every bit pattern, NaNs included, comes through unchanged.
  std::vector<uint8_t> bytes(2 * 65536);
  for (uint32_t i = 0; i < 65536; ++i)
    bytes[2 * i] = i & 0xff, bytes[2 * i + 1] = i >> 8;
  SourceMatrix source{bytes.data(), SourceType::BF16, 256, 256};
  PackedMatrix m = PackedMatrix::plain(Layout::Tile16BF16, 256, 256);
  std::vector<uint8_t> out(m.bytes());
  for (int64_t tile = 0; tile < m.tiles(); ++tile)
    packFloatTile(m, tile, {source}, &out[tile * m.tileBytes()]);
  for (int64_t r = 0; r < 256; ++r)
    for (int64_t c = 0; c < 256; ++c) {
      const uint8_t *p =
          &out[r / 16 * m.tileBytes() + m.element(r % 16, c).byte];
      ASSERT_EQ(p[0] | p[1] << 8, r * 256 + c);
    }
}

TEST(Pack, ReleasesEveryRowAndMisalignedSourcesWork) {
  Random w(SourceType::BF16, 5000, 600, 6);
  std::vector<uint8_t> shifted(w.bytes.size() + 1);
  std::copy(w.bytes.begin(), w.bytes.end(), shifted.begin() + 1);
  SourceMatrix source = w.source;
  source.data = shifted.data() + 1;
  std::vector<bool> released(w.bytes.size());
  source.release = [&](const uint8_t *begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      released[begin - source.data + i] = true;
  };
  PackedMatrix m = PackedMatrix::plain(Layout::Tile16BF16, 5000, 600);
  std::vector<uint8_t> a = pack(m, {w.source}), b = pack(m, {source});
  EXPECT_TRUE(a == b);
  EXPECT_GT(std::count(released.begin(), released.end(), true), 4900 * 1200);
}

TEST(Pack, RefusesWhatIsNoNumber) {
  auto message = [](Layout layout, float value, int64_t row, int64_t col) {
    std::vector<float> weights(20 * 33);
    weights[row * 33 + col] = value;
    SourceMatrix source{reinterpret_cast<const uint8_t *>(weights.data()),
                        SourceType::F32, 20, 33, "w"};
    PackedMatrix m = isTiled(layout) ? PackedMatrix::plain(layout, 20, 33)
                                     : PackedMatrix::rowMajor(layout, 20, 33);
    return llvm::toString(packFloatMatrix(
        m, {source},
        [](llvm::ArrayRef<uint8_t>) { return llvm::Error::success(); }));
  };
  for (Layout layout : {Layout::Tile16F32, Layout::Tile16BF16, Layout::RowsF32,
                        Layout::RowsBF16}) {
    std::string at = "tensor 'w': weight at row 19, column 32 is ";
    EXPECT_EQ(message(layout, NAN, 19, 32), at + "NaN");
    EXPECT_EQ(message(layout, INFINITY, 19, 32), at + "infinity");
    EXPECT_EQ(message(layout, -INFINITY, 0, 1),
              "tensor 'w': weight at row 0, column 1 is infinity");
    // Rounds to infinity in bfloat16 alone.
    EXPECT_EQ(message(layout, 0x1.ffp127f, 19, 32),
              bitsPerWeight(layout) == 16 ? at + "too large for bfloat16" : "");
    EXPECT_EQ(message(layout, 0x1.fep127f, 3, 4), "");
  }
}

TEST(Pack, Refuses) {
  Random w(SourceType::BF16, 16, 32, 7);
  auto message = [&](const PackedMatrix &m) {
    return llvm::toString(
        packFloatMatrix(m, {w.source}, [](llvm::ArrayRef<uint8_t>) {
          return llvm::Error::success();
        }));
  };
  EXPECT_EQ(message(PackedMatrix::plain(Layout::Tile16F32, 16, 33)),
            "packed matrix of 33 columns from a source of 32");
  EXPECT_EQ(message(PackedMatrix::plain(Layout::Tile16F32, 17, 32)),
            "row run reads rows 0 to 17 of a matrix of 16");
  EXPECT_EQ(message(PackedMatrix::plain(Layout::Tile16Q4, 16, 32, 32)),
            "layout tile16_q4 needs a grid");
  EXPECT_EQ(llvm::toString(packFloatMatrix(
                PackedMatrix::plain(Layout::Tile16F32, 16, 32), {w.source},
                [](llvm::ArrayRef<uint8_t>) {
                  return llvm::createStringError("full");
                })),
            "full");
}
