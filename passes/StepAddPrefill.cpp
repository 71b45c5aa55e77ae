//===- StepAddPrefill.cpp - From the step to the entry for blocks ---------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each step.func gets a twin for blocks of tokens. A phase of tiles becomes
// two: one prepares the activation of each token, split by token; the next
// multiplies all of them with each tile. The epilogues are the same ops.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPADDPREFILL
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {

class Prefill {
public:
  Prefill(ModuleOp module, int64_t block)
      : module(module), symbols(module), b(module.getContext()), block(block) {}
  LogicalResult run();

private:
  void addFunction(step::FuncOp func);
  void addTables(step::FuncOp func, OpBuilder &at);
  void addPhase(step::PhaseOp phase);
  void addPrologue(step::PhaseOp phase, OpBuilder &at, bool tokens);
  void addTiles(step::PhaseOp phase, OpBuilder &at);
  /// A run may be cloned twice, and with it the arguments of its body.
  step::TilesOp cloneTiles(step::TilesOp tiles, OpBuilder &at) {
    IRMapping copy(map);
    return cast<step::TilesOp>(at.clone(*tiles, copy));
  }
  void addHead(step::PhaseOp phase);
  void addCacheWrite(step::AttentionOp attention);
  void addAttention(step::AttentionOp attention, OpBuilder &at);
  step::PhaseOp makePhase(const Twine &name, step::PhaseOp like,
                          step::PhaseKind kind,
                          step::WantedAttr when = step::WantedAttr());
  void barrier(Location loc) {
    step::BarrierOp::create(b, loc, IntegerAttr(), IntegerAttr());
  }

  void giveRows(StringRef slot);
  FlatSymbolRefAttr slot(StringRef name, int64_t bytes, int64_t row = 0);
  FlatSymbolRefAttr rows(StringRef name, int64_t elements) {
    return slot(name, rowBytes(elements * 4) * block, rowBytes(elements * 4));
  }
  /// Rows are a line longer than whole vectors of 128 floats, lest the same
  /// column of all tokens meet in few sets of a cache.
  static int64_t rowBytes(int64_t bytes) {
    return ceilDiv(bytes, 512) * 512 + 64;
  }
  static std::string twin(StringRef name) {
    return name == "step" ? "prefill" : (name + ".prefill").str();
  }

  ModuleOp module;
  SymbolTable symbols;
  OpBuilder b;
  int64_t block;
  IRMapping map;
  /// Activations of the phase at hand and the slots of their blocks.
  SmallVector<std::pair<Value, FlatSymbolRefAttr>> blocks;
  /// Rope tables, from the values that hold them in the step.
  DenseMap<Value, FlatSymbolRefAttr> tables;
};

} // namespace

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr Prefill::slot(StringRef name, int64_t bytes, int64_t row) {
  auto op = symbols.lookup<step::SlotOp>(name);
  auto size = step::AffineAttr::get(b.getContext(), bytes, 0);
  if (!op) {
    OpBuilder at(*module.getOps<step::FuncOp>().begin());
    op = step::SlotOp::create(at, NameLoc::get(b.getStringAttr(name)), name,
                              size, row ? b.getI64IntegerAttr(row) : nullptr,
                              IntegerAttr());
    symbols.insert(op);
  } else if (op.getSize().getConstant() < bytes) {
    op.setSizeAttr(size);
    if (row)
      op.setRow(row);
  }
  return FlatSymbolRefAttr::get(b.getContext(), name);
}

/// A value between phases is there for each token.
void Prefill::giveRows(StringRef name) {
  auto op = symbols.lookup<step::SlotOp>(name);
  if (op.getRow())
    return;
  int64_t row = rowBytes(op.getSize().getConstant());
  op.setRow(row);
  op.setSizeAttr(step::AffineAttr::get(b.getContext(), row * block, 0));
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

step::PhaseOp Prefill::makePhase(const Twine &name, step::PhaseOp like,
                                 step::PhaseKind kind, step::WantedAttr when) {
  auto phase = step::PhaseOp::create(
      b, like.getLoc(), b.getStringAttr(name),
      step::PhaseKindAttr::get(b.getContext(), kind), when);
  phase.getBody().emplaceBlock();
  return phase;
}

/// What prepares the activation: in place, or for each token into a block.
void Prefill::addPrologue(step::PhaseOp phase, OpBuilder &at, bool tokens) {
  for (Operation &op : phase.getBody().front()) {
    if (isa<step::TilesOp>(op) || (tokens && isa<step::StreamOp>(op)))
      continue;
    if (auto fold = dyn_cast<step::FoldOp>(op)) {
      map.map(fold.getOutput(),
              step::ViewOp::create(at, op.getLoc(), fold.getOutput().getType(),
                                   "block.attention", /*last=*/false));
      continue;
    }
    Operation *copy = at.clone(op, map);
    if (auto view = dyn_cast<step::ViewOp>(copy)) {
      giveRows(view.getSlot());
      view.setLast(!tokens);
    }
  }
  if (!tokens)
    return;
  for (auto tiles : phase.getBody().getOps<step::TilesOp>()) {
    Value activation = tiles.getActivation();
    if (llvm::is_contained(llvm::make_first_range(blocks), activation))
      continue;
    auto [size, group] = step::activationShape(activation.getType());
    bool bf16 = step::isBF16Activation(activation.getType());
    std::string name = "block.activations";
    if (!blocks.empty())
      name += "." + std::to_string(blocks.size());
    FlatSymbolRefAttr to =
        slot(name, ceilDiv(block, kQuad) * blockQuadBytes(size, group, bf16));
    step::PutOp::create(at, phase.getLoc(), map.lookup(activation), to);
    blocks.push_back({activation, to});
  }
}

void Prefill::addTiles(step::PhaseOp phase, OpBuilder &at) {
  for (auto [activation, from] : blocks) {
    auto [size, group] = step::activationShape(activation.getType());
    Type element = step::isBF16Activation(activation.getType())
                       ? Type(b.getBF16Type())
                       : b.getI8Type();
    map.map(activation,
            step::BlockViewOp::create(
                at, phase.getLoc(),
                step::BlockType::get(b.getContext(), size, group, element),
                from));
  }
  for (Operation &op : phase.getBody().front()) {
    if (isa<step::StreamOp>(op))
      at.clone(op, map);
    auto tiles = dyn_cast<step::TilesOp>(op);
    if (!tiles)
      continue;
    step::TilesOp copy = cloneTiles(tiles, at);
    copy.walk([&](Operation *inner) {
      if (auto residual = dyn_cast<step::ResidualOp>(inner))
        giveRows(residual.getSlot());
      if (auto store = dyn_cast<step::StoreOp>(inner))
        giveRows(store.getSlot());
      auto rotate = dyn_cast<step::RotateOp>(inner);
      if (!rotate)
        return;
      OpBuilder before(inner);
      rotate.getTableMutable().assign(step::ViewOp::create(
          before, inner->getLoc(), rotate.getTable().getType(),
          tables.lookup(rotate.getTable()).getValue(), /*last=*/false));
    });
  }
}

/// What a step's attention does first for a quantized cache is a phase here:
/// all tokens are in the cache before any is read.
void Prefill::addCacheWrite(step::AttentionOp attention) {
  auto like = attention->getParentOfType<step::PhaseOp>();
  giveRows(*attention.getKey());
  giveRows(*attention.getValue());
  step::PhaseOp phase =
      makePhase("cache", like, step::PhaseKind::attention);
  OpBuilder at = OpBuilder::atBlockEnd(&phase.getBody().front());
  auto tokens = step::TokensOp::create(at, attention.getLoc());
  at.setInsertionPointToEnd(&tokens.getBody().emplaceBlock());
  step::CacheWriteOp::create(at, attention.getLoc(), attention.getKeyAttr(),
                             attention.getValueAttr(),
                             attention.getCacheAttr());
  barrier(attention.getLoc());
}

void Prefill::addAttention(step::AttentionOp attention, OpBuilder &at) {
  giveRows(attention.getQuery());
  int64_t width =
      int64_t(attention.getHeads()) * attention.getCache().getHeadDim();
  step::BlockAttentionOp::create(
      at, attention.getLoc(), attention.getQueryAttr(),
      rows("block.attention", width), attention.getCacheAttr(),
      attention.getHeadsAttr(), attention.getWindowAttr(),
      attention.getScaleAttr(), attention.getChunkAttr());
}

/// The head computes the logits of the last token, or of all.
void Prefill::addHead(step::PhaseOp phase) {
  auto when = [&](step::Wanted wanted) {
    return step::WantedAttr::get(b.getContext(), wanted);
  };
  step::PhaseOp last = makePhase(phase.getName(), phase, phase.getKind(),
                                 when(step::Wanted::last));
  OpBuilder at = OpBuilder::atBlockEnd(&last.getBody().front());
  addPrologue(phase, at, /*tokens=*/false);
  for (auto tiles : phase.getBody().getOps<step::TilesOp>())
    cloneTiles(tiles, at);
}

void Prefill::addPhase(step::PhaseOp phase) {
  auto &ops = phase.getBody();
  blocks.clear();
  bool tiles = !ops.getOps<step::TilesOp>().empty();
  bool head = phase.walk([](step::LogitsOp) { return WalkResult::interrupt(); })
                  .wasInterrupted();
  step::WantedAttr when;
  if (head) {
    addHead(phase);
    when = step::WantedAttr::get(b.getContext(), step::Wanted::all);
  }
  if (tiles) {
    step::PhaseOp in =
        makePhase(phase.getName() + ".in", phase, step::PhaseKind::other, when);
    OpBuilder at = OpBuilder::atBlockEnd(&in.getBody().front());
    auto tokens = step::TokensOp::create(at, phase.getLoc());
    at.setInsertionPointToEnd(&tokens.getBody().emplaceBlock());
    addPrologue(phase, at, /*tokens=*/true);
    barrier(phase.getLoc());
    step::PhaseOp out = makePhase(phase.getName() + (head ? ".all" : ""), phase,
                                  phase.getKind(), when);
    at = OpBuilder::atBlockEnd(&out.getBody().front());
    addTiles(phase, at);
    return;
  }
  for (auto attention : ops.getOps<step::AttentionOp>())
    if (attention.getKey())
      addCacheWrite(attention);
  step::PhaseOp copy = makePhase(phase.getName(), phase, phase.getKind());
  OpBuilder at = OpBuilder::atBlockEnd(&copy.getBody().front());
  for (Operation &op : ops.front()) {
    if (auto attention = dyn_cast<step::AttentionOp>(op)) {
      addAttention(attention, at);
      continue;
    }
    auto tokens = step::TokensOp::create(at, op.getLoc());
    OpBuilder inner = OpBuilder::atBlockEnd(&tokens.getBody().emplaceBlock());
    if (auto embed = dyn_cast<step::EmbedOp>(inner.clone(op, map)))
      giveRows(embed.getSlot());
  }
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The rope tables of each token, before the first layer.
void Prefill::addTables(step::FuncOp func, OpBuilder &at) {
  auto ropes = func.getBody().getOps<step::RopeTableOp>();
  if (ropes.empty())
    return;
  auto phase =
      step::PhaseOp::create(at, func.getLoc(), "rope", step::PhaseKind::other);
  at.setInsertionPointToEnd(&phase.getBody().emplaceBlock());
  auto tokens = step::TokensOp::create(at, func.getLoc());
  OpBuilder inner = OpBuilder::atBlockEnd(&tokens.getBody().emplaceBlock());
  for (auto [i, table] : llvm::enumerate(ropes)) {
    FlatSymbolRefAttr to = rows("block.rope." + std::to_string(i),
                                table.getTable().getType().getSize());
    inner.clone(*table, map);
    step::KeepOp::create(inner, table.getLoc(), map.lookup(table.getTable()),
                         to);
    tables[table.getTable()] = to;
  }
}

void Prefill::addFunction(step::FuncOp func) {
  OpBuilder at(func);
  at.setInsertionPointAfter(func);
  auto copy = step::FuncOp::create(at, func.getLoc(), twin(func.getSymName()),
                                   func.getEntry());
  b.setInsertionPointToStart(&copy.getBody().emplaceBlock());
  map.clear();
  if (func.getEntry()) {
    OpBuilder first = b;
    addTables(func, first);
  }
  for (Operation &op : func.getBody().front()) {
    if (auto phase = dyn_cast<step::PhaseOp>(op)) {
      addPhase(phase);
    } else if (auto call = dyn_cast<step::CallOp>(op)) {
      step::CallOp::create(
          b, op.getLoc(),
          FlatSymbolRefAttr::get(b.getContext(), twin(call.getCallee())),
          ValueRange{}, call.getLayerAttr(), call.getWeightsAttr(),
          call.getKvAttr());
    } else if (isa<step::BarrierOp>(op)) {
      // Behind the embedding each thread goes on with its own tokens.
      auto before = dyn_cast_or_null<step::PhaseOp>(op.getPrevNode());
      if (!before || before.getBody().getOps<step::EmbedOp>().empty())
        barrier(op.getLoc());
    } else if (isa<step::ReturnOp>(op)) {
      step::ReturnOp::create(b, op.getLoc());
    }
  }
}

LogicalResult Prefill::run() {
  SmallVector<step::FuncOp> functions(module.getOps<step::FuncOp>());
  // Which table a layer's argument stands for is the same in all calls.
  step::FuncOp entry;
  for (step::FuncOp func : functions)
    if (func.getEntry())
      entry = func;
  if (!entry)
    return module.emitError() << "has no entry";
  int64_t number = 0;
  DenseMap<Value, FlatSymbolRefAttr> byValue;
  for (auto table : entry.getBody().getOps<step::RopeTableOp>())
    byValue[table.getTable()] = FlatSymbolRefAttr::get(
        b.getContext(), "block.rope." + std::to_string(number++));
  for (auto call : entry.getBody().getOps<step::CallOp>()) {
    auto callee = symbols.lookup<step::FuncOp>(call.getCallee());
    for (auto [argument, operand] : llvm::zip(
             callee.getBody().front().getArguments(), call.getOperands())) {
      FlatSymbolRefAttr &table = tables[argument];
      if (table && table != byValue[operand])
        return call.emitOpError()
               << "passes another rope table than an earlier call";
      table = byValue[operand];
    }
  }
  for (step::FuncOp func : functions)
    addFunction(func);
  return success();
}

namespace {
struct StepAddPrefill : sparkc::impl::StepAddPrefillBase<StepAddPrefill> {
  void runOnOperation() override {
    auto configs = getOperation().getOps<spark::ConfigOp>();
    int64_t block =
        configs.empty() ? 1 : int64_t((*configs.begin()).getPrefillBlock());
    if (block > 1 && failed(Prefill(getOperation(), block).run()))
      signalPassFailure();
  }
};
} // namespace
