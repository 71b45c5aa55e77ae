//===- SparkFuseRopeKV.cpp - RoPE and cache write into an epilogue --------===//
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
#define GEN_PASS_DEF_SPARKFUSEROPEKV
#include "passes/Passes.h.inc"
} // namespace sparkc

/// Finds, from its end, the chain split -> rope -> write of one layer and moves
/// it into the linear that it reads.
static void fuse(RewriterBase &rewriter, KVWriteOp write) {
  auto keyRope = write.getKey().getDefiningOp<RopeOp>();
  if (!keyRope)
    return;
  auto split = keyRope.getInput().getDefiningOp<SplitOp>();
  if (!split || split.getNumResults() != 3 ||
      keyRope.getInput() != split.getResult(1) ||
      write.getValue() != split.getResult(2) ||
      !split.getResult(0).hasOneUse() || !isSegmentResult(split.getInput()))
    return;
  auto queryRope = dyn_cast<RopeOp>(*split.getResult(0).user_begin());
  Operation *linear = getLinear(split.getInput());
  if (!queryRope || queryRope->getBlock() != linear->getBlock())
    return;
  SmallVector<Operation *> ops{split, queryRope, keyRope, write};
  // In their order, whichever of the ropes comes first.
  if (keyRope->getBlock() != queryRope->getBlock() ||
      write->getBlock() != queryRope->getBlock())
    return;
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  if (canAbsorbIntoEpilogue(linear, ops) && keyRope.getOutput().hasOneUse())
    absorbIntoEpilogue(rewriter, linear, ops);
}

namespace {
struct SparkFuseRopeKV : sparkc::impl::SparkFuseRopeKVBase<SparkFuseRopeKV> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<KVWriteOp> ops;
    getOperation().walk([&](KVWriteOp op) { ops.push_back(op); });
    for (KVWriteOp op : ops)
      fuse(rewriter, op);
  }
};
} // namespace
