//===- FusedLinear.cpp - Rewrites of spark.fused_linear -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/FusedLinear.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Whether the value is there before `op` runs.
static bool isBefore(Value value, Operation *op) {
  Block *block = value.getParentBlock();
  Operation *ancestor = block->findAncestorOpInBlock(*op);
  if (!ancestor)
    return false;
  Operation *def = value.getDefiningOp();
  return !def || def->isBeforeInBlock(ancestor);
}

/// Whether all that `op` and its regions read is there before `point` runs.
static bool canMoveBefore(Operation *op, Operation *point) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return llvm::all_of(values,
                      [&](Value value) { return isBefore(value, point); });
}

/// Whether no reader of `op` stands before `point`, which is in its block.
static bool canMoveAfter(Operation *op, Operation *point) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    return !ancestor || point->isBeforeInBlock(ancestor);
  });
}

using OpSet = llvm::SmallPtrSet<Operation *, 8>;

/// Whether an op between the two, `except` aside, has side effects.
static bool effectsBetween(Operation *from, Operation *to,
                           const OpSet &except = {}) {
  for (Operation *op = from->getNextNode(); op != to; op = op->getNextNode())
    if (!except.contains(op) && !isMemoryEffectFree(op))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

Operation *sparkc::getLinear(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<LinearOp, FusedLinearOp>(op) ? op : nullptr;
}

bool sparkc::hasIdentityPrologue(Operation *linear) {
  auto fused = dyn_cast<FusedLinearOp>(linear);
  if (!fused)
    return true;
  return fused.getInputs().size() == 1 &&
         fused.getActivation() == fused.getPrologue().getArgument(0);
}

bool sparkc::isSegmentResult(Value value) {
  Operation *linear = getLinear(value);
  auto fused = dyn_cast_or_null<FusedLinearOp>(linear);
  if (!fused)
    return linear;
  unsigned index = cast<OpResult>(value).getResultNumber();
  Value yielded = fused.getEpilogueYield().getValues()[index];
  return yielded.getParentBlock() == &fused.getEpilogue().front() &&
         isa<BlockArgument>(yielded) && yielded.hasOneUse();
}

/// Whether both read the same activation.
static bool sameActivation(Operation *first, Operation *second) {
  if (hasIdentityPrologue(first) && hasIdentityPrologue(second))
    return first->getOperand(0) == second->getOperand(0);
  auto a = dyn_cast<FusedLinearOp>(first), b = dyn_cast<FusedLinearOp>(second);
  return a && b && a.getInputs() == b.getInputs() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getPrologue(), &b.getPrologue(),
             OperationEquivalence::IgnoreLocations);
}

//===----------------------------------------------------------------------===//
// Promotion
//===----------------------------------------------------------------------===//

/// A fused linear with empty regions.
static FusedLinearOp createFused(RewriterBase &rewriter, Location loc,
                                 TypeRange results, ValueRange inputs,
                                 ArrayRef<Attribute> segments) {
  return FusedLinearOp::create(rewriter, loc, results, inputs,
                               rewriter.getArrayAttr(segments));
}

/// Fills a region with a block of these arguments and ends it with a yield of
/// them.
static void createIdentity(RewriterBase &rewriter, Location loc, Region &region,
                           TypeRange types) {
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Location> locs(types.size(), loc);
  Block *block = rewriter.createBlock(&region, {}, types, locs);
  YieldOp::create(rewriter, loc, block->getArguments());
}

FusedLinearOp sparkc::promote(RewriterBase &rewriter, Operation *linear) {
  if (auto fused = dyn_cast<FusedLinearOp>(linear))
    return fused;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(linear);
  auto plain = cast<LinearOp>(linear);
  Location loc = plain.getLoc();
  auto fused = createFused(rewriter, loc, plain->getResultTypes(),
                           plain.getInput(), {plain.getWeightAttr()});
  createIdentity(rewriter, loc, fused.getPrologue(), plain->getOperandTypes());
  createIdentity(rewriter, loc, fused.getEpilogue(), plain->getResultTypes());
  rewriter.replaceOp(plain, fused);
  return fused;
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// Where the two can be computed together; null where they cannot.
static Operation *placeToJoin(Operation *first, Operation *second) {
  if (first == second || first->getBlock() != second->getBlock())
    return nullptr;
  bool inOrder = first->isBeforeInBlock(second);
  Operation *earlier = inOrder ? first : second;
  Operation *later = inOrder ? second : first;
  bool earlierFree = isMemoryEffectFree(earlier);
  bool laterFree = isMemoryEffectFree(later);
  if (!earlierFree && !laterFree)
    return nullptr;
  bool crossed = effectsBetween(earlier, later);
  if ((laterFree || !crossed) && canMoveBefore(later, earlier))
    return earlier;
  if ((earlierFree || !crossed) && canMoveAfter(earlier, later))
    return later;
  return nullptr;
}

bool sparkc::canJoin(Operation *first, Operation *second) {
  return sameActivation(first, second) && placeToJoin(first, second);
}

FusedLinearOp sparkc::join(RewriterBase &rewriter, Operation *first,
                           Operation *second) {
  bool atFirst = placeToJoin(first, second) == first;
  FusedLinearOp a = promote(rewriter, first), b = promote(rewriter, second);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(atFirst ? a : b);

  SmallVector<Type> types(a->getResultTypes());
  llvm::append_range(types, b->getResultTypes());
  SmallVector<Attribute> segments(a.getSegments().getValue());
  llvm::append_range(segments, b.getSegments());
  Location loc = rewriter.getFusedLoc({a.getLoc(), b.getLoc()});
  FusedLinearOp joined =
      createFused(rewriter, loc, types, a.getInputs(), segments);
  rewriter.inlineRegionBefore(a.getPrologue(), joined.getPrologue(),
                              joined.getPrologue().end());
  rewriter.inlineRegionBefore(a.getEpilogue(), joined.getEpilogue(),
                              joined.getEpilogue().end());

  // The second epilogue goes behind the first.
  Block *epilogue = &joined.getEpilogue().front();
  SmallVector<Value> arguments;
  for (BlockArgument argument : b.getEpilogue().getArguments())
    arguments.push_back(
        epilogue->addArgument(argument.getType(), argument.getLoc()));
  YieldOp yield = joined.getEpilogueYield();
  YieldOp secondYield = b.getEpilogueYield();
  SmallVector<Value> yielded(yield.getValues());
  rewriter.inlineBlockBefore(&b.getEpilogue().front(), yield, arguments);
  llvm::append_range(yielded, secondYield.getValues());
  rewriter.eraseOp(secondYield);
  rewriter.modifyOpInPlace(yield,
                           [&] { yield.getValuesMutable().assign(yielded); });

  rewriter.replaceOp(a, joined.getResults().take_front(a.getNumResults()));
  rewriter.replaceOp(b, joined.getResults().take_back(b.getNumResults()));
  return joined;
}

//===----------------------------------------------------------------------===//
// The prologue
//===----------------------------------------------------------------------===//

bool sparkc::canAbsorbIntoPrologue(Operation *linear, Operation *op) {
  if (!hasIdentityPrologue(linear) || !isMemoryEffectFree(op) ||
      op->getNumResults() != 1 || op->getNumRegions() != 0)
    return false;
  Value result = op->getResult(0);
  // A use by the epilogue would need the value outside as well.
  return linear->getOperand(0) == result &&
         llvm::none_of(result.getUsers(), [&](Operation *user) {
           return linear->isProperAncestor(user);
         });
}

FusedLinearOp sparkc::absorbIntoPrologue(RewriterBase &rewriter,
                                         Operation *linear, Operation *op) {
  FusedLinearOp old = promote(rewriter, linear);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(old);

  llvm::SetVector<Value> inputs;
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      inputs.insert(operand);
  FusedLinearOp fused =
      createFused(rewriter, old.getLoc(), old->getResultTypes(),
                  inputs.getArrayRef(), old.getSegments().getValue());
  rewriter.inlineRegionBefore(old.getEpilogue(), fused.getEpilogue(),
                              fused.getEpilogue().end());

  SmallVector<Location> locs(inputs.size(), op->getLoc());
  Block *block =
      rewriter.createBlock(&fused.getPrologue(), {},
                           ValueRange(inputs.getArrayRef()).getTypes(), locs);
  IRMapping mapping;
  mapping.map(inputs.getArrayRef(), block->getArguments());
  Operation *copy = rewriter.clone(*op, mapping);
  YieldOp::create(rewriter, op->getLoc(), copy->getResults());
  rewriter.replaceOp(old, fused);
  return fused;
}

//===----------------------------------------------------------------------===//
// The epilogue
//===----------------------------------------------------------------------===//

/// How many of the value's readers are among the ops: all, none or some.
enum class Readers { None, Some, All };
static Readers readersAmong(Value value, const OpSet &ops) {
  unsigned inside = llvm::count_if(value.getUses(), [&](OpOperand &use) {
    return ops.contains(use.getOwner());
  });
  if (inside == 0)
    return Readers::None;
  return inside == static_cast<unsigned>(llvm::range_size(value.getUses()))
             ? Readers::All
             : Readers::Some;
}

bool sparkc::canAbsorbIntoEpilogue(Operation *linear,
                                   ArrayRef<Operation *> ops) {
  OpSet set(ops.begin(), ops.end());
  Operation *previous = linear;
  for (Operation *op : ops) {
    if (op->getBlock() != linear->getBlock() || op->getNumRegions() != 0 ||
        !previous->isBeforeInBlock(op))
      return false;
    previous = op;
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def != linear && !set.contains(def) && !isBefore(operand, linear))
        return false;
    }
    for (Value result : op->getResults())
      if (readersAmong(result, set) == Readers::Some)
        return false;
    if (!isMemoryEffectFree(op) && effectsBetween(linear, op, set))
      return false;
  }
  bool reads = false;
  for (Value result : linear->getResults()) {
    Readers readers = readersAmong(result, set);
    if (readers == Readers::Some)
      return false;
    reads |= readers == Readers::All;
  }
  return reads;
}

FusedLinearOp sparkc::absorbIntoEpilogue(RewriterBase &rewriter,
                                         Operation *linear,
                                         ArrayRef<Operation *> ops) {
  FusedLinearOp old = promote(rewriter, linear);
  OpSet set(ops.begin(), ops.end());

  // What leaves the new one, by the values that stand for it now.
  SmallVector<Value> leaving;
  bool first = true;
  for (Value result : old.getResults()) {
    if (readersAmong(result, set) == Readers::None) {
      leaving.push_back(result);
    } else if (std::exchange(first, false)) {
      for (Operation *op : ops)
        for (Value own : op->getResults())
          if (!own.use_empty() && readersAmong(own, set) == Readers::None)
            leaving.push_back(own);
    }
  }

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(old);
  FusedLinearOp fused =
      createFused(rewriter, old.getLoc(), ValueRange(leaving).getTypes(),
                  old.getInputs(), old.getSegments().getValue());
  rewriter.inlineRegionBefore(old.getPrologue(), fused.getPrologue(),
                              fused.getPrologue().end());
  rewriter.inlineRegionBefore(old.getEpilogue(), fused.getEpilogue(),
                              fused.getEpilogue().end());

  // Readers outside turn to the new results; what is inside, to the values
  // that the old epilogue gave.
  YieldOp yield = fused.getEpilogueYield();
  SmallVector<Value> inner(yield.getValues());
  SmallVector<Value> yielded;
  for (auto [value, result] : llvm::zip(leaving, fused.getResults())) {
    auto oldResult = value.getDefiningOp() == old.getOperation()
                         ? cast<OpResult>(value)
                         : OpResult();
    yielded.push_back(oldResult ? inner[oldResult.getResultNumber()] : value);
    rewriter.replaceAllUsesWith(value, result);
  }
  for (Operation *op : ops)
    rewriter.moveOpBefore(op, yield);
  rewriter.modifyOpInPlace(yield,
                           [&] { yield.getValuesMutable().assign(yielded); });
  rewriter.replaceOp(old, inner);
  return fused;
}
