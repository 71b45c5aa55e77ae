//===- StepSelectMicrokernel.cpp - A kernel for every run of tiles --------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPSELECTMICROKERNEL
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {
struct StepSelectMicrokernel
    : sparkc::impl::StepSelectMicrokernelBase<StepSelectMicrokernel> {
  using StepSelectMicrokernelBase::StepSelectMicrokernelBase;

  void runOnOperation() override {
    std::optional<unsigned> level = isaFromName(isa);
    if (!level) {
      getOperation().emitError() << "unknown isa '" << isa << "'";
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](step::TilesOp tiles) {
      const TileKernel *kernel = selectTileKernel(tiles.getLayout(), *level);
      if (!kernel) {
        tiles.emitOpError() << "no kernel reads layout '" << tiles.getLayout()
                            << "' on " << isa;
        return WalkResult::interrupt();
      }
      tiles.setKernel(StringRef(kernel->name));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
