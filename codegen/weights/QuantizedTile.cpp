//===- QuantizedTile.cpp - Codes to tiles and back ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/QuantizedTile.h"
#include "codegen/weights/BadWeight.h"
#include "codegen/weights/BlockFit.h"
#include "codegen/weights/Half.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cassert>
#include <cmath>

namespace sparkc {

static uint32_t load32(const uint8_t *p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

double QuantizeStats::sqnr() const {
  if (noise <= signal * 1e-20)
    return 200;
  return 10 * std::log10(signal / noise);
}

//===----------------------------------------------------------------------===//
// Quantizing
//===----------------------------------------------------------------------===//

/// The first weight of a row that no grid can hold, as text; or empty.
static std::string badWeight(const SourceMatrix &source, int64_t row,
                             const float *values, float limit) {
  if (std::string text = badStoredWeight(source, row); !text.empty())
    return text;
  for (int64_t c = 0; c < source.cols; ++c)
    if (!(std::fabs(values[c]) <= limit))
      return badWeightText(source, row, c, values[c], "too large for its grid");
  return "";
}

/// Fits a lane to blocks of a form other than Zero; gives its squared error.
static double fitLane(const PackedMatrix &m, const GridSpec &grid,
                      const std::vector<float> &weights,
                      const std::vector<float> &factors, int64_t lane,
                      TileCodes &codes) {
  const BlockFormat &format = *blockFormatOf(grid);
  double noise = 0;
  BlockCodes block;
  float row[kMaxBlock], importance[kMaxBlock];
  for (int64_t first = 0; first < m.paddedCols(); first += format.block) {
    for (int64_t c = 0; c < format.block; ++c) {
      bool there = first + c < m.cols;
      row[c] = there ? weights[kTileRows * (first + c) + lane] : 0;
      importance[c] = there && !factors.empty() ? factors[first + c] : 0;
    }
    fitBlock(format, row, factors.empty() ? nullptr : importance, block);
    for (int64_t c = 0; c < std::min(format.block, m.cols - first); ++c) {
      double error = double(format.value(block, c)) - row[c];
      noise += error * error;
    }
    putBlock(format, m, block, first / format.block, lane, codes);
  }
  return noise;
}

std::string quantizeTile(const PackedMatrix &m, const GridSpec &grid,
                         int64_t tile, llvm::ArrayRef<SourceMatrix> sources,
                         llvm::ArrayRef<Importance> importance,
                         TileCodes &codes, QuantizeStats &stats) {
  const int64_t cols = m.paddedCols(), group = m.group;
  // Half of the range a grid spans bounds weights of either sign.
  const float limit = kMaxScale * static_cast<float>(grid.maxCode() / 2);
  std::vector<float> weights(cols * kTileRows), row(cols);
  SourceRow rows[kTileRows];
  int anyWeight = -1;
  for (int64_t l = 0; l < kTileRows; ++l) {
    rows[l] = m.rowOf(tile, l);
    if (rows[l].isPadding())
      continue;
    anyWeight = rows[l].weight;
    const SourceMatrix &source = sources[rows[l].weight];
    readRow(source, rows[l].row, row.data());
    float largest = 0, poison = 0;
    for (int64_t c = 0; c < m.cols; ++c) {
      largest = std::max(largest, std::fabs(row[c]));
      poison += row[c] * 0.0f; // NaN if any is NaN or infinite
      weights[kTileRows * c + l] = row[c];
    }
    if (!(largest <= limit) || poison != 0)
      return badWeight(source, rows[l].row, row.data(), limit);
    double signal = 0;
    for (int64_t c = 0; c < m.cols; ++c)
      signal += double(row[c]) * row[c];
    stats.signal += signal;
    stats.weights += m.cols;
  }
  // Padding columns weigh nothing and, being 0, get code = zero.
  std::vector<float> factors;
  if (!importance.empty() && anyWeight >= 0 && !importance[anyWeight].empty()) {
    factors = importance[anyWeight]; // a tile has one source
    factors.resize(cols, 0.0f);
  }
  if (grid.form != ScaleForm::Zero) {
    for (int64_t l = 0; l < kTileRows; ++l)
      if (!rows[l].isPadding())
        stats.noise += fitLane(m, grid, weights, factors, l, codes);
    return "";
  }
  float noise[kTileRows];
  for (int64_t g = 0; g < m.groups(); ++g) {
    fitGroups16(grid, &weights[kTileRows * group * g],
                factors.empty() ? nullptr : &factors[group * g],
                &codes.codes[kTileRows * group * g],
                &codes.scales[kTileRows * g], &codes.zeros[kTileRows * g],
                noise);
    for (int64_t l = 0; l < kTileRows; ++l) {
      stats.noise += noise[l];
      if (!rows[l].isPadding())
        continue;
      if (!grid.symmetric)
        codes.zeros[kTileRows * g + l] = 0;
      for (int64_t c = 0; c < group; ++c)
        codes.codes[kTileRows * (group * g + c) + l] = 0;
    }
  }
  return "";
}

static llvm::Error verifyGrid(const PackedMatrix &m, const GridSpec &grid,
                              llvm::ArrayRef<SourceMatrix> sources,
                              llvm::ArrayRef<Importance> importance) {
  if (m.layout != grid.layout() || m.group != grid.group)
    return llvm::createStringError(
        "layout " + layoutName(m.layout) + " with groups of " +
        llvm::Twine(m.group) + " is not that of a grid of " +
        llvm::Twine(grid.bits) + " bits with groups of " +
        llvm::Twine(grid.group));
  if (!importance.empty() && importance.size() != sources.size())
    return llvm::createStringError("importance of other sources");
  for (const Importance &factors : importance) {
    if (!factors.empty() && static_cast<int64_t>(factors.size()) != m.cols)
      return llvm::createStringError("importance of other columns");
    for (float f : factors)
      if (!(f >= 0) || std::isinf(f))
        return llvm::createStringError("importance that is not a factor >= 0");
  }
  return llvm::Error::success();
}

/// Whether all zero points are the middle code, as symmetric layouts say.
static bool hasMiddleZeros(const PackedMatrix &m, const TileCodes &codes) {
  return llvm::all_of(codes.zeros,
                      [&](uint8_t zero) { return zero == middleCode(m.layout); });
}

llvm::Error packQuantizedMatrix(const PackedMatrix &matrix,
                                const GridSpec &grid,
                                llvm::ArrayRef<SourceMatrix> sources,
                                PackSink sink,
                                llvm::MutableArrayRef<QuantizeStats> stats,
                                llvm::ArrayRef<Importance> importance) {
  if (llvm::Error e = verifyGrid(matrix, grid, sources, importance))
    return e;
  if (stats.size() != 1 && stats.size() != sources.size())
    return llvm::createStringError("statistics of other sources");
  std::vector<QuantizeStats> tileStats(matrix.tiles());
  std::vector<std::string> errors(matrix.tiles());
  int64_t sunk = 0;
  llvm::Error result = packTiles(
      matrix, sources,
      [&](int64_t tile, uint8_t *out) {
        TileCodes codes(matrix);
        // A tile has one source; its first lane is never padding.
        bool stored =
            isStoredOn(sources[matrix.rowOf(tile, 0).weight], grid);
        if (stored)
          errors[tile] = storedTile(matrix, tile, sources, codes);
        // Zero points of a file may be others than a symmetric grid's.
        if (!stored || (errors[tile].empty() && grid.symmetric &&
                        !hasMiddleZeros(matrix, codes)))
          errors[tile] = quantizeTile(matrix, grid, tile, sources, importance,
                                      codes, tileStats[tile]);
        if (errors[tile].empty())
          packCodes(matrix, codes, out);
      },
      [&](llvm::ArrayRef<uint8_t> bytes) {
        int64_t end = sunk + bytes.size() / matrix.tileBytes();
        for (; sunk < end; ++sunk) {
          if (!errors[sunk].empty())
            return llvm::createStringError(errors[sunk]);
          stats[stats.size() == 1 ? 0 : matrix.rowOf(sunk, 0).weight] +=
              tileStats[sunk];
        }
        return sink(bytes);
      });
  return result;
}

//===----------------------------------------------------------------------===//
// Reading back
//===----------------------------------------------------------------------===//

void dequantizeTile(const PackedMatrix &m, const uint8_t *tile, float *out) {
  if (isQuantized(m.layout)) {
    TileCodes codes(m);
    unpackCodes(m, tile, codes);
    for (int64_t l = 0; l < kTileRows; ++l)
      for (int64_t c = 0; c < m.cols; ++c)
        out[l * m.cols + c] = codes.value(m, l, c);
    return;
  }
  bool narrow = bitsPerWeight(m.layout) == 16;
  for (int64_t l = 0; l < kTileRows; ++l)
    for (int64_t c = 0; c < m.cols; ++c) {
      const uint8_t *p = tile + m.element(l, c).byte;
      uint32_t bits = narrow ? uint32_t(p[0] | p[1] << 8) << 16 : load32(p);
      out[l * m.cols + c] = floatFromBits(bits);
    }
}

void dequantizeMatrix(
    const PackedMatrix &m, llvm::ArrayRef<uint8_t> packed,
    llvm::function_ref<void(SourceRow at, llvm::ArrayRef<float>)> row) {
  assert(static_cast<int64_t>(packed.size()) == m.bytes());
  std::vector<float> values(kTileRows * m.cols);
  for (int64_t t = 0; t < m.tiles(); ++t) {
    dequantizeTile(m, packed.data() + t * m.tileBytes(), values.data());
    for (int64_t l = 0; l < kTileRows; ++l)
      if (SourceRow at = m.rowOf(t, l); !at.isPadding())
        row(at, llvm::ArrayRef<float>(values).slice(l * m.cols, m.cols));
  }
}

float referenceDot(const PackedMatrix &m, const uint8_t *tile, int64_t lane,
                   const int8_t *x, const float *xScales, int64_t xGroup) {
  assert(isQuantized(m.layout) && m.group % xGroup == 0);
  ScaleForm form = scaleForm(m.layout);
  auto half = [&](int64_t at) {
    const uint8_t *p = tile + at + 2 * lane;
    return floatFromF16(p[0] | p[1] << 8);
  };
  float f = 0;
  for (int64_t first = 0; first < m.paddedCols(); first += xGroup) {
    int64_t g = first / m.group;
    int64_t head = m.headOffset(g), scaleAt = m.groupScaleOffset(g);
    float scale = 0, minimum = 0;
    int zero = 0;
    switch (form) {
    case ScaleForm::Zero:
      scale = half(scaleAt);
      zero = tile[m.groupZeroOffset(g) + lane];
      break;
    case ScaleForm::Symmetric:
      scale = half(scaleAt);
      zero = middleCode(m.layout);
      break;
    case ScaleForm::Minimum:
      scale = half(scaleAt);
      minimum = half(m.groupZeroOffset(g));
      break;
    case ScaleForm::SuperMinimum:
      scale = half(head) * tile[scaleAt + lane];
      minimum = half(head + kHeadSuperMinimum) *
                tile[m.groupZeroOffset(g) + lane];
      break;
    case ScaleForm::Super:
      scale = half(head) * static_cast<int8_t>(tile[scaleAt + lane]);
      zero = middleCode(m.layout);
      break;
    }
    int32_t sum = 0, xSum = 0;
    for (int64_t c = first; c < first + xGroup; ++c) {
      ElementLocation at = m.element(lane, c);
      int code = tile[at.byte] >> at.shift & ((1 << at.bits) - 1);
      if (at.highBits)
        code |= (tile[at.highByte] >> at.highShift & ((1 << at.highBits) - 1))
                << at.bits;
      sum += (code - zero) * x[c];
      xSum += x[c];
    }
    float xScale = xScales[first / xGroup];
    f = std::fma(scale * xScale, static_cast<float>(sum), f);
    if (hasMinimum(form))
      f = std::fma(minimum, xScale * static_cast<float>(xSum), f);
  }
  return f;
}

} // namespace sparkc
