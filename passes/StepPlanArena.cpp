//===- StepPlanArena.cpp - Places the slots -------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPPLANARENA
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {
struct StepPlanArena : sparkc::impl::StepPlanArenaBase<StepPlanArena> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder b(module);
    int64_t offset = 0, growing = 0;
    // Slots whose size grows with the context go last, so that all offsets are
    // constants; there can be one of them.
    step::SlotOp last;
    for (auto slot : module.getOps<step::SlotOp>()) {
      if (slot.getSize().getPerPosition()) {
        if (last) {
          InFlightDiagnostic diag =
              slot.emitError("only one slot may grow with the context");
          diag.attachNote(last.getLoc()) << "the other one";
          return signalPassFailure();
        }
        last = slot;
        continue;
      }
      slot.setOffset(offset);
      offset += (slot.getSize().getConstant() + 63) / 64 * 64;
    }
    if (last) {
      last.setOffset(offset);
      offset += (last.getSize().getConstant() + 63) / 64 * 64;
      growing = last.getSize().getPerPosition();
    }
    for (auto descriptor : module.getOps<step::DescriptorOp>())
      descriptor.setArenaAttr(
          step::AffineAttr::get(&getContext(), offset, growing));
  }
};
} // namespace
