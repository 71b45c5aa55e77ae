//===- Passes.h - sparkc's passes -------------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// create<Name>() and register<Name>() for each entry of Passes.td, and
// registerSparkcPasses() for all of them.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_PASSES_H
#define SPARKC_PASSES_PASSES_H

#include "dialect/step/Step.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace sparkc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// Barriers of one step: ops weighted by calls.
int64_t countBarriers(mlir::ModuleOp module);

} // namespace sparkc

#endif // SPARKC_PASSES_PASSES_H
