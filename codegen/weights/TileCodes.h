//===- TileCodes.h - The codes of a tile, in and out of lines ---*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_TILECODES_H
#define SPARKC_CODEGEN_WEIGHTS_TILECODES_H

#include "codegen/weights/PackedLayout.h"

namespace sparkc {

/// The codes of one tile, not yet in their lines. A padding lane has scale,
/// stored zero, minimum and codes 0; a padding column has code = zero (0 in
/// GGUF's forms). Scales and minima are a group's or, of
/// two-level forms, a batch's.
struct TileCodes {
  explicit TileCodes(const PackedMatrix &matrix);

  std::vector<uint8_t> codes;   ///< [16*column + lane]
  std::vector<uint16_t> scales; ///< [16*group or batch + lane], float16 bits
  /// [16*group + lane]; of form Zero, and Symmetric, where they do not lie in
  /// the tile: all are the middle code.
  std::vector<uint8_t> zeros;
  /// Of forms with minima, as the scales.
  std::vector<uint16_t> minima;
  /// [16*group + lane]; of two-level forms (and with minima).
  std::vector<uint8_t> subScales, subMinima;

  /// The weight, rounded to float32 once.
  float value(const PackedMatrix &matrix, int64_t lane, int64_t col) const;
};

/// Lays codes into a tile of matrix.tileBytes(), and the inverse.
void packCodes(const PackedMatrix &matrix, const TileCodes &codes,
               uint8_t *tile);
void unpackCodes(const PackedMatrix &matrix, const uint8_t *tile,
                 TileCodes &codes);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_TILECODES_H
