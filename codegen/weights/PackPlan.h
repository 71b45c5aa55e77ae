//===- PackPlan.h - From step.pack ops to a weights file ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_PACKPLAN_H
#define SPARKC_CODEGEN_WEIGHTS_PACKPLAN_H

#include "codegen/weights/WeightFile.h"
#include "dialect/step/Step.h"

namespace sparkc {

/// What a step.pack says, as the packer wants it.
PackedMatrix packedMatrix(step::PackOp pack);

/// What became of one pack.
struct PackedTensor {
  std::string name;
  std::string layout;
  std::vector<std::string> sources;
  int64_t weights = 0; ///< source elements
  uint64_t bytes = 0;
  double sqnr = 0; ///< decibels; 0 where nothing was quantized
};

/// Packs all step.pack ops of the module in order, reading the files that their
/// spark.weight ops name, and adds the module's assets as sections. Shows a
/// progress bar on a terminal unless `quiet`. Errors are one line that starts
/// with the file at fault.
llvm::Expected<std::vector<PackedTensor>>
packWeights(mlir::ModuleOp module, WeightFileWriter &writer, bool quiet);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_PACKPLAN_H
