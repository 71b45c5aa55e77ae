//===- QuantizedTile.cpp - Codes to tiles and back ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/QuantizedTile.h"
#include "codegen/weights/Half.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cassert>
#include <cmath>

namespace sparkc {

float TileCodes::value(const PackedMatrix &matrix, int64_t lane,
                       int64_t col) const {
  int64_t at = col / matrix.group * kTileRows + lane;
  int d = int(codes[kTileRows * col + lane]) - int(zeros[at]);
  return floatFromF16(scales[at]) * static_cast<float>(d);
}

double QuantizeStats::sqnr() const {
  if (noise <= signal * 1e-20)
    return 200;
  return 10 * std::log10(signal / noise);
}

//===----------------------------------------------------------------------===//
// Codes and lines
//===----------------------------------------------------------------------===//

static uint32_t load32(const uint8_t *p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
static void store32(uint8_t *p, uint32_t v) { std::memcpy(p, &v, 4); }

/// Codes of columns c .. c+3 of a lane, a byte each.
static uint32_t gather4(const uint8_t *codes, int64_t lane) {
  return codes[lane] | uint32_t(codes[kTileRows + lane]) << 8 |
         uint32_t(codes[2 * kTileRows + lane]) << 16 |
         uint32_t(codes[3 * kTileRows + lane]) << 24;
}
static void scatter4(uint8_t *codes, int64_t lane, uint32_t v) {
  for (int i = 0; i < 4; ++i)
    codes[kTileRows * i + lane] = v >> (8 * i);
}

/// Shape of the code lines of a group: blocks of `perBlock` code lines, each
/// block with a plane line in front if there are extra bits.
struct Blocks {
  explicit Blocks(const PackedMatrix &m)
      : extra(bitsPerWeight(m.layout) - 4), perBlock(extra ? 4 / extra : 1),
        count(m.group / (8 * perBlock)),
        bytes(kLineBytes * (perBlock + (extra ? 1 : 0))),
        firstLine(extra ? kLineBytes : 0), mask(extra * 0x01010101u) {
    if (extra == 2)
      mask = 0x03030303u;
  }
  int extra, perBlock;
  int64_t count, bytes, firstLine;
  uint32_t mask;
};

void packCodes(const PackedMatrix &m, const TileCodes &in, uint8_t *tile) {
  assert(isQuantized(m.layout));
  std::memset(tile, 0, m.tileBytes());
  bool bytesOnly = m.layout == Layout::Tile16Q8;
  for (int64_t g = 0; g < m.groups(); ++g) {
    std::memcpy(tile + m.groupScaleOffset(g), &in.scales[g * kTileRows],
                2 * kTileRows);
    std::memcpy(tile + m.groupZeroOffset(g), &in.zeros[g * kTileRows],
                kTileRows);
    const uint8_t *codes = &in.codes[kTileRows * m.group * g];
    uint8_t *out = tile + m.groupLineOffset(g);
    if (bytesOnly) {
      for (int64_t n = 0; n < m.groupLines(); ++n)
        for (int64_t l = 0; l < kTileRows; ++l)
          store32(out + kLineBytes * n + 4 * l,
                  gather4(codes + 4 * kTileRows * n, l));
      continue;
    }
    const Blocks blocks(m);
    for (int64_t b = 0; b < blocks.count; ++b, out += blocks.bytes)
      for (int i = 0; i < blocks.perBlock; ++i, codes += 8 * kTileRows) {
        uint8_t *line = out + blocks.firstLine + kLineBytes * i;
        for (int64_t l = 0; l < kTileRows; ++l) {
          uint32_t low = gather4(codes, l),
                   high = gather4(codes + 4 * kTileRows, l);
          store32(line + 4 * l, (low & 0x0f0f0f0f) | (high & 0x0f0f0f0f) << 4);
          if (!blocks.extra)
            continue;
          uint32_t plane = ((low >> 4) & blocks.mask) << (blocks.extra * i) |
                           ((high >> 4) & blocks.mask)
                               << (4 + blocks.extra * i);
          store32(out + 4 * l, load32(out + 4 * l) | plane);
        }
      }
  }
}

void unpackCodes(const PackedMatrix &m, const uint8_t *tile, TileCodes &out) {
  assert(isQuantized(m.layout));
  bool bytesOnly = m.layout == Layout::Tile16Q8;
  for (int64_t g = 0; g < m.groups(); ++g) {
    std::memcpy(&out.scales[g * kTileRows], tile + m.groupScaleOffset(g),
                2 * kTileRows);
    std::memcpy(&out.zeros[g * kTileRows], tile + m.groupZeroOffset(g),
                kTileRows);
    uint8_t *codes = &out.codes[kTileRows * m.group * g];
    const uint8_t *in = tile + m.groupLineOffset(g);
    if (bytesOnly) {
      for (int64_t n = 0; n < m.groupLines(); ++n)
        for (int64_t l = 0; l < kTileRows; ++l)
          scatter4(codes + 4 * kTileRows * n, l,
                   load32(in + kLineBytes * n + 4 * l));
      continue;
    }
    const Blocks blocks(m);
    for (int64_t b = 0; b < blocks.count; ++b, in += blocks.bytes)
      for (int i = 0; i < blocks.perBlock; ++i, codes += 8 * kTileRows) {
        const uint8_t *line = in + blocks.firstLine + kLineBytes * i;
        for (int64_t l = 0; l < kTileRows; ++l) {
          uint32_t v = load32(line + 4 * l), low = v & 0x0f0f0f0f,
                   high = (v >> 4) & 0x0f0f0f0f;
          if (blocks.extra) {
            uint32_t plane = load32(in + 4 * l) >> (blocks.extra * i);
            low |= (plane & blocks.mask) << 4;
            high |= ((plane >> 4) & blocks.mask) << 4;
          }
          scatter4(codes, l, low);
          scatter4(codes + 4 * kTileRows, l, high);
        }
      }
  }
}

//===----------------------------------------------------------------------===//
// Quantizing
//===----------------------------------------------------------------------===//

/// The first weight of a row that no grid can hold, as text; or empty.
static std::string badWeight(const SourceMatrix &source, int64_t row,
                             const float *values, float limit) {
  for (int64_t c = 0; c < source.cols; ++c) {
    if (std::fabs(values[c]) <= limit)
      continue;
    const char *what = std::isnan(values[c])   ? "NaN"
                       : std::isinf(values[c]) ? "infinity"
                                               : "too large for its grid";
    return ("tensor '" + llvm::Twine(source.name) + "': weight at row " +
            llvm::Twine(row) + ", column " + llvm::Twine(c) + " is " + what)
        .str();
  }
  return "";
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
          // A tile has one source; its first lane is never padding.
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
  float f = 0;
  for (int64_t first = 0; first < m.paddedCols(); first += xGroup) {
    int64_t g = first / m.group;
    const uint8_t *scaleAt = tile + m.groupScaleOffset(g) + 2 * lane;
    float scale = floatFromF16(scaleAt[0] | scaleAt[1] << 8);
    int zero = tile[m.groupZeroOffset(g) + lane];
    int32_t sum = 0;
    for (int64_t c = first; c < first + xGroup; ++c) {
      ElementLocation at = m.element(lane, c);
      int code = tile[at.byte] >> at.shift & ((1 << at.bits) - 1);
      if (at.highBits)
        code |= (tile[at.highByte] >> at.highShift & ((1 << at.highBits) - 1))
                << at.bits;
      sum += (code - zero) * x[c];
    }
    f = std::fma(scale * xScales[first / xGroup], static_cast<float>(sum), f);
  }
  return f;
}

} // namespace sparkc
