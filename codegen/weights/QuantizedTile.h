//===- QuantizedTile.h - Codes to tiles and back ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Quantizes matrices tile by tile, packs codes into tiles, reads tiles back
/// as codes and as float32.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_QUANTIZEDTILE_H
#define SPARKC_CODEGEN_WEIGHTS_QUANTIZEDTILE_H

#include "codegen/weights/Grid.h"
#include "codegen/weights/Pack.h"

namespace sparkc {

/// The codes of one tile, not yet in their lines. A padding lane has scale,
/// zero and codes 0; a padding column has code = zero.
struct TileCodes {
  explicit TileCodes(const PackedMatrix &matrix)
      : codes(matrix.paddedCols() * kTileRows),
        scales(matrix.groups() * kTileRows),
        zeros(matrix.groups() * kTileRows) {}

  std::vector<uint8_t> codes;   ///< [16*column + lane]
  std::vector<uint16_t> scales; ///< [16*group + lane], float16 bits
  std::vector<uint8_t> zeros;   ///< [16*group + lane]

  /// scale * (code - zero), rounded to float32 once.
  float value(const PackedMatrix &matrix, int64_t lane, int64_t col) const;
};

/// Lays codes into a tile of matrix.tileBytes(), and the inverse.
void packCodes(const PackedMatrix &matrix, const TileCodes &codes,
               uint8_t *tile);
void unpackCodes(const PackedMatrix &matrix, const uint8_t *tile,
                 TileCodes &codes);

/// Squared weights and squared errors of what was quantized.
struct QuantizeStats {
  double signal = 0;
  double noise = 0;
  int64_t weights = 0;

  /// Signal to quantization noise in decibels; at most 200 (no error at all).
  double sqnr() const;
  QuantizeStats &operator+=(const QuantizeStats &o) {
    signal += o.signal;
    noise += o.noise;
    weights += o.weights;
    return *this;
  }
};

/// A factor >= 0 for the squared error of each column of a source matrix;
/// empty: all alike. One per source, or none at all.
using Importance = std::vector<float>;

/// Like packFloatMatrix, for quantized layouts: fits the rows to `grid`, whose
/// layout and group must be the matrix's, and adds to `stats`, of which there
/// is one for each source, or one for all (in tile order, so that they do not
/// depend on the number of threads). A weight that is NaN, infinite or too
/// large for a float16 scale is an error that names the source and the place.
llvm::Error packQuantizedMatrix(const PackedMatrix &matrix,
                                const GridSpec &grid,
                                llvm::ArrayRef<SourceMatrix> sources,
                                PackSink sink,
                                llvm::MutableArrayRef<QuantizeStats> stats,
                                llvm::ArrayRef<Importance> importance = {});

/// Quantizes one tile into `codes`. Expects verified arguments; returns the
/// text of the error, empty if there is none.
std::string quantizeTile(const PackedMatrix &matrix, const GridSpec &grid,
                         int64_t tile, llvm::ArrayRef<SourceMatrix> sources,
                         llvm::ArrayRef<Importance> importance,
                         TileCodes &codes, QuantizeStats &stats);

/// The float32 values of tile `tile` of any tiled layout: out[lane * cols +
/// column] for 16 lanes and the source's columns.
void dequantizeTile(const PackedMatrix &matrix, const uint8_t *tile,
                    float *out);

/// The rows of a whole tiled matrix as float32, in tile order: `row` gets each
/// source row once, with the source's columns.
void dequantizeMatrix(
    const PackedMatrix &matrix, llvm::ArrayRef<uint8_t> packed,
    llvm::function_ref<void(SourceRow at, llvm::ArrayRef<float>)> row);

/// What every kernel must give for one lane, bit for bit, for float32
/// activations x ~ xScale * int8: for each activation group in K order
/// D = sum (code - zero) * x, an exact integer, then
/// f = fma(scale * xScale, float(D), f), from f = 0. `x` has paddedCols()
/// elements, `xScales` one for each `xGroup` columns; xGroup divides the
/// matrix's group.
float referenceDot(const PackedMatrix &matrix, const uint8_t *tile,
                   int64_t lane, const int8_t *x, const float *xScales,
                   int64_t xGroup);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_QUANTIZEDTILE_H
