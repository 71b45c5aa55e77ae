//===- PackedLayout.cpp - Where every weight lies in the file -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/PackedLayout.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>

namespace sparkc {

namespace {
struct LayoutInfo {
  Layout layout;
  const char *name;
  unsigned bits;
  bool tiled, quantized;
  ScaleForm form = ScaleForm::Zero;
};
constexpr LayoutInfo kLayouts[] = {
    {Layout::VectorF32, "vector_f32", 32, false, false},
    {Layout::RowsF32, "rows_f32", 32, false, false},
    {Layout::RowsBF16, "rows_bf16", 16, false, false},
    {Layout::Tile16F32, "tile16_f32", 32, true, false},
    {Layout::Tile16BF16, "tile16_bf16", 16, true, false},
    {Layout::Tile16Q8, "tile16_q8", 8, true, true},
    {Layout::Tile16Q4, "tile16_q4", 4, true, true},
    {Layout::Tile16Q5, "tile16_q5", 5, true, true},
    {Layout::Tile16Q6, "tile16_q6", 6, true, true},
    {Layout::Tile16Q4M, "tile16_q4m", 4, true, true, ScaleForm::Minimum},
    {Layout::Tile16Q5M, "tile16_q5m", 5, true, true, ScaleForm::Minimum},
    {Layout::Tile16Q4K, "tile16_q4k", 4, true, true, ScaleForm::SuperMinimum},
    {Layout::Tile16Q5K, "tile16_q5k", 5, true, true, ScaleForm::SuperMinimum},
    {Layout::Tile16Q6K, "tile16_q6k", 6, true, true, ScaleForm::Super},
    {Layout::Tile16Q4S, "tile16_q4s", 4, true, true, ScaleForm::Symmetric},
    {Layout::Tile16Q5S, "tile16_q5s", 5, true, true, ScaleForm::Symmetric},
    {Layout::Tile16Q6S, "tile16_q6s", 6, true, true, ScaleForm::Symmetric},
    {Layout::Tile16Q8S, "tile16_q8s", 8, true, true, ScaleForm::Symmetric},
};

const LayoutInfo &infoOf(Layout layout) {
  for (const LayoutInfo &info : kLayouts)
    if (info.layout == layout)
      return info;
  llvm_unreachable("unknown layout");
}

template <typename... Ts> llvm::Error error(const char *format, Ts... args) {
  return llvm::createStringError(std::errc::invalid_argument, format, args...);
}
} // namespace

llvm::StringRef layoutName(Layout layout) { return infoOf(layout).name; }
bool isTiled(Layout layout) { return infoOf(layout).tiled; }
bool isQuantized(Layout layout) { return infoOf(layout).quantized; }
unsigned bitsPerWeight(Layout layout) { return infoOf(layout).bits; }
ScaleForm scaleForm(Layout layout) { return infoOf(layout).form; }

std::optional<Layout> layoutOf(unsigned bits, ScaleForm form) {
  for (const LayoutInfo &info : kLayouts)
    if (info.quantized && info.bits == bits && info.form == form)
      return info.layout;
  return std::nullopt;
}

bool isGroupOf(Layout layout, int64_t group) {
  if (!isQuantized(layout))
    return group == 0;
  switch (scaleForm(layout)) {
  case ScaleForm::Zero:
  case ScaleForm::Symmetric:
    return group == 32 || group == 64 || group == 128;
  case ScaleForm::Minimum:
  case ScaleForm::SuperMinimum:
    return group == 32;
  case ScaleForm::Super:
    return group == 16;
  }
  llvm_unreachable("unknown form");
}

const char *groupsOf(Layout layout) {
  return !isQuantized(layout)                      ? "none"
         : isPlain(scaleForm(layout))              ? "32, 64 or 128"
         : scaleForm(layout) == ScaleForm::Super   ? "16"
                                                   : "32";
}

std::optional<Layout> layoutFromName(llvm::StringRef name) {
  for (const LayoutInfo &info : kLayouts)
    if (name == info.name)
      return info.layout;
  return std::nullopt;
}

std::optional<Layout> layoutFromId(uint32_t id) {
  for (const LayoutInfo &info : kLayouts)
    if (id == static_cast<uint32_t>(info.layout))
      return info.layout;
  return std::nullopt;
}

static RowRun plainRun(int64_t rows) {
  RowRun run;
  run.width = rows;
  return run;
}

PackedMatrix PackedMatrix::vector(int64_t n) {
  return {Layout::VectorF32, n, 0, {plainRun(1)}};
}

PackedMatrix PackedMatrix::rowMajor(Layout layout, int64_t rows, int64_t cols) {
  assert(!isTiled(layout) && layout != Layout::VectorF32);
  return {layout, cols, 0, {plainRun(rows)}};
}

PackedMatrix PackedMatrix::tiled(Layout layout, int64_t cols, int64_t group,
                                 std::vector<RowRun> runs) {
  assert(isTiled(layout));
  return {layout, cols, group, std::move(runs)};
}

PackedMatrix PackedMatrix::plain(Layout layout, int64_t rows, int64_t cols,
                                 int64_t group) {
  return tiled(layout, cols, group, {plainRun(rows)});
}

int64_t PackedMatrix::rows() const {
  int64_t n = 0;
  for (const RowRun &run : runs)
    n += run.lanes() * (run.paired() ? 2 : 1);
  return n;
}

int64_t PackedMatrix::tiles() const {
  if (!isTiled(layout))
    return rows();
  int64_t n = 0;
  for (const RowRun &run : runs)
    n += run.tiles();
  return n;
}

int64_t PackedMatrix::paddedCols() const {
  if (group)
    return llvm::divideCeil(cols, group) * group;
  switch (layout) {
  case Layout::Tile16BF16:
    return llvm::alignTo(cols, 2);
  case Layout::RowsBF16:
    return llvm::alignTo(cols, 32);
  case Layout::RowsF32:
  case Layout::VectorF32:
    return llvm::alignTo(cols, 16);
  default:
    return cols;
  }
}

int64_t PackedMatrix::groupLines() const {
  return isQuantized(layout)
             ? bitsPerWeight(layout) * group * kTileRows / (8 * kLineBytes)
             : 0;
}

int64_t PackedMatrix::batchGroups() const {
  switch (scaleForm(layout)) {
  case ScaleForm::Zero:
    return std::min<int64_t>(groups(), 4);
  case ScaleForm::Symmetric:
    return std::min<int64_t>(groups(), 2);
  case ScaleForm::Minimum:
    return 4;
  case ScaleForm::SuperMinimum:
    return 8;
  case ScaleForm::Super:
    return 16;
  }
  llvm_unreachable("unknown form");
}

int64_t PackedMatrix::headBytes() const {
  switch (scaleForm(layout)) {
  case ScaleForm::Zero:
    return alignLine(headZeros() + kTileRows * batchGroups());
  case ScaleForm::Symmetric:
    return kLineBytes;
  case ScaleForm::Minimum:
    return 256;
  case ScaleForm::SuperMinimum:
  case ScaleForm::Super:
    return 320;
  }
  llvm_unreachable("unknown form");
}

int64_t PackedMatrix::headZeros() const {
  ScaleForm form = scaleForm(layout);
  assert(form == ScaleForm::Zero || form == ScaleForm::Minimum);
  return form == ScaleForm::Zero ? 2 * kTileRows * batchGroups() : kHeadMinima;
}

int64_t PackedMatrix::tileBytes() const {
  if (isQuantized(layout))
    return headBytes() * batches() + kLineBytes * groupLines() * groups();
  int64_t rowBytes = paddedCols() * bitsPerWeight(layout) / 8;
  return isTiled(layout) ? rowBytes * kTileRows : alignLine(rowBytes);
}

int64_t PackedMatrix::batchBytes() const {
  return headBytes() + batchGroups() * kLineBytes * groupLines();
}

int64_t PackedMatrix::bytes() const { return tiles() * tileBytes(); }

int64_t PackedMatrix::headOffset(int64_t g) const {
  return g / batchGroups() * batchBytes();
}

int64_t PackedMatrix::groupLineOffset(int64_t g) const {
  return headOffset(g) + headBytes() +
         g % batchGroups() * kLineBytes * groupLines();
}

int64_t PackedMatrix::groupScaleOffset(int64_t g) const {
  int64_t inBatch = g % batchGroups();
  return headOffset(g) + (isSuper(scaleForm(layout))
                              ? kHeadSubScales + inBatch * kTileRows
                              : inBatch * 2 * kTileRows);
}

int64_t PackedMatrix::groupZeroOffset(int64_t g) const {
  int64_t inBatch = g % batchGroups();
  switch (scaleForm(layout)) {
  case ScaleForm::Zero:
    return headOffset(g) + headZeros() + inBatch * kTileRows;
  case ScaleForm::Minimum:
    return headOffset(g) + headZeros() + inBatch * 2 * kTileRows;
  case ScaleForm::SuperMinimum:
    return headOffset(g) + kHeadSubMinima + inBatch * kTileRows;
  case ScaleForm::Super:
  case ScaleForm::Symmetric:
    break;
  }
  llvm_unreachable("a form with neither zero points nor minima");
}

ElementLocation PackedMatrix::element(int64_t lane, int64_t col) const {
  assert(lane >= 0 && lane < kTileRows && col >= 0 && col < paddedCols());
  ElementLocation at;
  at.bits = bitsPerWeight(layout);
  if (!isTiled(layout)) {
    at.byte = col * at.bits / 8;
    return at;
  }
  if (layout == Layout::Tile16F32) {
    at.byte = kLineBytes * col + 4 * lane;
    return at;
  }
  if (layout == Layout::Tile16BF16) {
    at.byte = kLineBytes * (col / 2) + 4 * lane + 2 * (col % 2);
    return at;
  }
  int64_t lines = groupLineOffset(col / group), r = col % group;
  int64_t inLine = 4 * lane + r % 4;
  if (at.bits == 8) {
    at.byte = lines + kLineBytes * (r / 4) + inLine;
    return at;
  }
  unsigned half = r / 4 % 2;
  int64_t line = r / 8;
  at.shift = 4 * half;
  at.bits = 4;
  if (bitsPerWeight(layout) != 4) {
    unsigned extra = bitsPerWeight(layout) - 4;
    int64_t m = 4 / extra, block = line / m, i = line % m;
    at.highByte = lines + kLineBytes * ((m + 1) * block) + inLine;
    at.highShift = 4 * half + extra * i;
    at.highBits = extra;
    line = (m + 1) * block + 1 + i;
  }
  at.byte = lines + kLineBytes * line + inLine;
  return at;
}

std::pair<const RowRun *, int64_t> PackedMatrix::runOf(int64_t tile) const {
  for (const RowRun &run : runs) {
    int64_t n = isTiled(layout) ? run.tiles() : run.lanes();
    if (tile < n)
      return {&run, tile};
    tile -= n;
  }
  llvm_unreachable("tile outside the matrix");
}

SourceRow PackedMatrix::rowOf(int64_t tile, int64_t lane) const {
  auto [run, index] = runOf(tile);
  bool isB = false;
  int64_t j = index;
  if (isTiled(layout)) {
    isB = run->paired() && index % 2;
    j = kTileRows * (run->paired() ? index / 2 : index) + lane;
  }
  if (j >= run->lanes())
    return {};
  int64_t offset = j / run->width * run->stride + j % run->width;
  return isB ? SourceRow{run->weightB, run->baseB + offset}
             : SourceRow{run->weightA, run->baseA + offset};
}

/// Rows [base, base + (heads-1)*stride + width) of `weight` must exist.
static llvm::Error verifyBase(const RowRun &run, int weight, int64_t base,
                              llvm::ArrayRef<int64_t> sourceRows) {
  if (weight < 0 || weight >= static_cast<int>(sourceRows.size()))
    return error("row run refers to source %d of %zu", weight,
                 sourceRows.size());
  int64_t last = base + (run.heads - 1) * run.stride + run.width;
  if (base < 0 || last > sourceRows[weight])
    return error("row run reads rows %lld to %lld of a matrix of %lld",
                 static_cast<long long>(base), static_cast<long long>(last),
                 static_cast<long long>(sourceRows[weight]));
  return llvm::Error::success();
}

llvm::Error PackedMatrix::verify(llvm::ArrayRef<int64_t> sourceRows) const {
  constexpr int64_t limit = int64_t(1) << 31;
  if (cols <= 0 || cols > limit)
    return error("packed matrix of %lld columns", static_cast<long long>(cols));
  if (!isGroupOf(layout, group))
    return error("group of %lld columns in layout %s",
                 static_cast<long long>(group), infoOf(layout).name);
  if (runs.empty())
    return error("packed matrix without rows");
  for (const RowRun &run : runs) {
    if (run.heads <= 0 || run.width <= 0 || run.stride < 0 ||
        run.heads > limit || run.width > limit || run.stride > limit ||
        run.heads * run.width > limit || (run.heads > 1 && !run.stride))
      return error("malformed row run: %lld heads of %lld rows, stride %lld",
                   static_cast<long long>(run.heads),
                   static_cast<long long>(run.width),
                   static_cast<long long>(run.stride));
    if (!isTiled(layout) && run.paired())
      return error("paired rows in layout %s", infoOf(layout).name);
    if (llvm::Error e = verifyBase(run, run.weightA, run.baseA, sourceRows))
      return e;
    if (run.paired())
      if (llvm::Error e = verifyBase(run, run.weightB, run.baseB, sourceRows))
        return e;
  }
  return llvm::Error::success();
}

} // namespace sparkc
