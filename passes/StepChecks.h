//===- StepChecks.h - What must be decided before code is made --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_STEPCHECKS_H
#define SPARKC_PASSES_STEPCHECKS_H

#include "dialect/step/Step.h"

namespace sparkc {

/// Refuses an op that no code can be made of yet, though it is valid: a slot
/// without offset, tiles without kernel, a layout that the op cannot read. The
/// dialect's verifiers do not know of layouts, and earlier passes decide the
/// rest.
llvm::LogicalResult checkDecided(mlir::Operation *op);

} // namespace sparkc

#endif // SPARKC_PASSES_STEPCHECKS_H
