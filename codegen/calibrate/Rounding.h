//===- Rounding.h - Rounding that makes up for its errors -------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_CALIBRATE_ROUNDING_H
#define SPARKC_CODEGEN_CALIBRATE_ROUNDING_H

#include "codegen/calibrate/Moments.h"
#include "codegen/weights/Grid.h"

namespace sparkc {

/// A matrix [rows, cols] on a grid, cols a multiple of its group.
struct Rounded {
  GridSpec grid;
  int64_t rows = 0, cols = 0;
  std::vector<uint8_t> codes;   ///< [rows, cols]
  std::vector<uint16_t> scales; ///< [rows, cols / group], float16 bits
  std::vector<uint8_t> zeros;   ///< [rows, cols / group]
  /// sum over rows e of e (S + damp) e^T, e the distance to what was aimed at:
  /// before and after the sweeps.
  double firstLoss = 0, loss = 0;

  float value(int64_t row, int64_t col) const;
  /// As blocks of codeFormatOf(grid), row by row.
  std::vector<uint8_t> blocks() const;
};

struct RoundingOptions {
  /// Over codes and scales, after the first rounding. Each takes as long as two
  /// roundings.
  int sweeps = 3;

  /// For codes that a model is to have, and for those that only tell what a grid
  /// would lose: fewer sweeps where rows are so long that they take minutes.
  static RoundingOptions forCodes(int64_t cols) {
    return {cols > kManyColumns ? 1 : 3};
  }
  static RoundingOptions forMeasuring(int64_t cols) {
    return {cols > kManyColumns ? 0 : 3};
  }
  static constexpr int64_t kManyColumns = 1024;
};

/// Rounds `aim` [rows, cols] (row-major, finite) to `grid` so that little is
/// lost on inputs with the moments of `factor`: column by column, each error
/// being made up for by the columns that are still free (GPTQ). A group's scale
/// and zero point are found when its turn comes, for what its weights have
/// become by then: some are tried, and taken is what loses least once the rest
/// has adapted, which the errors over U_jj tell. Sweeps of descent follow, over
/// single codes, over scales in closed form, and one over whole groups, each on
/// the whole loss; none makes it worse.
/// Rows do not influence each other: any number of threads gives the same bits.
Rounded roundRows(const DenseKernels &dense, const float *aim, int64_t rows,
                  const GridSpec &grid, const ErrorFactor &factor,
                  const RoundingOptions &options = {});

/// What to aim at in rows [first, first + rows), `weights` those rows, so that
/// the quantized model's linear gives what the unquantized one's gives, and
/// what the residual stream lacks on top: W + share (W drift + lack) (S + damp)^-1.
/// Shapes as in Moments; `lack` is taken where the moments have residuals, and
/// as many rows as the matrix.
std::vector<float> aimOf(const DenseKernels &dense, const float *weights,
                         int64_t first, int64_t rows, const Moments &moments,
                         const ErrorFactor &factor, float share = 1);

} // namespace sparkc

#endif // SPARKC_CODEGEN_CALIBRATE_ROUNDING_H
