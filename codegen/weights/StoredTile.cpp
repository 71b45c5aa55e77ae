//===- StoredTile.cpp - Codes of a file, as they are, to tiles ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/QuantizedTile.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace sparkc;

static bool isFinite(uint16_t half) { return (half & 0x7c00) != 0x7c00; }

void sparkc::putBlock(const BlockFormat &format, const PackedMatrix &m,
                      const BlockCodes &block, int64_t index, int64_t lane,
                      TileCodes &codes) {
  int64_t first = index * format.block, firstGroup = first / m.group;
  int64_t columns = std::min(format.block, m.paddedCols() - first);
  for (int64_t c = 0; c < columns; ++c)
    codes.codes[kTileRows * (first + c) + lane] = block.codes[c];
  ScaleForm form = format.grid.form;
  // A block is a group, or a batch of them.
  int64_t scaleAt = kTileRows * index + lane;
  codes.scales[scaleAt] = block.scale;
  if (hasMinimum(form))
    codes.minima[scaleAt] = block.minimum;
  for (int64_t g = 0; g < columns / m.group; ++g) {
    int64_t at = kTileRows * (firstGroup + g) + lane;
    if (form == ScaleForm::Zero)
      codes.zeros[at] = block.zero;
    if (isSuper(form))
      codes.subScales[at] = block.subScales[g];
    if (form == ScaleForm::SuperMinimum)
      codes.subMinima[at] = block.subMinima[g];
  }
}

void sparkc::takeBlock(const BlockFormat &format, const PackedMatrix &m,
                       const TileCodes &codes, int64_t index, int64_t lane,
                       BlockCodes &block) {
  int64_t first = index * format.block, firstGroup = first / m.group;
  for (int64_t c = 0; c < format.block; ++c)
    block.codes[c] = codes.codes[kTileRows * (first + c) + lane];
  ScaleForm form = format.grid.form;
  int64_t scaleAt = kTileRows * index + lane;
  block.scale = codes.scales[scaleAt];
  if (form == ScaleForm::Zero)
    block.zero = codes.zeros[scaleAt];
  if (hasMinimum(form))
    block.minimum = codes.minima[scaleAt];
  for (int64_t g = 0; g < format.groups(); ++g) {
    int64_t at = kTileRows * (firstGroup + g) + lane;
    if (isSuper(form))
      block.subScales[g] = codes.subScales[at];
    if (form == ScaleForm::SuperMinimum)
      block.subMinima[g] = codes.subMinima[at];
  }
}

bool sparkc::isStoredOn(const SourceMatrix &source, const GridSpec &grid) {
  const BlockFormat *format = blockFormat(source);
  if (format && format->hasZero() && !isTransposed(source.type) &&
      grid.form == ScaleForm::Zero)
    return format->grid.bits == grid.bits && format->grid.group == grid.group;
  return format && format->grid == grid;
}

std::string sparkc::storedTile(const PackedMatrix &m, int64_t tile,
                               llvm::ArrayRef<SourceMatrix> sources,
                               TileCodes &codes) {
  BlockCodes block = {};
  for (int64_t lane = 0; lane < kTileRows; ++lane) {
    SourceRow at = m.rowOf(tile, lane);
    if (at.isPadding())
      continue;
    const SourceMatrix &source = sources[at.weight];
    const BlockFormat &format = *blockFormat(source);
    for (int64_t i = 0; i < m.cols / format.block; ++i) {
      readBlock(source, at.row, i, block);
      if (!isFinite(block.scale) ||
          (hasMinimum(format.grid.form) && !isFinite(block.minimum)))
        return (describe(source) + ": the block at row " +
                llvm::Twine(at.row) + ", column " +
                llvm::Twine(i * format.block) +
                " has a scale that is NaN or infinity")
            .str();
      if (int highest = *std::max_element(block.codes,
                                          block.codes + format.block);
          format.hasZero() &&
          std::max<int>(highest, block.zero) > format.grid.maxCode())
        return (describe(source) + ": the block at row " +
                llvm::Twine(at.row) + ", column " +
                llvm::Twine(i * format.block) + " has a code above " +
                llvm::Twine(format.grid.maxCode()))
            .str();
      putBlock(format, m, block, i, lane, codes);
    }
  }
  return "";
}
