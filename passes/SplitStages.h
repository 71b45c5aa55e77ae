//===- SplitStages.h - Entries that stop before each linear -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_SPLITSTAGES_H
#define SPARKC_PASSES_SPLITSTAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace sparkc {

/// Cuts the entry for blocks (step-add-prefill's) behind each phase that
/// prepares an activation, and at the calls of the layers. Each piece becomes an
/// entry of its own, whose weights and cache are those of one layer:
/// @NAME.stage0 and on of @NAME.prefill; @prefill.stage0 (rope tables), .stage1
/// (the final norm) and .stage2 (all logits) of @prefill. The embedding goes:
/// the host puts its rows into the residual's slot. The step's own functions go
/// too.
llvm::LogicalResult splitStages(mlir::ModuleOp module);

} // namespace sparkc

#endif // SPARKC_PASSES_SPLITSTAGES_H
