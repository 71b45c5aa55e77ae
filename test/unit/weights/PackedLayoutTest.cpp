//===- PackedLayoutTest.cpp - The index equation --------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/PackedLayout.h"
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace sparkc;

namespace {
constexpr Layout kTiled[] = {Layout::Tile16F32, Layout::Tile16BF16,
                             Layout::Tile16Q8,  Layout::Tile16Q4,
                             Layout::Tile16Q5,  Layout::Tile16Q6,
                             Layout::Tile16Q4M, Layout::Tile16Q5M,
                             Layout::Tile16Q4K, Layout::Tile16Q5K,
                             Layout::Tile16Q6K, Layout::Tile16Q4S,
                             Layout::Tile16Q5S, Layout::Tile16Q6S,
                             Layout::Tile16Q8S};

/// Marks bits of a tile; fails where two things share one.
struct BitMap {
  explicit BitMap(int64_t bytes) : used(bytes * 8) {}
  void mark(int64_t byte, unsigned shift, unsigned bits) {
    for (unsigned b = 0; b < bits; ++b) {
      ASSERT_LT(byte * 8 + shift + b, static_cast<int64_t>(used.size()));
      ASSERT_FALSE(used[byte * 8 + shift + b]) << byte << " " << shift + b;
      used[byte * 8 + shift + b] = true;
    }
  }
  int64_t count() const { return std::count(used.begin(), used.end(), true); }
  std::vector<bool> used;
};
} // namespace

TEST(PackedLayout, NamesAndIds) {
  for (Layout layout : kTiled) {
    EXPECT_EQ(layoutFromName(layoutName(layout)), layout);
    EXPECT_EQ(layoutFromId(static_cast<uint32_t>(layout)), layout);
  }
  EXPECT_EQ(layoutName(Layout::Tile16Q4), "tile16_q4");
  EXPECT_FALSE(layoutFromName("tile16_q3"));
  EXPECT_FALSE(layoutFromId(0));
}

/// Marks what a group has in its head; gives the bits that are left of a whole
/// tile where its last batch is short.
int64_t markHead(const PackedMatrix &m, BitMap &map, int64_t lane) {
  ScaleForm form = scaleForm(m.layout);
  int64_t unused = m.batches() * m.batchGroups() - m.groups();
  for (int64_t g = 0; g < m.groups(); ++g) {
    if (isSuper(form)) {
      map.mark(m.groupScaleOffset(g) + lane, 0, 8);
      if (g % m.batchGroups() == 0)
        map.mark(m.headOffset(g) + 2 * lane, 0, 16);
      if (g % m.batchGroups() == 0 && hasMinimum(form))
        map.mark(m.headOffset(g) + kHeadSuperMinimum + 2 * lane, 0, 16);
    } else {
      map.mark(m.groupScaleOffset(g) + 2 * lane, 0, 16);
    }
    if (form == ScaleForm::Minimum)
      map.mark(m.groupZeroOffset(g) + 2 * lane, 0, 16);
    else if (form == ScaleForm::Zero || form == ScaleForm::SuperMinimum)
      map.mark(m.groupZeroOffset(g) + lane, 0, 8);
  }
  switch (form) {
  case ScaleForm::Zero:
    // A single batch of fewer than four is rounded up to a line.
    return m.groups() < 4 ? (m.headBytes() - 48 * m.groups()) / 2
                          : unused * 24;
  case ScaleForm::Symmetric:
    return m.batches() * 32 - 16 * m.groups();
  case ScaleForm::Minimum:
  case ScaleForm::SuperMinimum:
    return unused * (form == ScaleForm::Minimum ? 32 : 16);
  case ScaleForm::Super:
    return unused * 8 + 16 * m.batches();
  }
  return 0;
}

// Every element, scale and zero point has bits of its own, and nothing else
// does: for whole batches the tile is filled exactly.
TEST(PackedLayout, ElementsFillTilesWithoutOverlap) {
  for (Layout layout : kTiled)
    for (int64_t group : {0, 16, 32, 64, 128})
      for (int64_t cols : {1, 7, 32, 96, 100, 256, 515, 768}) {
        if (!isGroupOf(layout, group))
          continue;
        PackedMatrix m = PackedMatrix::plain(layout, 16, cols, group);
        ASSERT_EQ(m.tileBytes() % 64, 0);
        BitMap map(m.tileBytes());
        int64_t spare = 0; // unused slots of a batch head
        for (int64_t l = 0; l < 16; ++l) {
          for (int64_t c = 0; c < m.paddedCols(); ++c) {
            ElementLocation at = m.element(l, c);
            ASSERT_EQ(at.bits + at.highBits, bitsPerWeight(layout));
            map.mark(at.byte, at.shift, at.bits);
            if (at.highBits)
              map.mark(at.highByte, at.highShift, at.highBits);
          }
          if (isQuantized(layout))
            spare += markHead(m, map, l);
          if (HasFatalFailure())
            return;
        }
        EXPECT_EQ(map.count(), m.tileBytes() * 8 - spare);
      }
}

// Exactly what the header's text says, for a few points worked out by hand.
TEST(PackedLayout, EquationByHand) {
  PackedMatrix q4 = PackedMatrix::plain(Layout::Tile16Q4, 16, 512, 64);
  EXPECT_EQ(q4.groupLines(), 8);
  EXPECT_EQ(q4.batchBytes(), 192 + 4 * 512);
  EXPECT_EQ(q4.tileBytes(), 2 * (192 + 4 * 512));
  EXPECT_EQ(q4.tileBytes() * 8 / (16 * 512.0), 4.375);
  EXPECT_EQ(q4.groupScaleOffset(5), 2240 + 32);
  EXPECT_EQ(q4.groupZeroOffset(5), 2240 + 128 + 16);
  EXPECT_EQ(q4.groupLineOffset(5), 2240 + 192 + 512);
  ElementLocation at = q4.element(3, 5 * 64 + 8 + 6);
  EXPECT_EQ(at.byte, 2240 + 192 + 512 + 64 + 4 * 3 + 2);
  EXPECT_EQ(at.shift, 4u);
  EXPECT_EQ(at.highBits, 0u);

  // 4.125 bits a weight, however few groups there are (in pairs).
  PackedMatrix q4s = PackedMatrix::plain(Layout::Tile16Q4S, 16, 768, 128);
  EXPECT_EQ(q4s.batchBytes(), 64 + 2 * 1024);
  EXPECT_EQ(q4s.tileBytes() * 8 / (16 * 768.0), 4.125);
  EXPECT_EQ(q4s.groupScaleOffset(5), 2 * 2112 + 32);
  EXPECT_EQ(q4s.groupLineOffset(5), 2 * 2112 + 64 + 1024);
  EXPECT_EQ(PackedMatrix::plain(Layout::Tile16Q4S, 16, 256, 128).tileBytes(),
            2112);
  EXPECT_EQ(PackedMatrix::plain(Layout::Tile16Q4S, 16, 64, 64).tileBytes(),
            64 + 512);

  PackedMatrix q5 = PackedMatrix::plain(Layout::Tile16Q5, 16, 64, 64);
  EXPECT_EQ(q5.groupLines(), 10);
  EXPECT_EQ(q5.groupZeroOffset(0), 32); // one group: a head of a line
  at = q5.element(1, 32 + 8 * 2 + 4 + 3); // block 1, code line 2, high half
  EXPECT_EQ(at.byte, 64 + 64 * (5 + 1 + 2) + 4 + 3);
  EXPECT_EQ(at.shift, 4u);
  EXPECT_EQ(at.highByte, 64 + 64 * 5 + 4 + 3);
  EXPECT_EQ(at.highShift, 4u + 2);

  PackedMatrix q6 = PackedMatrix::plain(Layout::Tile16Q6, 16, 64, 32);
  EXPECT_EQ(q6.groupLines(), 6);
  EXPECT_EQ(q6.tileBytes(), 128 + 2 * 6 * 64);
  EXPECT_EQ(q6.groupZeroOffset(1), 64 + 16);
  at = q6.element(15, 16 + 8 + 1); // block 1, code line 1, low half
  EXPECT_EQ(at.byte, 128 + 64 * (3 + 2) + 60 + 1);
  EXPECT_EQ(at.shift, 0u);
  EXPECT_EQ(at.highByte, 128 + 64 * 3 + 60 + 1);
  EXPECT_EQ(at.highShift, 2u);
  // Five groups are a batch of four and one with a whole head.
  EXPECT_EQ(PackedMatrix::plain(Layout::Tile16Q6, 16, 160, 32).tileBytes(),
            2 * 192 + 5 * 6 * 64);

  PackedMatrix q4k = PackedMatrix::plain(Layout::Tile16Q4K, 16, 512, 32);
  EXPECT_EQ(q4k.batchBytes(), 320 + 8 * 4 * 64);
  EXPECT_EQ(q4k.tileBytes() * 8 / (16 * 512.0), 4.625);
  EXPECT_EQ(q4k.headOffset(9), 2368);
  EXPECT_EQ(q4k.groupScaleOffset(9), 2368 + 64 + 16);
  EXPECT_EQ(q4k.groupZeroOffset(9), 2368 + 192 + 16);
  EXPECT_EQ(q4k.groupLineOffset(9), 2368 + 320 + 256);
  PackedMatrix q6k = PackedMatrix::plain(Layout::Tile16Q6K, 16, 512, 16);
  EXPECT_EQ(q6k.batchBytes(), 320 + 16 * 3 * 64);
  EXPECT_EQ(q6k.tileBytes() * 8 / (16 * 512.0), 6.625);
  EXPECT_EQ(q6k.groupScaleOffset(17), 3392 + 64 + 16);
  EXPECT_EQ(q6k.groupLineOffset(17), 3392 + 320 + 192);
  PackedMatrix q4m = PackedMatrix::plain(Layout::Tile16Q4M, 16, 256, 32);
  EXPECT_EQ(q4m.groupZeroOffset(5), 256 + 4 * 256 + 128 + 32);

  PackedMatrix q8 = PackedMatrix::plain(Layout::Tile16Q8, 16, 128, 128);
  EXPECT_EQ(q8.element(2, 21).byte, 64 + 64 * 5 + 8 + 1);
  PackedMatrix bf16 = PackedMatrix::plain(Layout::Tile16BF16, 24, 7);
  EXPECT_EQ(bf16.tileBytes(), 4 * 64);
  EXPECT_EQ(bf16.tiles(), 2);
  EXPECT_EQ(bf16.element(9, 5).byte, 2 * 64 + 36 + 2);
  PackedMatrix f32 = PackedMatrix::plain(Layout::Tile16F32, 24, 7);
  EXPECT_EQ(f32.element(9, 5).byte, 5 * 64 + 36);
}

TEST(PackedLayout, RowMajorSizes) {
  EXPECT_EQ(PackedMatrix::vector(17).bytes(), 128);
  PackedMatrix rows = PackedMatrix::rowMajor(Layout::RowsBF16, 5, 33);
  EXPECT_EQ(rows.tileBytes(), 128);
  EXPECT_EQ(rows.bytes(), 5 * 128);
  EXPECT_EQ(rows.rowOf(4, 0).row, 4);
  EXPECT_EQ(rows.element(0, 32).byte, 64);
}

// A fused QKV + gate matrix: every source row is packed exactly once, and the
// two rows of a rotary pair share a lane of neighbouring tiles.
TEST(PackedLayout, RopePairsAndPassThrough) {
  for (int64_t heads : {1, 3, 4})
    for (int64_t kvHeads : {1, 2})
      for (int64_t dim : {16, 20, 64})
        for (int64_t rotary : {4, 12, 16}) {
          int64_t q0 = 0, k0 = heads * dim, v0 = k0 + kvHeads * dim;
          int64_t rows = v0 + kvHeads * dim, half = rotary / 2;
          std::vector<RowRun> runs = {
              {heads, half, dim, 0, q0, 0, q0 + half},
              {kvHeads, half, dim, 0, k0, 0, k0 + half}};
          if (dim > rotary) {
            runs.push_back({heads, dim - rotary, dim, 0, q0 + rotary});
            runs.push_back({kvHeads, dim - rotary, dim, 0, k0 + rotary});
          }
          runs.push_back({1, kvHeads * dim, 0, 0, v0});
          runs.push_back({1, heads, 0, 1, 0}); // gate rows
          PackedMatrix m = PackedMatrix::tiled(Layout::Tile16F32, 8, 0, runs);
          ASSERT_FALSE(llvm::errorToBool(m.verify({rows, heads})));
          EXPECT_EQ(m.rows(), rows + heads);
          std::set<std::pair<int, int64_t>> seen;
          for (int64_t t = 0; t < m.tiles(); ++t)
            for (int64_t l = 0; l < 16; ++l) {
              SourceRow at = m.rowOf(t, l);
              if (at.isPadding())
                continue;
              EXPECT_TRUE(seen.insert({at.weight, at.row}).second);
              auto [run, i] = m.runOf(t);
              if (!run->paired())
                continue;
              SourceRow other = m.rowOf(i % 2 ? t - 1 : t + 1, l);
              EXPECT_EQ(other.row - at.row, i % 2 ? -half : half);
              int64_t inHead = at.row % dim % rotary;
              EXPECT_EQ(inHead < half, i % 2 == 0);
            }
          EXPECT_EQ(seen.size(), static_cast<size_t>(rows + heads));
        }
}

TEST(PackedLayout, GegluPairs) {
  PackedMatrix m =
      PackedMatrix::tiled(Layout::Tile16BF16, 8, 0, {{1, 24, 0, 0, 0, 1, 0}});
  EXPECT_EQ(m.tiles(), 4);
  EXPECT_EQ(m.rowOf(2, 7).weight, 0);
  EXPECT_EQ(m.rowOf(2, 7).row, 23);
  EXPECT_EQ(m.rowOf(3, 7).weight, 1);
  EXPECT_EQ(m.rowOf(3, 7).row, 23);
  EXPECT_TRUE(m.rowOf(2, 8).isPadding());
  EXPECT_TRUE(m.rowOf(3, 8).isPadding());
}

TEST(PackedLayout, VerifyRefuses) {
  auto message = [](const PackedMatrix &m, std::vector<int64_t> rows) {
    return llvm::toString(m.verify(rows));
  };
  PackedMatrix ok = PackedMatrix::plain(Layout::Tile16Q4, 17, 100, 64);
  EXPECT_EQ(message(ok, {17}), "");
  EXPECT_EQ(message(ok, {16}), "row run reads rows 0 to 17 of a matrix of 16");
  EXPECT_EQ(message(ok, {}), "row run refers to source 0 of 0");
  PackedMatrix bad = ok;
  bad.group = 48;
  EXPECT_EQ(message(bad, {17}), "group of 48 columns in layout tile16_q4");
  bad = ok;
  bad.layout = Layout::Tile16F32;
  EXPECT_EQ(message(bad, {17}), "group of 64 columns in layout tile16_f32");
  bad = ok;
  bad.cols = 0;
  EXPECT_EQ(message(bad, {17}), "packed matrix of 0 columns");
  bad = ok;
  bad.runs[0].heads = int64_t(1) << 40;
  EXPECT_NE(message(bad, {17}), "");
  bad = ok;
  bad.runs[0].heads = 2; // stride 0 would pack rows twice
  EXPECT_NE(message(bad, {34}), "");
  bad.runs.clear();
  EXPECT_EQ(message(bad, {17}), "packed matrix without rows");
}
