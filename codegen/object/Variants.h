//===- Variants.h - Code for several instruction sets -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model for several instruction sets is one module with the functions of all,
// told apart by what their names begin with (TargetSpec::prefix).
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_OBJECT_VARIANTS_H
#define SPARKC_CODEGEN_OBJECT_VARIANTS_H

#include "mlir/IR/BuiltinOps.h"

namespace sparkc {

/// Puts \p prefix before the names of all functions and variables of the LLVM
/// dialect that \p module defines, and wherever they are referred to.
void prefixSymbols(mlir::ModuleOp module, llvm::StringRef prefix);

/// Moves the functions and variables of the LLVM dialect to the end of \p into.
/// Declarations that are there already are dropped.
void moveCode(mlir::ModuleOp from, mlir::ModuleOp into);

} // namespace sparkc

#endif // SPARKC_CODEGEN_OBJECT_VARIANTS_H
