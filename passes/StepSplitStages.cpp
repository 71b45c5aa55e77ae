//===- StepSplitStages.cpp - Entries that stop before each linear ---------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing is added to the schedule: between the phase that prepares the
// activation of a linear and the phase that multiplies it, everything that a
// block of tokens has become lies in the arena. So a function cut there is a
// few functions, and between two of them the host can read what the linear is
// about to read.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/SymbolTable.h"
#include "passes/SplitStages.h"
#include "dialect/step/Step.h"

using namespace mlir;
using namespace sparkc;

/// Whether a phase leaves an activation for the linear that follows.
static bool preparesActivation(step::PhaseOp phase) {
  return phase
      .walk([](step::PutOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Phases that no stage has: the embedding, and the head of the last token.
static bool isLeftOut(Operation &op) {
  auto phase = dyn_cast<step::PhaseOp>(op);
  return phase && (phase.getWhen() == step::Wanted::last ||
                   phase.walk([](step::EmbedOp) {
                          return WalkResult::interrupt();
                        }).wasInterrupted());
}

namespace {

/// Moves the ops of one function to entries of their own.
class Splitter {
public:
  Splitter(step::FuncOp func, StringRef base) : func(func), base(base) {}

  void split() {
    for (Operation &op :
         llvm::make_early_inc_range(func.getBody().front())) {
      if (isa<step::ReturnOp>(op) || isLeftOut(op))
        continue;
      // The entry's calls part what comes before the layers from what follows.
      if (isa<step::CallOp>(op)) {
        close();
        continue;
      }
      // Threads that prepare tokens meet at the barrier behind.
      bool barrier = isa<step::BarrierOp>(op);
      if (full && !barrier)
        close();
      if (!stage)
        open();
      op.moveBefore(&stage.getBody().front(), stage.getBody().front().end());
      if (auto phase = dyn_cast<step::PhaseOp>(op))
        full |= preparesActivation(phase);
    }
    close();
    func.erase();
  }

private:
  void open() {
    OpBuilder b(func);
    stage = step::FuncOp::create(
        b, func.getLoc(), (base + ".stage" + Twine(number++)).str(),
        /*entry=*/true);
    stage.getBody().emplaceBlock();
  }
  void close() {
    if (stage) {
      OpBuilder b = OpBuilder::atBlockEnd(&stage.getBody().front());
      step::ReturnOp::create(b, func.getLoc());
    }
    stage = {};
    full = false;
  }

  step::FuncOp func, stage;
  std::string base;
  int number = 0;
  bool full = false;
};

} // namespace

LogicalResult sparkc::splitStages(ModuleOp module) {
  SmallVector<step::FuncOp> functions(module.getOps<step::FuncOp>());
  if (!SymbolTable(module).lookup<step::FuncOp>("prefill"))
    return module.emitError() << "has no entry for blocks of tokens to split";
  for (step::FuncOp func : functions) {
    StringRef base = func.getSymName();
    if (base != "prefill" && !base.consume_back(".prefill"))
      func.erase();
    else
      Splitter(func, base.str()).split();
  }
  return success();
}
