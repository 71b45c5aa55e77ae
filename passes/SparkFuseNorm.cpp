//===- SparkFuseNorm.cpp - RMSNorm into prologues -------------------------===//
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
#define GEN_PASS_DEF_SPARKFUSENORM
#include "passes/Passes.h.inc"
} // namespace sparkc

/// Moves one norm into all its readers, or into none.
static void fuse(RewriterBase &rewriter, RmsNormOp norm) {
  llvm::SetVector<Operation *> linears(norm->user_begin(), norm->user_end());
  if (linears.empty())
    return;
  for (Operation *linear : linears)
    if (!isa<LinearOp, FusedLinearOp>(linear) ||
        !canAbsorbIntoPrologue(linear, norm))
      return;
  for (Operation *linear : linears)
    absorbIntoPrologue(rewriter, linear, norm);
  rewriter.eraseOp(norm);
}

namespace {
struct SparkFuseNorm : sparkc::impl::SparkFuseNormBase<SparkFuseNorm> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<RmsNormOp> ops;
    getOperation().walk([&](RmsNormOp op) { ops.push_back(op); });
    for (RmsNormOp op : ops)
      fuse(rewriter, op);
  }
};
} // namespace
