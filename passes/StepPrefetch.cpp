//===- StepPrefetch.cpp - What a waiting thread prefetches ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPPREFETCH
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {

/// Weight bytes, relative to the weights of the function that is asked.
struct Stream {
  int64_t offset, bytes;
};

struct StepPrefetch : sparkc::impl::StepPrefetchBase<StepPrefetch> {
  static std::optional<Stream> streamOf(step::PhaseOp phase) {
    for (auto stream : phase.getBody().getOps<step::StreamOp>())
      return Stream{int64_t(stream.getOffset()), int64_t(stream.getBytes())};
    return std::nullopt;
  }

  /// The first stream of a function.
  static std::optional<Stream> firstStream(step::FuncOp func) {
    for (auto phase : func.getBody().getOps<step::PhaseOp>())
      if (auto stream = streamOf(phase))
        return stream;
    return std::nullopt;
  }

  /// The stream that follows `op` in its function.
  std::optional<Stream> nextStream(Operation *op, SymbolTable &symbols) {
    for (op = op->getNextNode(); op; op = op->getNextNode()) {
      if (auto phase = dyn_cast<step::PhaseOp>(op)) {
        if (auto stream = streamOf(phase))
          return stream;
      } else if (auto call = dyn_cast<step::CallOp>(op)) {
        auto callee = symbols.lookup<step::FuncOp>(call.getCallee());
        if (auto stream = firstStream(callee))
          return Stream{stream->offset + int64_t(call.getWeights()),
                        stream->bytes};
      }
    }
    return std::nullopt;
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    OpBuilder b(&getContext());
    for (auto func : getOperation().getOps<step::FuncOp>()) {
      std::optional<Stream> first = firstStream(func);
      int64_t end = 0;
      for (auto phase : func.getBody().getOps<step::PhaseOp>())
        if (auto stream = streamOf(phase))
          end = std::max(end, stream->offset + stream->bytes);
      for (auto barrier : func.getBody().getOps<step::BarrierOp>()) {
        std::optional<Stream> next = nextStream(barrier, symbols);
        // Packs lie in the order of the step: behind a layer's last comes the
        // first of the next, likely of the size of this layer's.
        if (!next && !func.getEntry() && first)
          next = Stream{end, first->bytes};
        if (!next)
          continue;
        barrier.setPrefetch(next->offset);
        barrier.setPrefetchBytes(next->bytes);
      }
    }
  }
};
} // namespace
