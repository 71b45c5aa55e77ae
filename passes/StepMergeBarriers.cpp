//===- StepMergeBarriers.cpp - Drops barriers that order nothing ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPMERGEBARRIERS
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {
struct StepMergeBarriers
    : sparkc::impl::StepMergeBarriersBase<StepMergeBarriers> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<step::FuncOp>()) {
      SmallVector<step::BarrierOp> redundant;
      Operation *previous = nullptr;
      for (Operation &op : func.getBody().front()) {
        if (auto phase = dyn_cast<step::PhaseOp>(op))
          if (phase.getBody().front().empty())
            continue;
        auto barrier = dyn_cast<step::BarrierOp>(op);
        if (barrier && previous && isa<step::BarrierOp>(previous))
          redundant.push_back(barrier);
        else if (!isa<step::RopeTableOp>(op))
          previous = &op;
      }
      for (step::BarrierOp barrier : redundant)
        barrier.erase();
    }
  }
};
} // namespace
