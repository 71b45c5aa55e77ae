//===- Emit.h - LLVM dialect to LLVM IR, assembly and object ----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps between a module in the LLVM dialect and the bytes of an object.
// The bytes depend on the module and the target alone: no path, time or host
// enters them.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_OBJECT_EMIT_H
#define SPARKC_CODEGEN_OBJECT_EMIT_H

#include "codegen/object/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace sparkc {

/// Translates \p module, which must hold nothing but the LLVM dialect, to LLVM
/// IR for \p specs, a target for each set of functions. Every definition not in \p exports becomes internal, under
/// its own name, so that debuggers and profilers still see it; empty: the
/// descriptor (SPARKC_DESCRIPTOR_SYMBOL) is the one export. Diagnostics of the
/// translation become the error's text.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVMIR(mlir::ModuleOp module, llvm::LLVMContext &context,
                  llvm::ArrayRef<TargetSpec> specs,
                  llvm::ArrayRef<llvm::StringRef> exports = {});

/// LLVM's standard O2 pipeline, without the loop and SLP vectorizers: kernels
/// come vectorised. No library function is assumed to exist.
llvm::Error optimize(llvm::Module &module, llvm::ArrayRef<TargetSpec> specs);

/// Assembly text of an optimised module.
llvm::Expected<std::string> emitAssembly(llvm::Module &module,
                                         llvm::ArrayRef<TargetSpec> specs);

/// Bytes of a relocatable ELF object of an optimised module.
llvm::Expected<llvm::SmallVector<char, 0>>
emitObject(llvm::Module &module, llvm::ArrayRef<TargetSpec> specs);

/// All of it: LLVM dialect to object bytes.
llvm::Expected<llvm::SmallVector<char, 0>>
compileToObject(mlir::ModuleOp module, llvm::ArrayRef<TargetSpec> specs,
                llvm::ArrayRef<llvm::StringRef> exports = {});

/// LLVM dialect to assembly text.
llvm::Expected<std::string>
compileToAssembly(mlir::ModuleOp module, llvm::ArrayRef<TargetSpec> specs,
                  llvm::ArrayRef<llvm::StringRef> exports = {});

} // namespace sparkc

#endif // SPARKC_CODEGEN_OBJECT_EMIT_H
