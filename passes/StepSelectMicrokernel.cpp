//===- StepSelectMicrokernel.cpp - A kernel for every run of tiles --------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "passes/Passes.h"
#include "sparkc_abi.h"
#include "llvm/ADT/MapVector.h"

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

  StringRef select(step::TilesOp tiles, unsigned level, bool onHost) {
    Type type = tiles.getActivation().getType();
    auto block = dyn_cast<step::BlockType>(type);
    if (step::isBF16Activation(type)) {
      unsigned features = bf16 ? SPARKC_CPU_AVX512BF16 : 0;
      if (block && !onHost) {
        auto *kernel =
            selectPairBlockKernel(tiles.getLayout(), level, features);
        return kernel ? kernel->name : "";
      }
      auto *kernel = selectPairTileKernel(tiles.getLayout(), level, features);
      return kernel && !block ? kernel->name : "";
    }
    if (block) {
      if (onHost) {
        auto *kernel = selectHostBlockKernel(tiles.getLayout());
        return kernel ? kernel->name : "";
      }
      // Tile registers take activations by 32 at least.
      if (block.getGroup() && block.getGroup() < 32)
        level = std::min<unsigned>(level, SPARKC_ISA_AVX512VNNI);
      auto *kernel = selectBlockKernel(tiles.getLayout(), level);
      return kernel ? kernel->name : "";
    }
    auto *kernel = selectTileKernel(tiles.getLayout(), level);
    return kernel ? kernel->name : "";
  }

  /// What `step.put` leaves in a slot, until the next does.
  struct Block {
    step::PutOp put;
    SmallVector<step::BlockViewOp> views;
  };

  /// A block lies token by token where all that read it want that; else those
  /// that do get kernels that do not.
  void settle(Block &block) {
    SmallVector<step::TilesOp> some;
    size_t readers = 0;
    for (step::BlockViewOp view : block.views)
      for (Operation *user : view->getUsers())
        if (auto tiles = dyn_cast<step::TilesOp>(user); tiles && ++readers)
          if (findBlockKernel(*tiles.getKernel())->byToken)
            some.push_back(tiles);
    if (block.put && readers && some.size() == readers) {
      block.put.setByToken(true);
      for (step::BlockViewOp view : block.views)
        view.setByToken(true);
      return;
    }
    for (step::TilesOp tiles : some)
      tiles.setKernel(select(tiles, SPARKC_ISA_AVX512VNNI, /*onHost=*/false));
  }

  void orderBlocks(step::FuncOp function) {
    llvm::MapVector<StringRef, Block> latest;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto put = dyn_cast<step::PutOp>(op)) {
        put.setByToken(false);
        settle(latest[put.getSlot()]);
        latest[put.getSlot()] = {put, {}};
      } else if (auto view = dyn_cast<step::BlockViewOp>(op)) {
        view.setByToken(false);
        latest[view.getSlot()].views.push_back(view);
      }
    });
    for (auto &[slot, block] : latest)
      settle(block);
  }

  void runOnOperation() override {
    std::optional<unsigned> level = isaFromName(isa);
    if (!level) {
      getOperation().emitError() << "unknown isa '" << isa << "'";
      return signalPassFailure();
    }
    StringRef host;
    for (auto config : getOperation().getOps<spark::ConfigOp>())
      host = config.getPrefillGemm().value_or("");
    WalkResult result = getOperation().walk([&](step::TilesOp tiles) {
      StringRef kernel = select(tiles, *level, !host.empty());
      if (kernel.empty() && !host.empty() &&
          mlir::isa<step::BlockType>(tiles.getActivation().getType())) {
        tiles.emitError() << "--prefill-gemm=" << host
                          << " multiplies f32 and bf16 weights only; these "
                             "have layout '"
                          << tiles.getLayout()
                          << "' (--weights f32, bf16 or stored)";
        return WalkResult::interrupt();
      }
      if (kernel.empty()) {
        tiles.emitOpError() << "no kernel reads layout '" << tiles.getLayout()
                            << "' on " << isa;
        return WalkResult::interrupt();
      }
      tiles.setKernel(kernel);
      bool stream = mlir::isa<step::QVecType>(tiles.getActivation().getType());
      tiles.setAhead(stream && ahead ? std::optional(int64_t(ahead))
                                     : std::nullopt);
      tiles.setOnce(stream && ahead && once);
      tiles.setSerial(stream && serial);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    getOperation().walk([&](step::FuncOp function) { orderBlocks(function); });
  }
};
} // namespace
