//===- SparkToStep.cpp - From the fused model to its schedule -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/GridOf.h"
#include "codegen/weights/PackedLayout.h"
#include "mlir/IR/Builders.h"
#include "passes/EpilogueRuns.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_SPARKTOSTEP
#include "passes/Passes.h.inc"
} // namespace sparkc

/// "q_k_v_proj" of "layers.3.q_k_v_proj".
static StringRef lastName(StringRef name) {
  return name.substr(name.rfind('.') + 1);
}

namespace {
/// How a weight lies in its pack; weights that are alike can share one.
struct Stored {
  Layout layout = Layout::Tile16F32;
  int64_t group = 0;
  bool operator==(const Stored &o) const {
    return layout == o.layout && group == o.group;
  }
  bool operator!=(const Stored &o) const { return !(*this == o); }
};
} // namespace

/// What a weight's type asks for.
static FailureOr<Stored> storedAs(spark::WeightOp weight) {
  Type element = weight.getTensorType().getElementType();
  if (spark::GridAttr grid = weight.getGrid()) {
    GridSpec spec = gridOf(grid);
    return Stored{spec.layout(), spec.group};
  }
  if (element.isF32())
    return Stored{Layout::Tile16F32};
  if (element.isBF16())
    return Stored{Layout::Tile16BF16};
  return weight.emitError()
         << "cannot be packed as " << element << "; run spark-quantize first";
}

namespace {

/// What holds a tensor between phases.
struct Held {
  FlatSymbolRefAttr slot;
  /// Set where the slot holds the records of an attention, not yet folded.
  spark::AttentionOp attention;
};

/// A function of the step dialect under construction: the entry or a layer's.
struct Function {
  OpBuilder builder;
  step::FuncOp op;
  /// Payload offset of its weights; offsets in its body are relative.
  int64_t base = 0;
  /// Ropes in order of first use, and the values that hold their tables.
  SmallVector<std::pair<spark::RopeAttr, Value>> tables;
  bool entry = false;
};

class Scheduler {
public:
  Scheduler(ModuleOp module) : module(module), symbols(module) {}
  LogicalResult run();

private:
  MLIRContext *context() { return module.getContext(); }

  spark::WeightOp weight(StringAttr name) {
    return symbols.lookup<spark::WeightOp>(name);
  }

  // Memory.
  FlatSymbolRefAttr slot(StringRef name, step::AffineAttr size);
  FlatSymbolRefAttr vectorSlot(StringRef name, int64_t elements);
  FailureOr<FlatSymbolRefAttr> slotOf(Operation *user, Value value);
  FlatSymbolRefAttr resultSlot(StringRef phase, unsigned index, Value result,
                               Operation *op, Value yielded);
  step::AffineAttr affine(int64_t a, int64_t b = 0) {
    return step::AffineAttr::get(context(), a, b);
  }
  int64_t addPack(StringRef name, const PackedMatrix &matrix,
                  ArrayRef<FlatSymbolRefAttr> weights, Location loc);
  void placeCaches();
  step::CacheAttr cacheAttr(spark::KVCacheOp cache);
  FlatSymbolRefAttr tokenSlot(step::KVKind kind, spark::KVCacheOp cache);

  // Schedule.
  Value table(Function &fn, spark::RopeAttr rope);
  LogicalResult scheduleOp(Function &fn, Operation &op);
  LogicalResult scheduleLinear(Function &fn, spark::FusedLinearOp op);
  LogicalResult scheduleAttention(Function &fn, spark::AttentionOp op);
  LogicalResult scheduleLayer(Function &entry, spark::LayerOp layer);
  LogicalResult scheduleEmbed(Function &entry, spark::EmbedOp op);
  FailureOr<Value> prologue(Function &fn, OpBuilder &b,
                            spark::FusedLinearOp op);
  LogicalResult emitTiles(Function &fn, OpBuilder &b, spark::FusedLinearOp op,
                          StringRef phase, Value activation);
  LogicalResult emitSink(OpBuilder &b, const EpilogueRun &run, Value value,
                         step::LanesAttr lanes, Value j,
                         ArrayRef<FlatSymbolRefAttr> results);
  /// What inputs of quantized matrices are rounded to.
  Type quantizedElement() {
    OpBuilder b(context());
    return config.hasBF16Activations() ? Type(b.getBF16Type()) : b.getI8Type();
  }
  step::PhaseOp phase(Function &fn, StringRef name, step::PhaseKind kind,
                      Location loc, OpBuilder &inner);
  void barrier(Function &fn, Location loc) {
    step::BarrierOp::create(fn.builder, loc, IntegerAttr(), IntegerAttr());
  }
  LogicalResult checkPosition(Operation *op, Value position) {
    if (position == graph.getArgument(1))
      return success();
    return op->emitError() << "cannot be scheduled at a position other than "
                              "the step's";
  }

  ModuleOp module;
  SymbolTable symbols;
  spark::ConfigOp config;
  func::FuncOp graph;
  int64_t payload = 0, streamed = 0, linearWeights = 0;
  DenseMap<Value, Held> held;
  llvm::StringMap<step::SlotOp> slots;
  llvm::StringMap<std::pair<step::AffineAttr, int64_t>> caches;
  SmallVector<step::FuncOp> layerFunctions;
  /// The embedding op waits for the head's place where they are tied.
  SmallVector<std::pair<step::EmbedOp, StringAttr>> embeds;
  llvm::StringMap<std::pair<int64_t, Stored>> headPacks;
  step::AffineAttr kvBytes;
  int64_t fullLayers = 0, ring = 0, capacityMultiple = 16;
  Type kvElement;
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr Scheduler::slot(StringRef name, step::AffineAttr size) {
  auto it = slots.find(name);
  if (it == slots.end()) {
    OpBuilder b(graph);
    auto op = step::SlotOp::create(b, NameLoc::get(b.getStringAttr(name)), name,
                                   size, IntegerAttr(), IntegerAttr());
    it = slots.try_emplace(name, op).first;
  }
  step::SlotOp op = it->second;
  op.setSizeAttr(
      affine(std::max(op.getSize().getConstant(), size.getConstant()),
             std::max(op.getSize().getPerPosition(), size.getPerPosition())));
  return FlatSymbolRefAttr::get(context(), name);
}

FlatSymbolRefAttr Scheduler::vectorSlot(StringRef name, int64_t elements) {
  // A vec is zero up to the next multiple of 128 elements.
  return slot(name, affine((elements + 127) / 128 * 512));
}

FailureOr<FlatSymbolRefAttr> Scheduler::slotOf(Operation *user, Value value) {
  auto it = held.find(value);
  if (it == held.end() || it->second.attention)
    return user->emitError() << "cannot be scheduled: it uses a value that no "
                                "fused linear has stored";
  return it->second.slot;
}

/// Is the value read by anything after `op` in its block?
static bool isReadAfter(Value value, Operation *op) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *top = op->getBlock()->findAncestorOpInBlock(*user);
    return !top || op->isBeforeInBlock(top);
  });
}

/// A residual add writes in place where nothing reads the old value later.
FlatSymbolRefAttr Scheduler::resultSlot(StringRef phase, unsigned index,
                                        Value result, Operation *op,
                                        Value yielded) {
  if (auto add = yielded.getDefiningOp<spark::AddOp>()) {
    Value residual = add.getResidual();
    auto it = held.find(residual);
    bool outerDead = true;
    if (auto arg = dyn_cast<BlockArgument>(residual))
      if (auto layer = dyn_cast<spark::LayerOp>(arg.getOwner()->getParentOp()))
        outerDead = !isReadAfter(layer.getInput(), layer);
    if (it != held.end() && !it->second.attention && outerDead &&
        residual.getParentBlock() == op->getBlock() &&
        !isReadAfter(residual, op))
      return it->second.slot;
  }
  // One slot a role; another where a value that is still read lies in it.
  std::string name = (phase + "." + Twine(index)).str();
  auto busy = [&](StringRef candidate) {
    return llvm::any_of(held, [&](auto &entry) {
      return entry.second.slot.getValue() == candidate &&
             entry.first.getParentBlock() == op->getBlock() &&
             isReadAfter(entry.first, op);
    });
  };
  while (busy(name))
    name += "x";
  return vectorSlot(name, features(result));
}

int64_t Scheduler::addPack(StringRef name, const PackedMatrix &matrix,
                           ArrayRef<FlatSymbolRefAttr> weights, Location loc) {
  OpBuilder b(graph);
  SmallVector<Attribute> runs;
  for (const RowRun &run : matrix.runs)
    runs.push_back(step::RunAttr::get(context(), run.heads, run.width,
                                      run.stride, run.weightA, run.baseA,
                                      run.weightB, run.baseB));
  int64_t offset = payload;
  step::PackOp::create(
      b, loc, b.getStringAttr(name), b.getI64IntegerAttr(offset),
      b.getStringAttr(layoutName(matrix.layout)),
      b.getI64IntegerAttr(matrix.cols), b.getI64IntegerAttr(matrix.group),
      b.getArrayAttr(runs),
      b.getArrayAttr(SmallVector<Attribute>(weights.begin(), weights.end())));
  payload = alignLine(payload + matrix.bytes());
  return offset;
}

step::CacheAttr Scheduler::cacheAttr(spark::KVCacheOp cache) {
  return step::CacheAttr::get(context(), cache.getHeads(), cache.getHeadDim(),
                              cache.getRing(), cache.getElementType());
}

/// What a quantized cache gets is complete only behind the phase of its tiles:
/// attention quantizes it.
FlatSymbolRefAttr Scheduler::tokenSlot(step::KVKind kind,
                                       spark::KVCacheOp cache) {
  return vectorSlot(("token." + step::stringifyKVKind(kind)).str(),
                    int64_t(cache.getHeads()) * int64_t(cache.getHeadDim()));
}

void Scheduler::placeCaches() {
  int64_t a = 0, b = 0;
  for (auto cache : module.getOps<spark::KVCacheOp>()) {
    kvElement = cache.getElementType();
    step::CacheAttr attr = cacheAttr(cache);
    int64_t perPosition =
        attr.getHeads() * (attr.getKeyBytes() + attr.getValueBytes());
    caches[cache.getSymName()] = {affine(a, b), 0};
    if (cache.getRing()) {
      a += alignLine(perPosition * cache.getRing());
      ring = cache.getRing();
    } else {
      b += perPosition;
      ++fullLayers;
    }
  }
  kvBytes = affine(a, b);
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

Value Scheduler::table(Function &fn, spark::RopeAttr rope) {
  for (auto &[attr, value] : fn.tables)
    if (attr == rope)
      return value;
  auto type =
      step::VecType::get(context(), 2 * step::ropePeriod(rope.getWidth()));
  Value value;
  if (fn.entry) {
    OpBuilder::InsertionGuard guard(fn.builder);
    fn.builder.setInsertionPointToStart(&fn.op.getBody().front());
    value = step::RopeTableOp::create(
        fn.builder, NameLoc::get(fn.builder.getStringAttr("rope")), type, rope);
  } else {
    value = fn.op.getBody().front().addArgument(type, fn.op.getLoc());
  }
  fn.tables.push_back({rope, value});
  return value;
}

step::PhaseOp Scheduler::phase(Function &fn, StringRef name,
                               step::PhaseKind kind, Location loc,
                               OpBuilder &inner) {
  auto op = step::PhaseOp::create(fn.builder, loc, name, kind);
  inner.setInsertionPointToStart(&op.getBody().emplaceBlock());
  return op;
}

static void setLayout(step::EmbedOp embed, Layout layout, int64_t group) {
  embed.setLayout(layoutName(layout));
  if (group)
    embed.setGroup(group);
}

LogicalResult Scheduler::scheduleEmbed(Function &entry, spark::EmbedOp op) {
  spark::WeightOp table = weight(op.getWeightAttr().getAttr());
  OpBuilder b(context());
  phase(entry, "embed", step::PhaseKind::other, op.getLoc(), b);
  FlatSymbolRefAttr x = vectorSlot("x", features(op.getOutput()));
  auto embed = step::EmbedOp::create(
      b, op.getLoc(), x, b.getI64IntegerAttr(0), b.getStringAttr(""),
      b.getI64IntegerAttr(features(op.getOutput())), IntegerAttr());
  // A linear on the same weight (a tied head) packs it; else rows of their own.
  bool shared = false;
  module.walk([&](spark::FusedLinearOp linear) {
    shared |= llvm::is_contained(linear.getSegments(), op.getWeightAttr());
  });
  if (shared) {
    embeds.push_back({embed, op.getWeightAttr().getAttr()});
  } else {
    ArrayRef<int64_t> shape = table.getTensorType().getShape();
    PackedMatrix matrix = PackedMatrix::rowMajor(
        table.getTensorType().getElementType().isBF16() ? Layout::RowsBF16
                                                        : Layout::RowsF32,
        shape[0], shape[1]);
    // Rows that a file has in blocks lie in tiles, like any such matrix.
    if (table.getGrid()) {
      FailureOr<Stored> grid = storedAs(table);
      if (failed(grid))
        return failure();
      matrix =
          PackedMatrix::plain(grid->layout, shape[0], shape[1], grid->group);
    }
    embed.setWeight(addPack("rows." + op.getWeight().str(), matrix,
                            op.getWeightAttr(), table.getLoc()));
    setLayout(embed, matrix.layout, matrix.group);
  }
  held[op.getOutput()] = {x, {}};
  barrier(entry, op.getLoc());
  return success();
}

LogicalResult Scheduler::scheduleAttention(Function &fn,
                                           spark::AttentionOp op) {
  if (failed(checkPosition(op, op.getPosition())))
    return failure();
  FailureOr<FlatSymbolRefAttr> query = slotOf(op, op.getQuery());
  if (failed(query))
    return failure();
  auto cache = symbols.lookup<spark::KVCacheOp>(op.getCacheAttr().getAttr());
  int64_t record = 4 * step::partialFloats(cache.getHeadDim()) * op.getHeads();
  int64_t chunk = op.getChunk();
  capacityMultiple = std::max(capacityMultiple, chunk);
  // Full layers: one record a chunk of the capacity.
  step::AffineAttr size =
      op.getWindow()
          ? affine(record * step::maxWindowChunks(op.getWindow(), chunk))
          : affine(0, (record + chunk - 1) / chunk);
  FlatSymbolRefAttr partials = slot("attention", size);
  OpBuilder b(context());
  phase(fn, "attention", step::PhaseKind::attention, op.getLoc(), b);
  FlatSymbolRefAttr key, value;
  if (cacheAttr(cache).isQuantized())
    key = tokenSlot(step::KVKind::key, cache),
    value = tokenSlot(step::KVKind::value, cache);
  step::AttentionOp::create(b, op.getLoc(), *query, partials, cacheAttr(cache),
                            key, value, op.getHeadsAttr(), op.getWindowAttr(),
                            op.getScaleAttr(), op.getChunkAttr());
  held[op.getOutput()] = {partials, op};
  barrier(fn, op.getLoc());
  return success();
}

FailureOr<Value> Scheduler::prologue(Function &fn, OpBuilder &b,
                                     spark::FusedLinearOp op) {
  auto vec = [&](Value v) {
    return step::VecType::get(context(), features(v));
  };
  DenseMap<Value, Value> map;
  for (auto [arg, input] :
       llvm::zip(op.getPrologue().front().getArguments(), op.getInputs())) {
    auto it = held.find(input);
    if (it == held.end())
      return op.emitError() << "cannot be scheduled: it reads a value that no "
                               "phase has stored";
    if (spark::AttentionOp attention = it->second.attention) {
      int64_t headDim = features(arg) / int64_t(attention.getHeads());
      map[arg] = step::FoldOp::create(
          b, attention.getLoc(), vec(arg), it->second.slot,
          attention.getHeadsAttr(), b.getI64IntegerAttr(headDim),
          attention.getWindowAttr(), attention.getChunkAttr());
    } else {
      map[arg] =
          step::ViewOp::create(b, op.getLoc(), vec(arg), it->second.slot);
    }
  }
  for (Operation &inner : op.getPrologue().front().without_terminator()) {
    if (auto norm = dyn_cast<spark::RmsNormOp>(inner)) {
      int64_t offset = addPack(("pack." + norm.getWeight()).str(),
                               PackedMatrix::vector(features(norm.getInput())),
                               norm.getWeightAttr(), norm.getLoc());
      map[norm.getOutput()] = step::RmsNormOp::create(
          b, norm.getLoc(), map[norm.getInput()],
          b.getI64IntegerAttr(offset - fn.base), norm.getEpsAttr());
    } else if (auto gate = dyn_cast<spark::HeadGateOp>(inner)) {
      map[gate.getOutput()] =
          step::HeadGateOp::create(b, gate.getLoc(), vec(gate.getOutput()),
                                   map[gate.getInput()], map[gate.getGate()]);
    } else {
      return inner.emitError() << "cannot be scheduled in a prologue";
    }
  }
  return map[op.getActivation()];
}

LogicalResult Scheduler::emitSink(OpBuilder &b, const EpilogueRun &run,
                                  Value value, step::LanesAttr lanes, Value j,
                                  ArrayRef<FlatSymbolRefAttr> results) {
  if (auto write = dyn_cast<spark::KVWriteOp>(run.sink)) {
    auto cache =
        symbols.lookup<spark::KVCacheOp>(write.getCacheAttr().getAttr());
    auto kind = run.operand ? step::KVKind::value : step::KVKind::key;
    if (cacheAttr(cache).isQuantized())
      step::StoreOp::create(b, write.getLoc(), value, tokenSlot(kind, cache), j,
                            lanes);
    else
      step::KVStoreOp::create(b, write.getLoc(), value, kind, j,
                              cacheAttr(cache), lanes);
    return checkPosition(write, write.getPosition());
  }
  if (!results[run.operand])
    step::LogitsOp::create(b, run.loc, value, j, lanes);
  else
    step::StoreOp::create(b, run.loc, value, results[run.operand], j, lanes);
  return success();
}

/// Packs the segments in the order of their runs, one pack for consecutive runs
/// of one grid, and emits a step.tiles for each run.
LogicalResult Scheduler::emitTiles(Function &fn, OpBuilder &b,
                                   spark::FusedLinearOp op, StringRef phaseName,
                                   Value activation) {
  // Where the results go: logits straight to the host.
  SmallVector<FlatSymbolRefAttr> results;
  for (auto [i, result] : llvm::enumerate(op.getOutputs())) {
    bool logits = llvm::any_of(result.getUsers(), [](Operation *user) {
      return isa<func::ReturnOp>(user);
    });
    results.push_back(logits
                          ? FlatSymbolRefAttr()
                          : resultSlot(phaseName, i, result, op,
                                       op.getEpilogueYield().getValues()[i]));
  }
  bool ok = true;
  EpilogueContext epilogue{
      [&](Value value) -> FlatSymbolRefAttr {
        FailureOr<FlatSymbolRefAttr> slot = slotOf(op, value);
        return succeeded(slot) ? *slot : FlatSymbolRefAttr();
      },
      [&](spark::RopeAttr rope) { return table(fn, rope); }};
  FailureOr<SmallVector<EpilogueRun>> runs = analyzeEpilogue(op, epilogue);
  if (failed(runs))
    return failure();

  SmallVector<FlatSymbolRefAttr> segments(
      op.getSegments().getAsRange<FlatSymbolRefAttr>());
  SmallVector<Stored> grids;
  for (FlatSymbolRefAttr segment : segments) {
    spark::WeightOp w = weight(segment.getAttr());
    FailureOr<Stored> grid = storedAs(w);
    if (failed(grid))
      return failure();
    grids.push_back(*grid);
    linearWeights += w.getTensorType().getNumElements();
  }
  for (const EpilogueRun &run : *runs)
    if (run.paired() && grids[run.segmentA] != grids[run.segmentB])
      return op.emitError()
             << "pairs rows of " << segments[run.segmentA] << " and "
             << segments[run.segmentB] << ", whose grids differ";
  // Segments of one grid share a pack.
  SmallVector<Stored> order;
  for (const EpilogueRun &run : *runs)
    if (!llvm::is_contained(order, grids[run.segmentA]))
      order.push_back(grids[run.segmentA]);

  int64_t cols = features(op.getActivation());
  // One quantized activation serves all grids: in the smallest group.
  int64_t smallest = 0, most = config.getActivationGroup();
  for (const Stored &grid : grids)
    if (grid.group)
      smallest = smallest ? std::min(smallest, grid.group) : grid.group;
  // int8 costs most at the inputs of down_proj and of the head. Finer groups
  // slow prompts down, but of the head's input these have one, unless the logits
  // of all tokens are asked for.
  if (most)
    smallest = std::min(smallest, fn.entry ? most / 2 : most);
  Value quantized;
  if (smallest)
    quantized = step::QuantizeOp::create(
        b, op.getLoc(),
        step::QVecType::get(context(), cols, smallest, quantizedElement()),
        activation);
  for (auto [packIndex, grid] : llvm::enumerate(order)) {
    SmallVector<FlatSymbolRefAttr> packed;
    SmallVector<int> indexOf(segments.size(), -1);
    for (auto [i, segment] : llvm::enumerate(segments))
      if (grids[i] == grid) {
        indexOf[i] = packed.size();
        packed.push_back(segment);
      }
    std::vector<RowRun> rowRuns;
    for (const EpilogueRun &run : *runs)
      if (grids[run.segmentA] == grid) {
        RowRun row;
        row.heads = run.heads, row.width = run.width, row.stride = run.stride;
        row.weightA = indexOf[run.segmentA], row.baseA = run.baseA;
        if (run.paired())
          row.weightB = indexOf[run.segmentB], row.baseB = run.baseB;
        rowRuns.push_back(row);
      }
    PackedMatrix matrix =
        PackedMatrix::tiled(grid.layout, cols, grid.group, rowRuns);
    std::string name = "pack." + segments.front().getValue().str();
    if (packIndex)
      name += "." + std::to_string(packIndex);
    int64_t offset = addPack(name, matrix, packed, op.getLoc());
    if (packed.size() == 1 && rowRuns.size() == 1)
      headPacks[packed[0].getValue()] = {offset, grid};

    for (const EpilogueRun &run : *runs) {
      if (grids[run.segmentA] != grid)
        continue;
      auto tiles = step::TilesOp::create(
          b, run.loc, grid.group ? quantized : activation, b.getI64IntegerAttr(offset - fn.base),
          b.getStringAttr(layoutName(grid.layout)), b.getI64IntegerAttr(cols),
          b.getI64IntegerAttr(grid.group), b.getI64IntegerAttr(run.units()),
          run.paired() ? b.getUnitAttr() : UnitAttr(), StringAttr(), IntegerAttr());
      offset += run.units() * (run.paired() ? 2 : 1) * matrix.tileBytes();
      Block &body = tiles.getBody().emplaceBlock();
      auto tile = VectorType::get({16}, b.getF32Type());
      for (int i = 0; i < (run.paired() ? 2 : 1); ++i)
        body.addArgument(tile, run.loc);
      Value j = body.addArgument(b.getIndexType(), run.loc);
      OpBuilder inner = OpBuilder::atBlockBegin(&body);
      SmallVector<Value> values =
          run.compute(inner, run.loc, body.getArguments().drop_back(), j);
      for (auto [value, lanes] : llvm::zip(values, run.lanes))
        ok &= succeeded(emitSink(inner, run, value, lanes, j, results));
    }
  }
  for (auto [result, slot] : llvm::zip(op.getOutputs(), results))
    if (slot)
      held[result] = {slot, {}};
  return success(ok);
}

LogicalResult Scheduler::scheduleLinear(Function &fn, spark::FusedLinearOp op) {
  StringRef name =
      fn.entry
          ? "head"
          : lastName(cast<FlatSymbolRefAttr>(op.getSegments()[0]).getValue());
  OpBuilder b(context());
  step::PhaseOp phaseOp =
      phase(fn, name, step::PhaseKind::linear, op.getLoc(), b);
  int64_t begin = payload;
  FailureOr<Value> activation = prologue(fn, b, op);
  if (failed(activation) || failed(emitTiles(fn, b, op, name, *activation)))
    return failure();
  OpBuilder front = OpBuilder::atBlockBegin(&phaseOp.getBody().front());
  step::StreamOp::create(front, op.getLoc(),
                         front.getI64IntegerAttr(begin - fn.base),
                         front.getI64IntegerAttr(payload - begin));
  streamed += payload - begin;
  barrier(fn, op.getLoc());
  return success();
}

LogicalResult Scheduler::scheduleOp(Function &fn, Operation &op) {
  if (auto linear = dyn_cast<spark::FusedLinearOp>(op))
    return scheduleLinear(fn, linear);
  if (auto attention = dyn_cast<spark::AttentionOp>(op))
    return scheduleAttention(fn, attention);
  return op.emitError() << "'" << op.getName()
                        << "' cannot be scheduled outside a fused linear; run "
                           "the fusion passes first";
}

/// Layers of one signature share one function.
LogicalResult Scheduler::scheduleLayer(Function &entry, spark::LayerOp layer) {
  FailureOr<FlatSymbolRefAttr> input = slotOf(layer, layer.getInput());
  if (failed(input))
    return failure();
  Block &body = layer.getBody().front();
  bool sliding = false;
  spark::KVCacheOp cache;
  for (auto attention : body.getOps<spark::AttentionOp>()) {
    sliding |= attention.getWindow() != 0;
    cache =
        symbols.lookup<spark::KVCacheOp>(attention.getCacheAttr().getAttr());
  }
  std::string name = sliding ? "layer.sliding" : "layer.full";

  Location loc = NameLoc::get(StringAttr::get(context(), name));
  OpBuilder atEntry(entry.op);
  Function fn{OpBuilder(context()),
              step::FuncOp::create(atEntry, loc, name, /*entry=*/false),
              payload,
              {},
              false};
  fn.builder.setInsertionPointToStart(&fn.op.getBody().emplaceBlock());
  held[body.getArgument(0)] = {*input, {}};
  for (Operation &op : body.without_terminator())
    if (failed(scheduleOp(fn, op)))
      return failure();
  step::ReturnOp::create(fn.builder, loc);
  Value output = cast<spark::YieldOp>(body.getTerminator()).getValues()[0];
  FailureOr<FlatSymbolRefAttr> result = slotOf(layer, output);
  if (failed(result))
    return failure();
  held[layer.getOutput()] = {*result, {}};

  step::FuncOp callee;
  for (step::FuncOp known : layerFunctions)
    if (OperationEquivalence::isRegionEquivalentTo(
            &known.getBody(), &fn.op.getBody(),
            OperationEquivalence::IgnoreLocations))
      callee = known;
  if (callee) {
    fn.op.erase();
  } else {
    std::string unique = name;
    for (int i = 1; symbols.lookup(unique); ++i)
      unique = name + "." + std::to_string(i);
    fn.op.setSymName(unique);
    symbols.insert(fn.op);
    layerFunctions.push_back(callee = fn.op);
  }
  SmallVector<Value> tables;
  for (auto &[rope, value] : fn.tables)
    tables.push_back(table(entry, rope));
  step::AffineAttr kv = cache ? caches[cache.getSymName()].first : affine(0);
  step::CallOp::create(entry.builder, layer.getLoc(),
                       FlatSymbolRefAttr::get(callee.getSymNameAttr()), tables,
                       layer.getIndexAttr(),
                       entry.builder.getI64IntegerAttr(fn.base), kv);
  return success();
}

LogicalResult Scheduler::run() {
  auto configs = module.getOps<spark::ConfigOp>();
  graph = symbols.lookup<func::FuncOp>("step");
  if (configs.empty() || !graph)
    return module.emitError() << "expects a spark.config and a function @step";
  config = *configs.begin();
  placeCaches();

  OpBuilder b(graph);
  symbols.remove(graph);
  Location loc = graph.getLoc();
  Function entry{OpBuilder(context()),
                 step::FuncOp::create(b, loc, "step", /*entry=*/true),
                 0,
                 {},
                 true};
  entry.builder.setInsertionPointToStart(&entry.op.getBody().emplaceBlock());
  for (Operation &op : graph.getBody().front().without_terminator()) {
    LogicalResult done = isa<spark::EmbedOp>(op)
                             ? scheduleEmbed(entry, cast<spark::EmbedOp>(op))
                         : isa<spark::LayerOp>(op)
                             ? scheduleLayer(entry, cast<spark::LayerOp>(op))
                             : scheduleOp(entry, op);
    if (failed(done))
      return failure();
  }
  step::ReturnOp::create(entry.builder, loc);
  for (auto &[embed, name] : embeds) {
    auto it = headPacks.find(name.getValue());
    if (it == headPacks.end())
      return embed.emitError() << "reads @" << name.getValue()
                               << ", which the head does not pack alone";
    embed.setWeight(it->second.first);
    setLayout(embed, it->second.second.layout, it->second.second.group);
  }
  step::DescriptorOp::create(
      b, loc, kvBytes, step::AffineAttr(), b.getI64IntegerAttr(payload),
      b.getI64IntegerAttr(streamed), b.getI64IntegerAttr(linearWeights),
      b.getI64IntegerAttr(fullLayers), b.getI64IntegerAttr(ring),
      b.getI64IntegerAttr(capacityMultiple), b.getI64IntegerAttr(0),
      b.getStringAttr(!kvElement || kvElement.isF16() ? "f16"
                      : kvElement.isF32()             ? "f32"
                                                      : "q8"),
      ArrayAttr());
  WalkResult quantized =
      module.walk([](step::QuantizeOp) { return WalkResult::interrupt(); });
  if (!quantized.wasInterrupted())
    config.removeActivationsAttr();
  graph.erase();
  for (auto cache :
       llvm::make_early_inc_range(module.getOps<spark::KVCacheOp>()))
    cache.erase();
  return success();
}

namespace {
struct SparkToStep : sparkc::impl::SparkToStepBase<SparkToStep> {
  void runOnOperation() override {
    if (failed(Scheduler(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
