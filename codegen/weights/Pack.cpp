//===- Pack.cpp - From checkpoint rows to packed tiles --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Pack.h"
#include "codegen/weights/BadWeight.h"
#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/Half.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Parallel.h"
#include <algorithm>
#include <cassert>
#include <cmath>

namespace sparkc {

int64_t sourceRowBytes(SourceType type, int64_t cols) {
  if (const BlockFormat *format = blockFormat(type))
    return cols / format->block * format->bytes;
  return cols * (type == SourceType::F32 ? 4 : 2);
}

std::string describe(const SourceMatrix &source) {
  std::string tensor = "tensor '" + source.name + "'";
  return source.file.empty() ? tensor : source.file + ": " + tensor;
}

const uint8_t *rowData(const SourceMatrix &source, int64_t row) {
  assert(row >= 0 && row < source.rows && !isTransposed(source.type));
  return source.data + row * sourceRowBytes(source.type, source.cols);
}

template <typename T> static T load(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

static void readStoredRow(const SourceMatrix &source, int64_t row, float *out) {
  if (blockFormat(source))
    return readBlockRow(source, row, out);
  const uint8_t *p = rowData(source, row);
  switch (source.type) {
  case SourceType::F32:
    std::memcpy(out, p, source.cols * 4);
    return;
  case SourceType::BF16:
    for (int64_t c = 0; c < source.cols; ++c)
      out[c] = floatFromBF16(load<uint16_t>(p + 2 * c));
    return;
  case SourceType::F16:
    for (int64_t c = 0; c < source.cols; ++c)
      out[c] = floatFromF16(load<uint16_t>(p + 2 * c));
    return;
  default:
    llvm_unreachable("blocks were read above");
  }
}

void readRow(const SourceMatrix &source, int64_t row, float *out) {
  readStoredRow(source, row, out);
  if (source.transform)
    source.transform(out);
}

/// A row as a matrix of float32; the row of `values` is all it has.
static SourceMatrix asFloats(const SourceMatrix &source, int64_t row,
                             std::vector<float> &values) {
  values.resize(source.cols);
  readRow(source, row, values.data());
  SourceMatrix floats;
  floats.data = reinterpret_cast<const uint8_t *>(values.data());
  floats.type = SourceType::F32;
  floats.rows = 1;
  floats.cols = source.cols;
  return floats;
}

/// Writes one source row at 4-byte steps of `step` bytes: float32.
static void scatterF32(const SourceMatrix &source, int64_t row, uint8_t *out,
                       int64_t step) {
  const uint8_t *p = rowData(source, row);
  for (int64_t c = 0; c < source.cols; ++c) {
    float value = 0;
    switch (source.type) {
    case SourceType::F32:
      value = load<float>(p + 4 * c);
      break;
    case SourceType::BF16:
      value = floatFromBF16(load<uint16_t>(p + 2 * c));
      break;
    case SourceType::F16:
      value = floatFromF16(load<uint16_t>(p + 2 * c));
      break;
    default:
      llvm_unreachable("blocks are read as floats first");
    }
    std::memcpy(out + step * c, &value, 4);
  }
}

static uint16_t loadBF16(const SourceMatrix &source, const uint8_t *p,
                         int64_t c) {
  switch (source.type) {
  case SourceType::BF16:
    return load<uint16_t>(p + 2 * c);
  case SourceType::F16:
    return bf16FromFloat(floatFromF16(load<uint16_t>(p + 2 * c)));
  case SourceType::F32:
    return bf16FromFloat(load<float>(p + 4 * c));
  default:
    llvm_unreachable("blocks are read as floats first");
  }
}

/// Writes one source row as pairs of bfloat16, `step` bytes from pair to pair.
static void scatterBF16(const SourceMatrix &source, int64_t row, uint8_t *out,
                        int64_t step) {
  const uint8_t *p = rowData(source, row);
  int64_t pairs = source.cols / 2;
  for (int64_t i = 0; i < pairs; ++i) {
    uint32_t pair = loadBF16(source, p, 2 * i) |
                    uint32_t(loadBF16(source, p, 2 * i + 1)) << 16;
    std::memcpy(out + step * i, &pair, 4);
  }
  if (source.cols % 2) {
    uint32_t pair = loadBF16(source, p, source.cols - 1);
    std::memcpy(out + step * pairs, &pair, 4);
  }
}

void packFloatTile(const PackedMatrix &matrix, int64_t tile,
                   llvm::ArrayRef<SourceMatrix> sources, uint8_t *out) {
  assert(!isQuantized(matrix.layout));
  bool tiledLayout = isTiled(matrix.layout);
  bool narrow = bitsPerWeight(matrix.layout) == 16;
  std::memset(out, 0, matrix.tileBytes());
  for (int64_t lane = 0; lane < (tiledLayout ? kTileRows : 1); ++lane) {
    SourceRow at = matrix.rowOf(tile, lane);
    if (at.isPadding())
      continue;
    SourceMatrix source = sources[at.weight];
    int64_t row = at.row;
    std::vector<float> values;
    if (blockFormat(source) || source.transform)
      source = asFloats(source, std::exchange(row, 0), values);
    (narrow ? scatterBF16 : scatterF32)(source, row, out + 4 * lane,
                                        tiledLayout ? kLineBytes : 4);
  }
}

/// Tells the sources which of their rows tiles [begin, end) have used.
static void releaseRows(const PackedMatrix &matrix, int64_t begin, int64_t end,
                        llvm::ArrayRef<SourceMatrix> sources) {
  for (size_t w = 0; w < sources.size(); ++w) {
    const SourceMatrix &source = sources[w];
    if (!source.release)
      continue;
    int64_t first = source.rows, last = -1;
    for (int64_t tile = begin; tile < end; ++tile)
      for (int64_t lane : {int64_t(0), kTileRows - 1}) {
        SourceRow at = matrix.rowOf(tile, isTiled(matrix.layout) ? lane : 0);
        if (at.weight != static_cast<int>(w))
          continue;
        first = std::min(first, at.row);
        last = std::max(last, at.row);
      }
    if (last >= first)
      source.release(rowData(source, first),
                     rowData(source, last) - rowData(source, first) +
                         sourceRowBytes(source.type, source.cols));
  }
}

static llvm::Error verifySources(const PackedMatrix &matrix,
                                 llvm::ArrayRef<SourceMatrix> sources) {
  std::vector<int64_t> rows;
  for (const SourceMatrix &source : sources) {
    if (source.cols != matrix.cols)
      return llvm::createStringError(
          std::errc::invalid_argument,
          "packed matrix of %lld columns from a source of %lld",
          static_cast<long long>(matrix.cols),
          static_cast<long long>(source.cols));
    rows.push_back(source.rows);
  }
  return matrix.verify(rows);
}

llvm::Error
packTiles(const PackedMatrix &matrix, llvm::ArrayRef<SourceMatrix> sources,
          llvm::function_ref<void(int64_t tile, uint8_t *out)> packTile,
          PackSink sink) {
  if (llvm::Error e = verifySources(matrix, sources))
    return e;
  constexpr int64_t chunkBytes = 4 << 20;
  int64_t tileBytes = matrix.tileBytes(), tiles = matrix.tiles();
  int64_t perChunk = std::clamp<int64_t>(chunkBytes / tileBytes, 8, 4096);
  std::vector<uint8_t> buffer(std::min(perChunk, tiles) * tileBytes);
  for (int64_t begin = 0; begin < tiles; begin += perChunk) {
    int64_t end = std::min(begin + perChunk, tiles);
    llvm::parallelFor(begin, end, [&](size_t tile) {
      packTile(tile, buffer.data() + (tile - begin) * tileBytes);
    });
    if (llvm::Error e =
            sink({buffer.data(), size_t((end - begin) * tileBytes)}))
      return e;
    releaseRows(matrix, begin, end, sources);
  }
  return llvm::Error::success();
}

/// Is every float of these packed bytes a number?
static bool allFinite(llvm::ArrayRef<uint8_t> bytes, bool narrow) {
  bool finite = true;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    uint32_t word = load<uint32_t>(&bytes[i]);
    finite &= (word & 0x7f800000) != 0x7f800000;
    finite &= !narrow || (word & 0x7f80) != 0x7f80;
  }
  return finite;
}

/// The first weight of a tile that is none, as text; or empty.
static std::string badWeight(const PackedMatrix &matrix, int64_t tile,
                             llvm::ArrayRef<SourceMatrix> sources,
                             const uint8_t *packed) {
  bool narrow = bitsPerWeight(matrix.layout) == 16;
  if (allFinite({packed, size_t(matrix.tileBytes())}, narrow))
    return "";
  std::vector<float> values(matrix.cols);
  for (int64_t lane = 0; lane < (isTiled(matrix.layout) ? kTileRows : 1);
       ++lane) {
    SourceRow at = matrix.rowOf(tile, lane);
    if (at.isPadding())
      continue;
    const SourceMatrix &source = sources[at.weight];
    if (std::string text = badStoredWeight(source, at.row); !text.empty())
      return text;
    readRow(source, at.row, values.data());
    for (int64_t c = 0; c < matrix.cols; ++c) {
      float value = values[c];
      if (!std::isfinite(narrow ? floatFromBF16(bf16FromFloat(value)) : value))
        return badWeightText(source, at.row, c, value,
                             "too large for bfloat16");
    }
  }
  llvm_unreachable("a packed weight that no source has");
}

llvm::Error packFloatMatrix(const PackedMatrix &matrix,
                            llvm::ArrayRef<SourceMatrix> sources,
                            PackSink sink) {
  if (isQuantized(matrix.layout))
    return llvm::createStringError(std::errc::invalid_argument,
                                   "layout %s needs a grid",
                                   layoutName(matrix.layout).data());
  std::vector<std::string> errors(matrix.tiles());
  int64_t sunk = 0;
  return packTiles(
      matrix, sources,
      [&](int64_t tile, uint8_t *out) {
        packFloatTile(matrix, tile, sources, out);
        errors[tile] = badWeight(matrix, tile, sources, out);
      },
      [&](llvm::ArrayRef<uint8_t> bytes) {
        int64_t end = sunk + bytes.size() / matrix.tileBytes();
        for (; sunk < end; ++sunk)
          if (!errors[sunk].empty())
            return llvm::createStringError(errors[sunk]);
        return sink(bytes);
      });
}

} // namespace sparkc
