//===- StepVerifyStatic.cpp - Nothing dynamic is left ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/Passes.h"
#include "passes/StepChecks.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPVERIFYSTATIC
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {
struct StepVerifyStatic : sparkc::impl::StepVerifyStaticBase<StepVerifyStatic> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    WalkResult result = getOperation().walk([&](Operation *op) {
      return failed(check(op, symbols)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
    });
    if (result.wasInterrupted() || failed(checkBounds(getOperation())))
      signalPassFailure();
  }

private:
  static LogicalResult check(Operation *op, SymbolTableCollection &symbols);
};
} // namespace

/// Intrinsics that are instructions, on all of our machines. The others may
/// become calls: exp, sin or pow of libm, memcpy of the C library.
static bool isInstruction(StringRef intrinsic) {
  static const llvm::StringSet<> known{
      "abs",  "bswap", "ceil",  "copysign", "ctlz",     "ctpop",
      "cttz", "fabs",  "floor", "fma",      "prefetch", "roundeven",
      "smax", "smin",  "sqrt",  "trunc",    "umax",     "umin"};
  return known.contains(intrinsic) || intrinsic.starts_with("masked.") ||
         intrinsic.starts_with("vector.");
}

/// A function or a variable that is not in the object; but for what
/// --sanitize=thread calls.
static bool isOutside(Operation *symbol) {
  if (auto global = dyn_cast<LLVM::GlobalOp>(symbol))
    return !global.getValueAttr() && !global.getInitializerBlock() &&
           (global.getLinkage() == LLVM::Linkage::External ||
            global.getLinkage() == LLVM::Linkage::ExternWeak);
  auto function = dyn_cast<FunctionOpInterface>(symbol);
  return function && function.isExternal() &&
         !function.getName().starts_with("__tsan_");
}

/// What names a function can have it called: an address can be passed on.
static LogicalResult checkReferences(Operation *op,
                                     SymbolTableCollection &symbols) {
  LogicalResult result = success();
  for (NamedAttribute attribute : op->getAttrs())
    attribute.getValue().walk([&](SymbolRefAttr name) {
      Operation *symbol = symbols.lookupNearestSymbolFrom(op, name);
      if (failed(result) || !symbol || !isOutside(symbol))
        return;
      result = op->emitOpError()
               << (isa<CallOpInterface>(op) ? "calls unknown function '"
                                            : "refers to unknown symbol '")
               << name.getLeafReference().getValue() << "'";
    });
  return result;
}

/// May LLVM make a call of it? Of math ops nothing is left at the end.
static bool mayBecomeCall(Operation *op) {
  if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return !intrinsic.getIntrin().starts_with("llvm.x86.");
  StringRef name = op->getName().getStringRef();
  if (name.consume_front("llvm.intr."))
    return !isInstruction(name);
  return isa<LLVM::FRemOp>(op) ||
         isa_and_nonnull<math::MathDialect>(op->getDialect());
}

LogicalResult StepVerifyStatic::check(Operation *op,
                                      SymbolTableCollection &symbols) {
  // step: every slot placed, every run of tiles with its kernel.
  if (failed(checkDecided(op)))
    return failure();

  // LLVM: no room but fixed stack frames, no callee but our own functions and
  // those of ctx, which are called through pointers.
  if (auto alloca = dyn_cast<LLVM::AllocaOp>(op)) {
    APInt size;
    if (!matchPattern(alloca.getArraySize(), m_ConstantInt(&size)))
      return alloca.emitOpError("allocates a size that is not constant");
    auto function = dyn_cast<LLVM::LLVMFuncOp>(alloca->getParentOp());
    if (!function || alloca->getBlock() != &function.getBody().front())
      return alloca.emitOpError("is outside the entry block of a function");
  }
  if (isa<LLVM::InlineAsmOp>(op))
    return op->emitOpError("is code that nothing can check");
  if (mayBecomeCall(op))
    return op->emitOpError("may become a call of a library");
  if (failed(checkReferences(op, symbols)))
    return failure();

  auto shaped = [](Type type) {
    auto tensor = dyn_cast<ShapedType>(type);
    return tensor &&
           (!tensor.hasStaticShape() || isa<TensorType, MemRefType>(type));
  };
  if (!isa<spark::WeightOp>(op) &&
      (llvm::any_of(op->getResultTypes(), shaped) ||
       llvm::any_of(op->getOperandTypes(), shaped)))
    return op->emitOpError("has a tensor, a memref or a dynamic shape");
  return success();
}
