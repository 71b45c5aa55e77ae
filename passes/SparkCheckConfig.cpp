//===- SparkCheckConfig.cpp - A graph against its config ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

namespace sparkc {
#define GEN_PASS_DEF_SPARKCHECKCONFIG
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {

/// One run over a module. Every check reports at the op at fault.
class Checker {
public:
  explicit Checker(ModuleOp module) : module(module) {}
  LogicalResult run();

private:
  LogicalResult findConfig();
  LogicalResult checkStep();
  LogicalResult checkLayers();
  LogicalResult checkLayer(LayerOp layer);
  LogicalResult checkAttention(AttentionOp attention);
  LogicalResult checkCache(KVCacheOp cache, bool slides);
  LogicalResult checkRopes(LayerOp layer, bool slides);
  LogicalResult checkNorms();
  LogicalResult checkUses();

  /// "expects <what> to be <expected>, not <actual>".
  static LogicalResult expect(Operation *op, StringRef what, int64_t actual,
                              int64_t expected) {
    if (actual == expected)
      return success();
    return op->emitOpError()
           << "expects " << what << " to be " << expected << ", not " << actual;
  }

  /// Remembers the first op of a kind and compares the others with it.
  template <typename AttrT>
  static LogicalResult agree(Operation *&first, AttrT &common, Operation *op,
                             StringRef what, AttrT actual) {
    if (!first) {
      first = op;
      common = actual;
    }
    if (actual == common)
      return success();
    InFlightDiagnostic diag = op->emitOpError()
                              << "has " << what << " " << actual
                              << ", but an earlier op " << common;
    diag.attachNote(first->getLoc()) << "the earlier op is here";
    return diag;
  }

  ModuleOp module;
  SymbolTableCollection symbols;
  ConfigOp config;
  func::FuncOp step;
  Operation *firstChunk = nullptr, *firstNorm = nullptr, *firstCache = nullptr;
  IntegerAttr chunk;
  FloatAttr eps;
  Type element;
  Operation *firstRope[2] = {nullptr, nullptr}; ///< full, sliding
  RopeAttr rope[2];
  llvm::StringMap<Operation *> caches; ///< by name, with the layer that has it
};

struct SparkCheckConfig : sparkc::impl::SparkCheckConfigBase<SparkCheckConfig> {
  void runOnOperation() override {
    if (failed(Checker(getOperation()).run()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

LogicalResult Checker::findConfig() {
  for (auto op : module.getOps<ConfigOp>()) {
    if (config) {
      InFlightDiagnostic diag = op.emitOpError() << "is the second one";
      diag.attachNote(config.getLoc()) << "the first one is here";
      return diag;
    }
    config = op;
  }
  if (!config)
    return module.emitError() << "expects a spark.config";
  return success();
}

LogicalResult Checker::checkStep() {
  step = module.lookupSymbol<func::FuncOp>("step");
  if (!step || step.isDeclaration())
    return module.emitError() << "expects a function @step with a body";
  Builder builder(module.getContext());
  auto token = RankedTensorType::get({1}, builder.getI32Type());
  auto logits = RankedTensorType::get({1, int64_t(config.getVocab())},
                                      builder.getF32Type());
  auto type = builder.getFunctionType({token, builder.getIndexType()}, logits);
  if (step.getFunctionType() != type)
    return step.emitOpError()
           << "expects type " << type << ", not " << step.getFunctionType();
  if (!step.getBody().hasOneBlock())
    return step.emitOpError() << "expects one block";
  return success();
}

LogicalResult Checker::checkLayers() {
  int64_t count = 0;
  Value previous;
  for (auto embed : step.getBody().front().getOps<EmbedOp>())
    previous = embed.getOutput();
  for (auto layer : step.getBody().front().getOps<LayerOp>()) {
    if (failed(expect(layer, "its index", layer.getIndex(), count)))
      return failure();
    if (layer.getInput() != previous)
      return layer.emitOpError()
             << "must take the "
             << (count ? "result of the layer before it" : "embedding");
    if (failed(checkLayer(layer)))
      return failure();
    previous = layer.getOutput();
    ++count;
  }
  return expect(step, "the number of layers", count, config.getLayers());
}

LogicalResult Checker::checkLayer(LayerOp layer) {
  if (failed(expect(layer, "its features (hidden)", features(layer.getInput()),
                    config.getHidden())))
    return failure();
  SmallVector<AttentionOp> attentions;
  SmallVector<KVWriteOp> writes;
  SmallVector<GegluOp> geglus;
  layer.walk([&](Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      attentions.push_back(attention);
    else if (auto write = dyn_cast<KVWriteOp>(op))
      writes.push_back(write);
    else if (auto geglu = dyn_cast<GegluOp>(op))
      geglus.push_back(geglu);
  });
  if (attentions.size() != 1 || writes.size() != 1)
    return layer.emitOpError()
           << "expects one spark.kv_write and one spark.attention, not "
           << writes.size() << " and " << attentions.size();
  AttentionOp attention = attentions.front();
  KVWriteOp write = writes.front();
  Operation *writer = layer.getBody().front().findAncestorOpInBlock(*write);
  if (attention->getBlock() != &layer.getBody().front() ||
      !writer->isBeforeInBlock(attention))
    return attention.emitOpError() << "must stand after the spark.kv_write";
  if (write.getCacheAttr() != attention.getCacheAttr())
    return attention.emitOpError()
           << "reads " << attention.getCacheAttr() << " but its layer writes "
           << write.getCacheAttr();
  auto [entry, isNew] = caches.try_emplace(attention.getCache(), layer);
  if (!isNew) {
    InFlightDiagnostic diag = attention.emitOpError()
                              << "shares " << attention.getCacheAttr()
                              << " with another layer";
    diag.attachNote(entry->second->getLoc()) << "the other layer is here";
    return diag;
  }
  for (GegluOp geglu : geglus)
    if (failed(expect(geglu, "its features (intermediate)",
                      features(geglu.getOutput()), config.getIntermediate())))
      return failure();
  Value position = step.getArgument(1);
  if (write.getPosition() != position)
    return write.emitOpError() << "must be at the step's position";
  if (attention.getPosition() != position)
    return attention.emitOpError() << "must be at the step's position";
  if (failed(checkAttention(attention)))
    return failure();
  bool slides = attention.getWindow() != 0;
  auto cache =
      symbols.lookupSymbolIn<KVCacheOp>(module, attention.getCacheAttr());
  if (failed(checkCache(cache, slides)))
    return failure();
  return checkRopes(layer, slides);
}

LogicalResult Checker::checkAttention(AttentionOp attention) {
  if (failed(
          expect(attention, "heads", attention.getHeads(), config.getHeads())))
    return failure();
  if (attention.getWindow() != 0 &&
      failed(expect(attention, "its window (the config's or 0)",
                    attention.getWindow(), config.getWindow())))
    return failure();
  auto scale = static_cast<float>(1.0 / std::sqrt(double(config.getHeadDim())));
  if (attention.getScale().convertToFloat() != scale)
    return attention.emitOpError()
           << "expects a scale of 1/sqrt(head_dim), "
           << Builder(module.getContext()).getF32FloatAttr(scale) << ", not "
           << attention.getScaleAttr();
  return agree(firstChunk, chunk, attention, "chunk", attention.getChunkAttr());
}

LogicalResult Checker::checkCache(KVCacheOp cache, bool slides) {
  // A quantized cache is written chunk by chunk while it is read.
  bool quantized = cache.getElementType().isInteger();
  int64_t block = config.getPrefillBlock();
  if (quantized)
    block = std::max(block, chunk.getInt());
  int64_t ring =
      slides ? llvm::alignTo(config.getWindow() + block - 1, chunk.getInt())
             : 0;
  if (failed(expect(cache, "heads (kv_heads)", cache.getHeads(),
                    config.getKvHeads())) ||
      failed(
          expect(cache, "head_dim", cache.getHeadDim(), config.getHeadDim())))
    return failure();
  if (slides ? int64_t(cache.getRing()) < ring : cache.getRing() != 0)
    return cache.emitOpError()
           << "expects a ring of "
           << (slides
                   ? "at least window + prefill_block - 1 positions in whole "
                     "chunks, "
                   : "")
           << (slides && quantized ? "and a chunk at least in the block's "
                                     "place, "
                                   : "")
           << ring << ", not " << cache.getRing();
  return agree(firstCache, element, cache, "elements of type",
               cache.getElementType());
}

LogicalResult Checker::checkRopes(LayerOp layer, bool slides) {
  WalkResult result = layer.walk([&](RopeOp op) -> WalkResult {
    if (op.getPosition() != step.getArgument(1))
      return op.emitOpError() << "must be at the step's position";
    if (failed(expect(op, "head_dim", features(op.getInput()) / op.getHeads(),
                      config.getHeadDim())))
      return failure();
    return agree(firstRope[slides], rope[slides], op, "rope", op.getRope());
  });
  return failure(result.wasInterrupted());
}

LogicalResult Checker::checkNorms() {
  WalkResult result = step.walk([&](RmsNormOp op) -> WalkResult {
    return agree(firstNorm, eps, op, "eps", op.getEpsAttr());
  });
  return failure(result.wasInterrupted());
}

/// Every weight and every cache is read by the step.
LogicalResult Checker::checkUses() {
  llvm::StringSet<> used;
  step.walk([&](Operation *op) {
    for (NamedAttribute attr : op->getAttrs())
      attr.getValue().walk([&](SymbolRefAttr name) {
        used.insert(name.getRootReference().getValue());
      });
  });
  for (Operation &op : module.getOps()) {
    if (!isa<WeightOp, KVCacheOp>(op))
      continue;
    StringRef name = SymbolTable::getSymbolName(&op).getValue();
    if (!used.contains(name))
      return op.emitOpError() << "@" << name << " is not used by @step";
  }
  return success();
}

LogicalResult Checker::run() {
  return failure(failed(findConfig()) || failed(checkStep()) ||
                 failed(checkLayers()) || failed(checkNorms()) ||
                 failed(checkUses()));
}
