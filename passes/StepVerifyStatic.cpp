//===- StepVerifyStatic.cpp - Nothing dynamic is left ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPVERIFYSTATIC
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {
struct StepVerifyStatic : sparkc::impl::StepVerifyStaticBase<StepVerifyStatic> {
  LogicalResult check(Operation *op);

  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](Operation *op) {
      return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

LogicalResult StepVerifyStatic::check(Operation *op) {
  // step: every slot placed, every run of tiles with its kernel.
  if (auto slot = dyn_cast<step::SlotOp>(op))
    if (!slot.getOffset())
      return slot.emitOpError("has no offset; run step-plan-arena");
  if (auto tiles = dyn_cast<step::TilesOp>(op))
    if (!tiles.getKernel())
      return tiles.emitOpError("has no kernel; run step-select-microkernel");

  // LLVM: no room but fixed stack frames, no callee but our own functions and
  // the two of ctx.
  if (auto alloca = dyn_cast<LLVM::AllocaOp>(op)) {
    APInt size;
    if (!matchPattern(alloca.getArraySize(), m_ConstantInt(&size)))
      return alloca.emitOpError("allocates a size that is not constant");
    if (alloca->getBlock() != &alloca->getParentOfType<LLVM::LLVMFuncOp>().getBody().front())
      return alloca.emitOpError("is outside the entry block of its function");
  }
  if (auto call = dyn_cast<LLVM::CallOp>(op)) {
    if (!call.getCallee())
      return success(); // through a pointer: ctx->wait and ctx->wake
    auto callee = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
        call, call.getCalleeAttr());
    if (!callee || (callee.isExternal() && !callee.getName().starts_with("__tsan_")))
      return call.emitOpError("calls unknown function '")
             << *call.getCallee() << "'";
  }
  auto shaped = [](Type type) {
    auto tensor = dyn_cast<ShapedType>(type);
    return tensor && (!tensor.hasStaticShape() || isa<TensorType, MemRefType>(type));
  };
  if (!isa<spark::WeightOp>(op) &&
      (llvm::any_of(op->getResultTypes(), shaped) ||
       llvm::any_of(op->getOperandTypes(), shaped)))
    return op->emitOpError("has a tensor, a memref or a dynamic shape");
  return success();
}
