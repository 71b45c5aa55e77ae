//===- Activations.h - Inputs that depend on each other ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_CALIBRATE_ACTIVATIONS_H
#define SPARKC_TEST_UNIT_CALIBRATE_ACTIVATIONS_H

#include "codegen/calibrate/Dense.h"
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace sparkc::test {

/// This machine's.
inline const DenseKernels &dense() { return *denseKernels(); }

/// [rows, cols] normal numbers.
inline std::vector<float> normals(int64_t rows, int64_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(rows * cols);
  for (float &v : values)
    v = normal(random);
  return values;
}

/// [tokens, cols] in which neighbouring columns are alike and some are large,
/// as activations are.
inline std::vector<float> activations(int64_t tokens, int64_t cols,
                                      unsigned seed) {
  std::vector<float> x = normals(tokens, cols, seed);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t c = 0; c < cols; ++c) {
      if (c)
        x[t * cols + c] =
            0.8f * x[t * cols + c - 1] + 0.6f * x[t * cols + c];
    }
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t c = 0; c < cols; c += 7)
      x[t * cols + c] *= 3;
  return x;
}

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_CALIBRATE_ACTIVATIONS_H
