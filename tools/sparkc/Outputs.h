//===- Outputs.h - What a run writes to -------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_OUTPUTS_H
#define SPARKC_TOOLS_SPARKC_OUTPUTS_H

#include "mlir/IR/BuiltinOps.h"
#include "tools/sparkc/Driver.h"

namespace sparkc {

/// The file of weights that belongs to a shared object.
std::string weightsBeside(llvm::StringRef object);

/// Of the codes that --calibrate chooses, beside the output; empty: there is none.
std::string codesBeside(const DriverOptions &options);

/// Gives the two files of a model their names, `rename` each. Where the object
/// cannot have its own, an older model stays whole.
llvm::Error
replaceModel(llvm::StringRef object,
             llvm::function_ref<llvm::Error()> renameWeights,
             llvm::function_ref<llvm::Error()> renameObject);

/// Refuses outputs before there is any work to lose: two of one name, one that
/// is a file that `module` or an option reads, devices, directories that are not
/// there or not to be written to.
llvm::Error checkOutputs(const DriverOptions &options, mlir::ModuleOp module);

/// Prints to standard output; an error if that takes it no longer.
llvm::Error printOut(llvm::StringRef text);

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_OUTPUTS_H
