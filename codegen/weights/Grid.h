//===- Grid.h - Weight grids and how to fit them ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A grid is 2^bits evenly spaced values a group: w ~ scale * (code - zero),
/// scale a float16, zero an integer code; or, in GGUF's forms, with a float
/// minimum or scales of two levels (PackedLayout.h). This header names grids
/// and fits groups of weights to those of the first form; BlockFit.h to others.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_GRID_H
#define SPARKC_CODEGEN_WEIGHTS_GRID_H

#include "codegen/weights/PackedLayout.h"
#include <string>

namespace sparkc {

/// An integer grid.
struct GridSpec {
  int bits = 4;           ///< 4, 5, 6 or 8
  int group = 64;         ///< columns a scale: 32, 64, 128; of forms 16, 32
  /// Zero is always 2^(bits-1), and not stored; scales have any sign.
  bool symmetric = false;
  /// Zero, symmetric or not; or one of GGUF's.
  ScaleForm form = ScaleForm::Zero;

  int maxCode() const { return (1 << bits) - 1; }
  Layout layout() const;
  /// The grid whose codes lie in a quantized layout.
  static GridSpec of(Layout layout, int64_t group);
  bool operator==(const GridSpec &o) const {
    return bits == o.bits && group == o.group && symmetric == o.symmetric &&
           form == o.form;
  }
};

/// How the weights of a tensor are stored.
struct WeightScheme {
  enum Kind { F32, BF16, Grid };
  Kind kind = Grid;
  GridSpec grid = {}; ///< of Kind::Grid

  /// "f32", "bf16", or q4, q5, q6, q8 followed by any of ":g32", ":g64",
  /// ":g128" (the default is 64 columns a group) and ":sym"; or a GGUF type:
  /// q4k, q5k, q6k, q4_0 (the same as q4:g32:sym), q4_1, q5_0, q5_1, q8_0.
  static llvm::Expected<WeightScheme> parse(llvm::StringRef text);
  /// The same in full, "q4:g64", "q6:g128:sym" or "q4k": parse gives it back.
  std::string str() const;
  Layout tileLayout() const;
  int64_t group() const { return kind == Grid ? grid.group : 0; }
  bool operator==(const WeightScheme &o) const {
    return kind == o.kind && (kind != Grid || grid == o.grid);
  }
};

/// The largest scale a grid can hold, and so the bound on weights:
/// (max - min) / maxCode must not exceed it.
constexpr float kMaxScale = 65504.0f;

/// Fits 16 groups at once, one a lane. `weights[16*k + lane]` is column k of
/// `group` columns (finite, within kMaxScale's bound). `importance`, if not
/// null, has a factor >= 0 for each column's squared error, the same for all
/// lanes; without it the factors are 1 + |w| / mean |w| of the group. Writes
/// codes[16*k + lane], float16 bits scales[lane], zeros[lane], and noise[lane],
/// the (unweighted) squared error.
///
/// The fit minimises the weighted squared error: scales from half to all of
/// the range, each with the zero points around the balanced one and its scale
/// refitted by least squares to the codes it gives, then descent on scale (as
/// rounded to float16) and zero in turn. A group of equal weights that
/// float16 can hold is exact; all zeros give scale 0. Lanes do not influence
/// each other and every machine gives the same bits.
void fitGroups16(const GridSpec &grid, const float *weights,
                 const float *importance, uint8_t *codes, uint16_t *scales,
                 uint8_t *zeros, float *noise);

namespace detail {
/// fitGroups16 with vectors of at most `maxLanes` floats, so that a test can
/// compare what different machines give.
void fitGroups16With(int maxLanes, const GridSpec &grid, const float *weights,
                     const float *importance, uint8_t *codes, uint16_t *scales,
                     uint8_t *zeros, float *noise);
} // namespace detail

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_GRID_H
