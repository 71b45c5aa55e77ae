//===- Descriptor.h - The one symbol of a compiled model ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_OBJECT_DESCRIPTOR_H
#define SPARKC_CODEGEN_OBJECT_DESCRIPTOR_H

#include "codegen/object/Target.h"
#include "dialect/step/Step.h"
#include "llvm/ADT/ArrayRef.h"

namespace sparkc {

/// Adds the global `sparkc_model_descriptor` (runtime/include/sparkc_abi.h) to
/// a module of LLVM functions, from its spark.config and step.descriptor; then
/// erases everything that is not of the LLVM dialect. It has an entry for each
/// of `targets`, best first. `digest` is that of the packed payload.
llvm::Error finishModule(mlir::ModuleOp module,
                         llvm::ArrayRef<TargetSpec> targets,
                         llvm::ArrayRef<uint8_t> digest);

} // namespace sparkc

#endif // SPARKC_CODEGEN_OBJECT_DESCRIPTOR_H
