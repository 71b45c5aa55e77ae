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
#include "codegen/weights/TileCodes.h"

namespace sparkc {

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
/// layout and group must be the matrix's, where they do not lie on it already
/// (blocks of a GGUF file keep their codes and scales), and adds to `stats`, of which there
/// is one for each source, or one for all (in tile order, so that they do not
/// depend on the number of threads). A weight that is NaN, infinite or too
/// large for a float16 scale is an error that names the source and the place.
llvm::Error packQuantizedMatrix(const PackedMatrix &matrix,
                                const GridSpec &grid,
                                llvm::ArrayRef<SourceMatrix> sources,
                                PackSink sink,
                                llvm::MutableArrayRef<QuantizeStats> stats,
                                llvm::ArrayRef<Importance> importance = {});

/// Whether a source's values lie on `grid` already: then its codes and scales
/// are taken as they are (where `grid` is symmetric, those of tiles whose stored
/// zero points are all the middle code).
bool isStoredOn(const SourceMatrix &source, const GridSpec &grid);
/// Fills the codes of a tile of such a source; returns the text of an error (a
/// scale that is no number), empty if there is none.
std::string storedTile(const PackedMatrix &matrix, int64_t tile,
                       llvm::ArrayRef<SourceMatrix> sources, TileCodes &codes);

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
/// f = fma(scale * xScale, float(D), f), from f = 0; with a minimum (and no
/// zero) after that f = fma(minimum, xScale * float(sum x), f). Scales and minima
/// of two levels are the (exact) products of theirs. `x` has paddedCols()
/// elements, `xScales` one for each `xGroup` columns; xGroup divides the
/// matrix's group.
float referenceDot(const PackedMatrix &matrix, const uint8_t *tile,
                   int64_t lane, const int8_t *x, const float *xScales,
                   int64_t xGroup);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_QUANTIZEDTILE_H
