//===- BadWeight.h - Weights that are no numbers, in words ------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_BADWEIGHT_H
#define SPARKC_CODEGEN_WEIGHTS_BADWEIGHT_H

#include "codegen/weights/Pack.h"
#include <string>

namespace sparkc {

/// "FILE: tensor 'NAME': weight at row R, column C is NaN", or infinity, or
/// `otherwise` where the value is finite.
std::string badWeightText(const SourceMatrix &source, int64_t row, int64_t col,
                          float value, const char *otherwise);

/// That of the first weight of a row that is NaN or infinite in its file, before
/// a transform spreads it; empty if there is none.
std::string badStoredWeight(const SourceMatrix &source, int64_t row);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_BADWEIGHT_H
