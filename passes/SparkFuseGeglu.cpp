//===- SparkFuseGeglu.cpp - GEGLU into an epilogue ------------------------===//
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
#define GEN_PASS_DEF_SPARKFUSEGEGLU
#include "passes/Passes.h.inc"
} // namespace sparkc

/// Fuses one geglu with the two linears it reads, if nothing forbids it.
static void fuse(RewriterBase &rewriter, GegluOp geglu) {
  Value gate = geglu.getGate(), up = geglu.getUp();
  if (gate == up || !isSegmentResult(gate) || !isSegmentResult(up) ||
      !gate.hasOneUse() || !up.hasOneUse())
    return;
  Operation *linear = getLinear(gate), *other = getLinear(up);
  if (linear != other) {
    // Anything else that either of them gives would have to leave as well.
    if (linear->getNumResults() != 1 || other->getNumResults() != 1 ||
        !canJoin(linear, other))
      return;
    linear = join(rewriter, linear, other);
  }
  if (canAbsorbIntoEpilogue(linear, {geglu}))
    absorbIntoEpilogue(rewriter, linear, {geglu});
}

namespace {
struct SparkFuseGeglu : sparkc::impl::SparkFuseGegluBase<SparkFuseGeglu> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<GegluOp> ops;
    getOperation().walk([&](GegluOp op) { ops.push_back(op); });
    for (GegluOp op : ops)
      fuse(rewriter, op);
  }
};
} // namespace
