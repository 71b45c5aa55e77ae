//===- StepChecks.h - What must be decided before code is made --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_STEPCHECKS_H
#define SPARKC_PASSES_STEPCHECKS_H

#include "dialect/step/Step.h"
#include "mlir/IR/BuiltinOps.h"

namespace sparkc {

/// Refuses an op that no code can be made of yet, though it is valid: a slot
/// without offset, tiles without kernel, a layout that the op cannot read. The
/// dialect's verifiers do not know of layouts, and earlier passes decide the
/// rest.
llvm::LogicalResult checkDecided(mlir::Operation *op);

/// Refuses a schedule of decided ops that reads or writes outside of what its
/// module has places for: see StepBounds.cpp.
llvm::LogicalResult checkBounds(mlir::ModuleOp module);

} // namespace sparkc

#endif // SPARKC_PASSES_STEPCHECKS_H
