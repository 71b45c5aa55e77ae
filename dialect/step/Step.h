//===- Step.h - The step dialect --------------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One decode step as a static schedule on memory. See StepDialect.td and
// StepOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_DIALECT_STEP_STEP_H
#define SPARKC_DIALECT_STEP_STEP_H

#include "dialect/spark/Spark.h"

#include "dialect/step/StepDialect.h.inc"
#include "dialect/step/StepEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/step/StepTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/step/StepAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/step/StepOps.h.inc"

namespace sparkc::step {

/// Smallest multiple of both width/2 and 16: elements of a rope table's half.
int64_t ropePeriod(int64_t width);

/// Chunks that may hold a visible key: an upper bound for a window (0: none,
/// where it depends on the capacity instead).
int64_t maxWindowChunks(int64_t window, int64_t chunk);

/// Elements and group (0: floats) of a vec, qvec or block.
std::pair<int64_t, int64_t> activationShape(mlir::Type type);
/// Is a qvec or block one of bf16?
bool isBF16Activation(mlir::Type type);

/// Floats of one record that attention leaves for a head and a chunk.
int64_t partialFloats(int64_t headDim);

} // namespace sparkc::step

#endif // SPARKC_DIALECT_STEP_STEP_H
