//===- EpilogueRuns.cpp - From epilogues on tensors to runs of tiles ------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/EpilogueRuns.h"

using namespace mlir;
using namespace sparkc;

namespace {

/// Rows [base, base + rows) of a segment.
struct Rows {
  int64_t segment, base, rows;
};

class Analysis {
public:
  Analysis(spark::FusedLinearOp linear, const EpilogueContext &context)
      : linear(linear), context(context) {}

  /// Appends the runs that compute `value`. `heads` divides the value where its
  /// consumer wants whole heads.
  LogicalResult expand(Value value, int64_t heads,
                       SmallVectorImpl<EpilogueRun> &runs);

private:
  FailureOr<Rows> rowsOf(Value value);
  LogicalResult expandRope(spark::RopeOp op,
                           SmallVectorImpl<EpilogueRun> &runs);
  LogicalResult expandGeglu(spark::GegluOp op,
                            SmallVectorImpl<EpilogueRun> &runs);
  LogicalResult expandAdd(spark::AddOp op, SmallVectorImpl<EpilogueRun> &runs);

  step::LanesAttr lanes(int64_t heads, int64_t width, int64_t stride,
                        int64_t base) {
    return step::LanesAttr::get(linear.getContext(), heads, width, stride,
                                base);
  }

  spark::FusedLinearOp linear;
  const EpilogueContext &context;
};

} // namespace

FailureOr<Rows> Analysis::rowsOf(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    if (arg.getOwner() == &linear.getEpilogue().front())
      return Rows{arg.getArgNumber(), 0, features(value)};
  if (auto split = value.getDefiningOp<spark::SplitOp>()) {
    FailureOr<Rows> whole = rowsOf(split.getInput());
    if (failed(whole))
      return failure();
    int64_t base = whole->base;
    for (Value part : split.getOutputs()) {
      if (part == value)
        return Rows{whole->segment, base, features(value)};
      base += features(part);
    }
  }
  return linear.emitError() << "cannot be scheduled: its epilogue applies "
                            << "something other than split before an "
                            << "operation on rows";
}

/// Accumulators as they are.
static SmallVector<Value> identity(OpBuilder &, Location, ValueRange tiles,
                                   Value) {
  return SmallVector<Value>(tiles);
}

LogicalResult Analysis::expandRope(spark::RopeOp op,
                                   SmallVectorImpl<EpilogueRun> &runs) {
  FailureOr<Rows> rows = rowsOf(op.getInput());
  if (failed(rows))
    return failure();
  int64_t heads = op.getHeads(), dim = rows->rows / heads;
  int64_t width = op.getRope().getWidth(), half = width / 2;
  Value table = context.tableOf(op.getRope());

  EpilogueRun pairs(op.getLoc());
  pairs.heads = heads, pairs.width = half, pairs.stride = dim;
  pairs.segmentA = pairs.segmentB = rows->segment;
  pairs.baseA = rows->base, pairs.baseB = rows->base + half;
  pairs.lanes = {lanes(heads, half, dim, 0), lanes(heads, half, dim, half)};
  pairs.compute = [table](OpBuilder &b, Location loc, ValueRange tiles,
                          Value j) {
    auto rotate = step::RotateOp::create(b, loc, tiles[0], tiles[1], table, j);
    return SmallVector<Value>(rotate.getResults());
  };
  runs.push_back(pairs);
  if (width == dim)
    return success();

  EpilogueRun rest(op.getLoc());
  rest.heads = heads, rest.width = dim - width, rest.stride = dim;
  rest.segmentA = rows->segment, rest.baseA = rows->base + width;
  rest.lanes = {lanes(heads, dim - width, dim, width)};
  rest.compute = identity;
  runs.push_back(rest);
  return success();
}

LogicalResult Analysis::expandGeglu(spark::GegluOp op,
                                    SmallVectorImpl<EpilogueRun> &runs) {
  FailureOr<Rows> gate = rowsOf(op.getGate()), up = rowsOf(op.getUp());
  if (failed(gate) || failed(up))
    return failure();
  EpilogueRun run(op.getLoc());
  run.width = run.stride = gate->rows;
  run.segmentA = gate->segment, run.baseA = gate->base;
  run.segmentB = up->segment, run.baseB = up->base;
  run.lanes = {lanes(1, gate->rows, gate->rows, 0)};
  run.compute = [](OpBuilder &b, Location loc, ValueRange tiles, Value) {
    return SmallVector<Value>{
        step::GegluOp::create(b, loc, tiles[0], tiles[1])};
  };
  runs.push_back(run);
  return success();
}

LogicalResult Analysis::expandAdd(spark::AddOp op,
                                  SmallVectorImpl<EpilogueRun> &runs) {
  FlatSymbolRefAttr slot = context.slotOf(op.getResidual());
  if (!slot)
    return failure();
  SmallVector<EpilogueRun> inner;
  if (failed(expand(op.getUpdate(), /*heads=*/1, inner)))
    return failure();
  for (EpilogueRun &run : inner) {
    auto compute = run.compute;
    auto lanes = run.lanes;
    run.loc = op.getLoc();
    run.compute = [=](OpBuilder &b, Location loc, ValueRange tiles, Value j) {
      SmallVector<Value> values = compute(b, loc, tiles, j);
      for (auto [value, lane] : llvm::zip(values, lanes))
        value = step::ResidualOp::create(b, loc, value, slot, j, lane);
      return values;
    };
    runs.push_back(run);
  }
  return success();
}

LogicalResult Analysis::expand(Value value, int64_t heads,
                               SmallVectorImpl<EpilogueRun> &runs) {
  if (auto rope = value.getDefiningOp<spark::RopeOp>())
    return expandRope(rope, runs);
  if (auto geglu = value.getDefiningOp<spark::GegluOp>())
    return expandGeglu(geglu, runs);
  if (auto add = value.getDefiningOp<spark::AddOp>())
    return expandAdd(add, runs);
  FailureOr<Rows> rows = rowsOf(value);
  if (failed(rows))
    return failure();
  EpilogueRun run(value.getLoc());
  run.heads = heads;
  run.width = run.stride = rows->rows / heads;
  run.segmentA = rows->segment, run.baseA = rows->base;
  run.lanes = {lanes(heads, run.width, run.width, 0)};
  run.compute = identity;
  runs.push_back(run);
  return success();
}

FailureOr<SmallVector<EpilogueRun>>
sparkc::analyzeEpilogue(spark::FusedLinearOp linear,
                        const EpilogueContext &context) {
  Analysis analysis(linear, context);
  SmallVector<EpilogueRun> runs;
  auto leave = [&](Operation *sink, unsigned operand, int64_t heads) {
    size_t before = runs.size();
    if (failed(analysis.expand(sink->getOperand(operand), heads, runs)))
      return failure();
    for (EpilogueRun &run : llvm::drop_begin(runs, before)) {
      run.sink = sink;
      run.operand = operand;
    }
    return success();
  };
  // What leaves first lies first: queries, then keys and values, then others.
  spark::YieldOp yield = linear.getEpilogueYield();
  if (yield.getNumOperands() && failed(leave(yield, 0, 1)))
    return failure();
  for (auto write : linear.getEpilogue().getOps<spark::KVWriteOp>()) {
    auto cache = SymbolTable::lookupNearestSymbolFrom<spark::KVCacheOp>(
        write, write.getCacheAttr());
    for (unsigned operand : {0, 1})
      if (failed(leave(write, operand, cache.getHeads())))
        return failure();
  }
  for (unsigned i = 1; i < yield.getNumOperands(); ++i)
    if (failed(leave(yield, i, 1)))
      return failure();
  std::stable_partition(runs.begin(), runs.end(),
                        [](const EpilogueRun &run) { return run.paired(); });
  return runs;
}
