//===- SparkRotate.cpp - Rotations that cost nothing at run time ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/TiedHead.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

namespace sparkc {
#define GEN_PASS_DEF_SPARKROTATE
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {

/// One run over a module. The residual stream is followed from the embedding
/// to the head; whatever meets it must be known.
class Rotator {
public:
  Rotator(ModuleOp module, uint64_t seed)
      : module(module), symbols(module), context(module.getContext()),
        seed(seed) {}
  LogicalResult run();

private:
  LogicalResult checkWeights();
  LogicalResult checkReaders();
  LogicalResult followStream(Value x);
  LogicalResult foldNorm(RmsNormOp norm);
  LogicalResult rotateHeads(LayerOp layer);

  WeightOp weight(FlatSymbolRefAttr name) {
    return symbols.lookup<WeightOp>(name.getAttr());
  }
  /// Adds to what is done to a weight. What concerns rows stands in front, as it
  /// is done first.
  void transform(WeightOp weight, Attribute step) {
    SmallVector<Attribute> steps;
    if (ArrayAttr old = weight.getTransformsAttr())
      llvm::append_range(steps, old);
    steps.insert(isa<RotateOutAttr>(step)
                     ? steps.end()
                     : llvm::find_if(steps, llvm::IsaPred<RotateOutAttr>),
                 step);
    weight.setTransformsAttr(ArrayAttr::get(context, steps));
  }
  Attribute rotateStreamIn(Value x) {
    return RotateInAttr::get(context, features(x), seed);
  }

  ModuleOp module;
  SymbolTable symbols;
  MLIRContext *context;
  uint64_t seed;
};

struct SparkRotate : sparkc::impl::SparkRotateBase<SparkRotate> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(Rotator(getOperation(), seed).run()))
      signalPassFailure();
  }
};

} // namespace

LogicalResult Rotator::checkWeights() {
  for (auto weight : module.getOps<WeightOp>()) {
    if (weight.getTransforms())
      return weight.emitOpError() << "is transformed already";
    StringRef dtype = weight.getSource().getDtype();
    if (dtype != "F32" && dtype != "F16" && dtype != "BF16")
      return weight.emitOpError()
             << "holds codes (" << dtype
             << "), which cannot be rotated: they would have to be quantized "
                "anew";
  }
  return success();
}

/// A weight is rotated for the one op that reads it.
LogicalResult Rotator::checkReaders() {
  llvm::DenseMap<Attribute, Operation *> readers;
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    FlatSymbolRefAttr name;
    if (auto linear = dyn_cast<LinearOp>(op))
      name = linear.getWeightAttr();
    else if (auto embed = dyn_cast<EmbedOp>(op))
      name = embed.getWeightAttr();
    else
      return WalkResult::advance();
    auto [entry, isNew] = readers.try_emplace(name, op);
    if (isNew)
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError()
                              << "reads " << name << ", as another op does";
    diag.attachNote(entry->second->getLoc()) << "the other op is here";
    return diag;
  });
  return failure(result.wasInterrupted());
}

LogicalResult Rotator::foldNorm(RmsNormOp norm) {
  for (Operation *user : norm->getUsers()) {
    auto linear = dyn_cast<LinearOp>(user);
    if (!linear)
      return user->emitOpError() << "reads a norm whose weights only a "
                                    "spark.linear could take over";
    WeightOp matrix = weight(linear.getWeightAttr());
    transform(matrix, FoldAttr::get(context, norm.getWeightAttr()));
    transform(matrix, rotateStreamIn(norm.getInput()));
  }
  WeightOp factors = weight(norm.getWeightAttr());
  if (!factors.isFolded())
    transform(factors, FoldedAttr::get(context));
  return success();
}

LogicalResult Rotator::followStream(Value x) {
  for (OpOperand &use : x.getUses()) {
    Operation *user = use.getOwner();
    auto unknown = [&]() -> LogicalResult {
      return user->emitOpError() << "meets the residual stream in a way that a "
                                    "rotation does not pass";
    };
    LogicalResult followed =
        llvm::TypeSwitch<Operation *, LogicalResult>(user)
            .Case([&](RmsNormOp norm) { return foldNorm(norm); })
            .Case([&](LayerOp layer) {
              if (failed(rotateHeads(layer)))
                return failure();
              return followStream(layer.getBody().getArgument(0));
            })
            .Case([&](YieldOp yield) -> LogicalResult {
              auto layer = dyn_cast<LayerOp>(yield->getParentOp());
              return layer ? followStream(layer.getOutput()) : unknown();
            })
            .Case([&](AddOp add) -> LogicalResult {
              auto linear = add.getUpdate().getDefiningOp<LinearOp>();
              if (add.getResidual() != x || !linear ||
                  !add.getUpdate().hasOneUse())
                return unknown();
              transform(weight(linear.getWeightAttr()),
                        RotateOutAttr::get(context, features(x), seed, 0));
              return followStream(add.getOutput());
            })
            .Default([&](Operation *) { return unknown(); });
    if (failed(followed))
      return failure();
  }
  return success();
}

/// The only user of a value, of one kind; else null.
template <typename Op> static Op onlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

LogicalResult Rotator::rotateHeads(LayerOp layer) {
  // Seeds of layers follow that of the stream.
  const uint64_t own = seed + 1 + layer.getIndex();
  WalkResult result = layer.walk([&](Operation *op) -> WalkResult {
    if (auto write = dyn_cast<KVWriteOp>(op)) {
      Value value = write.getValue();
      auto split = value.getDefiningOp<SplitOp>();
      auto linear =
          split ? split.getInput().getDefiningOp<LinearOp>() : LinearOp();
      if (!linear || split.getOutputs().back() != value || !value.hasOneUse() ||
          !split.getInput().hasOneUse())
        return op->emitOpError() << "expects values that are the last rows of "
                                    "a spark.linear, and nothing else";
      auto cache = symbols.lookup<KVCacheOp>(write.getCache());
      transform(weight(linear.getWeightAttr()),
                RotateOutAttr::get(context, cache.getHeadDim(), own,
                                   features(split.getInput()) -
                                       features(value)));
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      auto gate = onlyUser<HeadGateOp>(attention.getOutput());
      auto out = gate ? onlyUser<LinearOp>(gate.getOutput()) : LinearOp();
      if (!out || gate.getInput() != attention.getOutput())
        return op->emitOpError() << "expects a spark.head_gate of its heads "
                                    "and a spark.linear of that, and nothing "
                                    "else";
      auto cache = symbols.lookup<KVCacheOp>(attention.getCache());
      transform(weight(out.getWeightAttr()),
                RotateInAttr::get(context, cache.getHeadDim(), own));
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Rotator::run() {
  if (failed(checkWeights()))
    return failure();
  SmallVector<EmbedOp> embeds;
  module.walk([&](EmbedOp embed) { embeds.push_back(embed); });
  for (EmbedOp embed : embeds)
    for (LinearOp head : tiedHeads(embed))
      symbols.insert(untie(head, weight(embed.getWeightAttr())));
  if (failed(checkReaders()))
    return failure();
  for (EmbedOp embed : embeds) {
    transform(weight(embed.getWeightAttr()),
              rotateStreamIn(embed.getOutput()));
    if (failed(followStream(embed.getOutput())))
      return failure();
  }
  return success();
}
