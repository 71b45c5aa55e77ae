//===- KernelObject.cpp - Bodies of kernels, compiled and loaded ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/KernelObject.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::test;

KernelObject::KernelObject() {
  context.loadDialect<amx::AMXDialect, arith::ArithDialect,
                      cf::ControlFlowDialect, math::MathDialect, scf::SCFDialect, ub::UBDialect,
                      vector::VectorDialect, LLVM::LLVMDialect>();
  module = ModuleOp::create(UnknownLoc::get(&context));
}

void KernelObject::add(llvm::StringRef name, Body body) {
  OpBuilder b(module->getBodyRegion());
  Location loc = b.getUnknownLoc();
  Type ptr = LLVM::LLVMPointerType::get(&context);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&context),
                                          {ptr, ptr, ptr});
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, type);
  b.setInsertionPointToStart(function.addEntryBlock(b));
  Emitter e(b, loc);
  body(e, function.getArgument(0), function.getArgument(1),
       function.getArgument(2));
  LLVM::ReturnOp::create(b, loc, ValueRange());
  names.push_back(name.str());
}

std::string KernelObject::compile(const TargetSpec &target) {
  PassManager passes(&context);
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.amx = true;
  passes.addPass(createConvertVectorToLLVMPass(vectors));
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(*module)))
    return "the kernels do not lower to LLVM";
  llvm::SmallVector<llvm::StringRef> exports(names.begin(), names.end());
  object = std::make_unique<LoadedObject>(*module, target, exports);
  return object->error;
}
