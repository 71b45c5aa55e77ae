//===- BadWeight.cpp - Weights that are no numbers, in words --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/BadWeight.h"
#include "llvm/ADT/Twine.h"
#include <cmath>

using namespace sparkc;

std::string sparkc::badWeightText(const SourceMatrix &source, int64_t row,
                                  int64_t col, float value,
                                  const char *otherwise) {
  const char *what = std::isnan(value)   ? "NaN"
                     : std::isinf(value) ? "infinity"
                                         : otherwise;
  return (describe(source) + ": weight at row " + llvm::Twine(row) +
          ", column " + llvm::Twine(col) + " is " + what)
      .str();
}

std::string sparkc::badStoredWeight(const SourceMatrix &source, int64_t row) {
  SourceMatrix stored = source;
  stored.transform = nullptr;
  std::vector<float> values(source.cols);
  readRow(stored, row, values.data());
  for (int64_t c = 0; c < source.cols; ++c)
    if (!std::isfinite(values[c]))
      return badWeightText(source, row, c, values[c], "");
  return "";
}
