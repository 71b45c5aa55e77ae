//===- Sensitivity.h - What each matrix costs at each grid ------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How much of the mean KL each unit (the matrices of one fused linear) would
/// cost at each grid. A unit alone is rounded as calibration does, at 4 bits
/// and groups of 64, everything else stays in floats, and the model runs on:
/// that is measured. Other grids cost as much more or less as what is left of e S e^T
/// (of the head: of its rows' own moments) after they have been rounded so, and
/// errors of several units add up: both hold well enough while KL is small.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_SENSITIVITY_H
#define SPARKC_TOOLS_SPARKC_SENSITIVITY_H

#include "codegen/calibrate/Budget.h"
#include "tools/sparkc/CalibrationText.h"
#include "tools/sparkc/StagedModel.h"

namespace sparkc {

struct Sensitivities {
  std::vector<GridUnit> units; ///< in the order of the model, the head last
  uint64_t otherBytes = 0;     ///< that a token streams besides (norms)
  int64_t weights = 0;         ///< of the linears
  uint64_t defaultBytes = 0;   ///< of all units, with the grids of the default

  double bits(uint64_t unitBytes) const {
    return 8.0 * double(unitBytes + otherBytes) / double(weights);
  }
};

/// Of so many windows one is measured on, the others give moments.
inline constexpr int64_t kWindowsPerMeasured = 3;

/// The grids to choose from.
llvm::ArrayRef<const char *> candidateGrids();

/// Measures all units of `model` over `tokens` (few windows do). `pinned` gives
/// the scheme of a weight that is not to be chosen, or an empty string;
/// `standard` that of one for which nothing is chosen. `accept` sees all sizes
/// before anything is measured, and may refuse them.
llvm::Expected<Sensitivities> measureSensitivities(
    const StagedModel &model, const TokenWindows &tokens,
    llvm::function_ref<std::string(llvm::StringRef)> pinned,
    llvm::function_ref<llvm::StringRef(llvm::StringRef)> standard,
    llvm::function_ref<llvm::Error(const Sensitivities &)> accept, bool quiet);

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_SENSITIVITY_H
