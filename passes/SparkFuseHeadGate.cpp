//===- SparkFuseHeadGate.cpp - The head gate joins its neighbours ---------===//
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
#define GEN_PASS_DEF_SPARKFUSEHEADGATE
#include "passes/Passes.h.inc"
} // namespace sparkc

/// The one other linear in the block that can be joined with this one; null
/// where there is none or a choice.
static Operation *findPartner(Operation *linear) {
  Operation *partner = nullptr;
  for (Operation &op : *linear->getBlock()) {
    if (&op == linear || !isa<LinearOp, FusedLinearOp>(op) ||
        !canJoin(&op, linear))
      continue;
    if (partner)
      return nullptr;
    partner = &op;
  }
  return partner;
}

/// Joins the gate's rows with the other rows of the same input.
static void joinRows(RewriterBase &rewriter, Value gate) {
  if (!isSegmentResult(gate))
    return;
  Operation *linear = getLinear(gate);
  if (linear->getNumResults() != 1)
    return;
  if (Operation *partner = findPartner(linear))
    join(rewriter, partner, linear);
}

/// Moves the gate into the one linear that reads what it gives.
static void fuseGate(RewriterBase &rewriter, HeadGateOp gate) {
  if (!gate.getOutput().hasOneUse())
    return;
  Operation *linear = *gate.getOutput().user_begin();
  if (!isa<LinearOp, FusedLinearOp>(linear) ||
      !canAbsorbIntoPrologue(linear, gate))
    return;
  absorbIntoPrologue(rewriter, linear, gate);
  rewriter.eraseOp(gate);
}

namespace {
struct SparkFuseHeadGate
    : sparkc::impl::SparkFuseHeadGateBase<SparkFuseHeadGate> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<HeadGateOp> ops;
    getOperation().walk([&](HeadGateOp op) { ops.push_back(op); });
    for (HeadGateOp op : ops) {
      joinRows(rewriter, op.getGate());
      fuseGate(rewriter, op);
    }
  }
};
} // namespace
