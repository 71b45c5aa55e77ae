//===- StagedModel.h - A model that runs from linear to linear --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The model's unquantized build, compiled for this machine as any model is
/// (import, passes, codegen) and cut before each linear by `step-split-stages`.
/// Layers of one kind share code, and a layer's weights are a pointer: so
/// calibration compiles two layers, whatever the model's depth, and holds the
/// weights of one.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_STAGEDMODEL_H
#define SPARKC_TOOLS_SPARKC_STAGEDMODEL_H

#include "codegen/weights/PackPlan.h"
#include "dialect/step/Step.h"
#include "sparkc_abi.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sparkc {

struct FreeMemory {
  void operator()(uint8_t *p) const { std::free(p); }
};
/// Zeros, on a line of its own.
using Memory = std::unique_ptr<uint8_t, FreeMemory>;
Memory zeroedMemory(uint64_t bytes);

/// One window of tokens on its way through the model: what a session has, with
/// the cache of one layer.
struct Window {
  Memory arena, kv;
  sparkc_barrier barrier = {};
  sparkc_ctx ctx = {};
};

/// Packed weights of one layer (or of the head), as a stage reads them.
struct PackedLayer {
  Memory bytes;
  int64_t base = 0; ///< the offset, in the stage's terms, of its first byte
  const uint8_t *pointer() const { return bytes.get() - base; }
};

/// Floats of gathered activations, and of a matrix's rows, at a time.
inline constexpr int64_t kGatheredFloats = 4 << 20, kFloatsAtOnce = 16 << 20;
inline int64_t rowsAtOnce(int64_t cols) {
  return std::max<int64_t>(64, kFloatsAtOnce / cols / 64 * 64);
}

/// The name by which rules and reports know a linear's weight: a tied head is
/// stored as the embedding.
inline llvm::StringRef linearName(llvm::StringRef weight) {
  return weight == "embedding" ? "lm_head" : weight;
}

class StagedModel {
public:
  /// Where the inputs of a linear lie once a stage has run.
  struct Tap {
    int64_t offset = 0; ///< in the arena
    int64_t cols = 0;
  };
  struct Stage {
    sparkc_entry_fn run = nullptr;
    std::optional<Tap> tap;
    /// What reads the tap, "down_proj": the weights of the next stage's linear.
    std::vector<std::string> readers;
    /// Whether that linear's output is added to the residual stream.
    bool addsToResidual = false;
  };
  struct Layer {
    const std::vector<Stage> *stages = nullptr;
    std::vector<step::PackOp> packs;
    int64_t weights = 0, kv = 0; ///< offsets in the whole model
  };

  /// Compiles `graph`, a module of the spark dialect all of whose weights are
  /// floats and whose prefill block is a window.
  static llvm::Expected<std::unique_ptr<StagedModel>>
  compile(mlir::OwningOpRef<mlir::ModuleOp> graph);
  ~StagedModel();

  /// The layers, and last the final norm and the head, whose stages are those
  /// two.
  llvm::ArrayRef<Layer> layers() const { return all; }
  int64_t hidden() const { return hiddenSize; }
  int64_t vocab() const { return vocabSize; }
  /// Most tokens of a window.
  int64_t windowLength() const { return block; }
  spark::WeightOp weight(llvm::StringRef name) const;

  /// Bytes that a window takes.
  int64_t windowBytes() const { return arenaBytes + kvBytes; }
  /// A window of `tokens` with no residual stream yet.
  Window makeWindow(int64_t tokens) const;
  /// Clears the cache: the next layer's begins.
  void clearCache(Window &window) const;
  /// Runs a stage, each window on a thread.
  void run(const Stage &stage, const PackedLayer &weights,
           llvm::MutableArrayRef<Window> windows) const;

  /// Packs a layer from the sources of its weights. `vectorsOnly`: the norms
  /// alone (of the head, whose matrix may be large).
  llvm::Expected<PackedLayer> pack(const Layer &layer,
                                   bool vectorsOnly = false) const;
  /// Packs again what has one of `names` for a source.
  llvm::Error repack(const Layer &layer, PackedLayer &packed,
                     llvm::ArrayRef<std::string> names) const;

  /// The sources of a pack's weights, in their order.
  llvm::Expected<std::vector<SourceMatrix>> sourcesOf(step::PackOp op) const;
  /// Packs one matrix of a layer from the sources of its weights.
  llvm::Error packOwn(step::PackOp op, const Layer &layer,
                      PackedLayer &packed) const;
  /// The same from `sources`, one for each of its weights.
  llvm::Error packOne(step::PackOp op, const Layer &layer,
                      llvm::ArrayRef<SourceMatrix> sources,
                      PackedLayer &packed) const;

  /// The embedding's rows of a window's tokens go to rowOf(token).
  llvm::Error embed(llvm::ArrayRef<int32_t> tokens,
                    llvm::function_ref<float *(int64_t)> rowOf) const;

  /// A token's row of the residual stream, [hidden].
  float *residual(Window &window, int64_t token) const;
  /// The inputs of the window's tokens, out [tokens, cols].
  void read(const Tap &tap, const Window &window, float *out) const;

  /// Of `names` that a weight has, the file and dtype it is read from.
  void setSource(llvm::StringRef name, spark::SourceAttr source);

private:
  StagedModel() = default;
  llvm::Error plan();
  llvm::Error planStage(step::FuncOp func, Stage &stage);
  llvm::Error loadCode();
  int64_t placeOf(step::PackOp op, const Layer &layer) const;

  /// The schedule, which says where all lies.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::StringMap<std::vector<Stage>> functions; ///< "layer.full", "prefill"
  std::vector<Layer> all;
  int64_t hiddenSize = 0, vocabSize = 0;
  int64_t residualOffset = 0, residualRow = 0;
  int64_t block = 0, capacity = 0, arenaBytes = 0, kvBytes = 0;
  void *handle = nullptr;
};

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_STAGEDMODEL_H
