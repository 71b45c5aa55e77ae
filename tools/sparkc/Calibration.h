//===- Calibration.h - Codes chosen on a text -------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Calibration, linear by linear in the order of the model. Two copies of the
/// calibration windows pass through it: one through the unquantized model, one
/// through what is quantized so far. Before a linear is quantized, all before
/// it is: so it is fitted to the inputs it will meet, and aims at what the
/// unquantized model computes from its own. Memory holds the windows, one
/// layer's weights twice, and the moments of one linear.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_CALIBRATION_H
#define SPARKC_TOOLS_SPARKC_CALIBRATION_H

#include "codegen/calibrate/CodeFile.h"
#include "tools/sparkc/StagedModel.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace sparkc {

struct CalibrationOptions {
  std::string text;     ///< a text, or token ids
  int64_t windows = 0;  ///< at most so many; 0: 128, or as many as 4 GB hold
  std::string codes;    ///< the file of what has been chosen (CodeFile.h)
  bool quiet = false;
};

/// Most tokens of a calibration window.
constexpr int64_t kCalibrationWindow = 512;
/// The share of the mean second moment that is added to the diagonal.
constexpr float kCalibrationDamp = 0.01f;

struct Calibrated {
  std::unique_ptr<CodeFile> file;
  int64_t windows = 0, length = 0;
  std::vector<std::string> notes; ///< on matrices that stay as they are
};

/// Chooses codes for the quantized matrices of `module` (graph stage, grids
/// decided) and makes the file that holds them the source of its weights.
/// `model` is the same graph with weights in f32 and a prefill block of a
/// window; its weights' sources become the file, too. Matrices that cannot be
/// calibrated stay as they are, with a note. An interrupt (SIGINT, SIGTERM) is
/// an error; the file stays, and the same call goes on from it.
llvm::Expected<Calibrated>
calibrate(mlir::ModuleOp module, StagedModel &model,
          const CalibrationOptions &options);

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_CALIBRATION_H
