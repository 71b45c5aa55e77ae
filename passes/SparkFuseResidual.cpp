//===- SparkFuseResidual.cpp - Residual addition into an epilogue ---------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/FusedLinear.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

namespace sparkc {
#define GEN_PASS_DEF_SPARKFUSERESIDUAL
#include "passes/Passes.h.inc"
} // namespace sparkc

/// Moves the addition into the linear that gives `value`; false where that is
/// not possible.
static bool fuseInto(RewriterBase &rewriter, AddOp add, Value value) {
  if (!isSegmentResult(value) || !value.hasOneUse())
    return false;
  Operation *linear = getLinear(value);
  if (linear->getNumResults() != 1 || !canAbsorbIntoEpilogue(linear, {add}))
    return false;
  absorbIntoEpilogue(rewriter, linear, {add});
  return true;
}

namespace {
struct SparkFuseResidual
    : sparkc::impl::SparkFuseResidualBase<SparkFuseResidual> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<AddOp> ops;
    getOperation().walk([&](AddOp op) { ops.push_back(op); });
    for (AddOp op : ops)
      if (!fuseInto(rewriter, op, op.getUpdate()))
        fuseInto(rewriter, op, op.getResidual());
  }
};
} // namespace
