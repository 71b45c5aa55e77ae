//===- Step.cpp - The step dialect ----------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/step/Step.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace sparkc;
using namespace sparkc::step;

#include "dialect/step/StepDialect.cpp.inc"
#include "dialect/step/StepEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/step/StepTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/step/StepAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/step/StepOps.cpp.inc"

int64_t step::ropePeriod(int64_t width) {
  return std::lcm<int64_t>(width / 2, 16);
}

int64_t step::maxWindowChunks(int64_t window, int64_t chunk) {
  // The first visible key may be the last of its chunk.
  return (window + chunk - 2) / chunk + 1;
}

int64_t step::partialFloats(int64_t headDim) {
  return (headDim + 15) / 16 * 16 + 16;
}

std::pair<int64_t, int64_t> step::activationShape(Type type) {
  if (auto vec = dyn_cast<VecType>(type))
    return {vec.getSize(), 0};
  if (auto qvec = dyn_cast<QVecType>(type))
    return {qvec.getSize(), qvec.getGroup()};
  auto block = cast<BlockType>(type);
  return {block.getSize(), block.getGroup()};
}

bool step::isBF16Activation(Type type) {
  if (auto qvec = dyn_cast<QVecType>(type))
    return qvec.getElement().isBF16();
  auto block = dyn_cast<BlockType>(type);
  return block && block.getElement().isBF16();
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

/// Sizes and counts end here, so that the product of two is an int64_t, and
/// places in memory there.
static constexpr int64_t kLimit = int64_t(1) << 31;
static constexpr int64_t kMemoryLimit = int64_t(1) << 48;

static LogicalResult checkLimit(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> values) {
  for (int64_t value : values)
    if (value < -kLimit || value > kLimit)
      return emitError() << value << " is too large";
  return success();
}

static LogicalResult checkSize(function_ref<InFlightDiagnostic()> emitError,
                               int64_t size) {
  if (size <= 0)
    return emitError() << "expects at least one element, not " << size;
  return checkLimit(emitError, size);
}

static LogicalResult checkGroup(function_ref<InFlightDiagnostic()> emitError,
                                int64_t group) {
  if (group != 16 && group != 32 && group != 64 && group != 128)
    return emitError() << "a group has 16, 32, 64 or 128 elements, not "
                       << group;
  return success();
}

static LogicalResult
checkElement(function_ref<InFlightDiagnostic()> emitError, Type element) {
  if (!element.isSignlessInteger(8) && !element.isBF16())
    return emitError() << "activations in groups are i8 or bf16, not "
                       << element;
  return success();
}

LogicalResult VecType::verify(function_ref<InFlightDiagnostic()> emitError,
                              int64_t size) {
  return checkSize(emitError, size);
}

LogicalResult QVecType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t size, int64_t group, Type element) {
  if (failed(checkSize(emitError, size)) ||
      failed(checkElement(emitError, element)))
    return failure();
  return checkGroup(emitError, group);
}

LogicalResult BlockType::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t size, int64_t group, Type element) {
  if (failed(checkSize(emitError, size)) ||
      failed(checkElement(emitError, element)))
    return failure();
  if (!group && element.isBF16())
    return emitError() << "activations of bf16 are in groups";
  return group ? checkGroup(emitError, group) : success();
}

LogicalResult AffineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t constant, int64_t perPosition) {
  if (constant < 0 || perPosition < 0)
    return emitError() << "bytes cannot be negative: " << constant << " + "
                       << perPosition << " * capacity";
  if (constant > kMemoryLimit || perPosition > kMemoryLimit)
    return emitError() << "more bytes than there are: " << constant << " + "
                       << perPosition << " * capacity";
  return success();
}

LogicalResult LanesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t heads, int64_t width, int64_t stride,
                                int64_t base) {
  if (heads <= 0 || width <= 0)
    return emitError() << "lanes expect positive heads and width, not " << heads
                       << " and " << width;
  if (heads > 1 && stride < width)
    return emitError() << "lanes of width " << width
                       << " overlap at a stride of " << stride;
  if (base < 0)
    return emitError() << "lanes begin at a negative element, " << base;
  return checkLimit(emitError, {heads, width, stride, base});
}

LogicalResult RunAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              int64_t heads, int64_t width, int64_t stride,
                              int64_t, int64_t baseA, int64_t, int64_t baseB) {
  if (heads <= 0 || width <= 0)
    return emitError() << "a run expects positive heads and width, not "
                       << heads << " and " << width;
  if (failed(checkLimit(emitError, {heads, width, stride, baseA, baseB})))
    return failure();
  return checkLimit(emitError, heads * width);
}

LogicalResult CacheAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t heads, int64_t headDim,
                                int64_t positions, Type element) {
  if (heads <= 0 || headDim <= 0 || positions < 0)
    return emitError() << "a cache expects positive heads and head_dim and no "
                          "negative positions, not "
                       << heads << ", " << headDim << " and " << positions;
  if (!element.isF32() && !element.isF16() && !element.isSignlessInteger(8))
    return emitError() << "a cache expects f32, f16 or i8 elements, not "
                       << element;
  if (failed(checkLimit(emitError, {heads, headDim, positions})))
    return failure();
  return checkLimit(emitError, heads * headDim);
}

/// Groups of 16 dims, each of which has a scale of 2 bytes.
static int64_t scaleBytes(CacheAttr cache) {
  return cache.isQuantized() ? (cache.getHeadDim() + 15) / 16 * 2 : 0;
}

static int64_t elementBytes(CacheAttr cache) {
  return cache.getElement().getIntOrFloatBitWidth() / 8;
}

int64_t CacheAttr::getKeyBytes() const {
  return getHeadDim() * elementBytes(*this) + scaleBytes(*this);
}

int64_t CacheAttr::getValueBytes() const {
  return (getHeadDim() + 15) / 16 * 16 * elementBytes(*this) +
         scaleBytes(*this);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static LogicalResult checkNotNegative(Operation *op, StringRef what,
                                      int64_t value) {
  if (value < 0)
    return op->emitOpError() << what << " " << value << " is negative";
  if (value > kMemoryLimit)
    return op->emitOpError() << what << " " << value << " is too large";
  return success();
}

static LogicalResult checkPositive(Operation *op, StringRef what,
                                   int64_t value) {
  if (value <= 0)
    return op->emitOpError() << what << " " << value << " is not positive";
  if (value > kLimit)
    return op->emitOpError() << what << " " << value << " is too large";
  return success();
}

/// Where weights and slots lie: on a line of 64 bytes.
static LogicalResult checkOffset(Operation *op, StringRef what,
                                 int64_t offset) {
  if (offset % 64)
    return op->emitOpError()
           << what << " " << offset << " is not a multiple of 64";
  return checkNotNegative(op, what, offset);
}

/// What all ops of attention expect.
static LogicalResult checkChunks(Operation *op, int64_t window, int64_t chunk) {
  if (chunk <= 0 || chunk % 16)
    return op->emitOpError()
           << "a chunk is a multiple of 16 keys, not " << chunk;
  if (chunk > kLimit || window > kLimit)
    return op->emitOpError() << "a window of " << window << " in chunks of "
                             << chunk << " is too large";
  return checkNotNegative(op, "window", window);
}

static LogicalResult checkHeads(Operation *op, CacheAttr cache, int64_t heads) {
  if (heads <= 0 || heads > kLimit || heads % cache.getHeads())
    return op->emitOpError() << heads << " heads are not a multiple of "
                             << cache.getHeads() << " in the cache";
  return success();
}

LogicalResult PackOp::verify() {
  if (failed(checkOffset(*this, "offset", getOffset())) ||
      failed(checkPositive(*this, "cols", getCols())))
    return failure();
  if (getRuns().empty() || getWeights().empty())
    return emitOpError("expects at least one run and one weight");
  int64_t weights = getWeights().size(), rows = 0;
  for (auto run : getRuns().getAsRange<RunAttr>()) {
    int64_t a = run.getWeightA(), b = run.getWeightB();
    if (a < 0 || a >= weights || b < -1 || b >= weights)
      return emitOpError() << "has a run of weights " << a << " and " << b
                           << ", but lists " << weights;
    rows += run.getHeads() * run.getWidth() * (b < 0 ? 1 : 2);
  }
  if (rows > kMemoryLimit / 4 / int64_t(getCols()))
    return emitOpError() << rows << " rows of " << getCols()
                         << " columns are too many";
  return success();
}

LogicalResult SlotOp::verify() {
  if (std::optional<int64_t> row = getRow())
    if (failed(checkPositive(*this, "row", *row)) ||
        failed(checkOffset(*this, "row", *row)))
      return failure();
  std::optional<int64_t> offset = getOffset();
  return offset ? checkOffset(*this, "offset", *offset) : success();
}

LogicalResult FuncOp::verifyRegions() {
  if (getEntry() && getBody().front().getNumArguments())
    return emitOpError("is an entry, which takes no arguments");
  for (StringRef kept : {"llvm.", "sparkc_", "__tsan"})
    if (getSymName().starts_with(kept))
      return emitOpError("has a name that begins with '")
             << kept << "', which is kept for other functions of an object";
  return success();
}

LogicalResult CallOp::verify() {
  if (failed(checkNotNegative(*this, "layer", getLayer())))
    return failure();
  return checkNotNegative(*this, "weights", getWeights());
}

LogicalResult BarrierOp::verify() {
  std::optional<int64_t> prefetch = getPrefetch(), bytes = getPrefetchBytes();
  if (prefetch.has_value() != bytes.has_value())
    return emitOpError("expects both of prefetch and prefetch_bytes, or none");
  if (!prefetch)
    return success();
  if (failed(checkNotNegative(*this, "prefetch", *prefetch)))
    return failure();
  return checkNotNegative(*this, "prefetch_bytes", *bytes);
}

LogicalResult StreamOp::verify() {
  if (failed(checkNotNegative(*this, "offset", getOffset())))
    return failure();
  return checkNotNegative(*this, "bytes", getBytes());
}

LogicalResult RopeTableOp::verify() {
  int64_t expected = 2 * ropePeriod(getRope().getWidth());
  if (getTable().getType().getSize() != expected)
    return emitOpError() << "expects a table of " << expected
                         << " elements, not " << getTable().getType().getSize();
  return success();
}

LogicalResult QuantizeOp::verify() {
  auto in = getInput().getType();
  auto out = getOutput().getType();
  if (in.getSize() != out.getSize())
    return emitOpError() << "quantizes " << in.getSize() << " elements into "
                         << out.getSize();
  return success();
}

LogicalResult RmsNormOp::verify() {
  llvm::APFloat eps = getEps();
  if (!eps.isFinite() || (eps.isNegative() && !eps.isZero()))
    return emitOpError() << "eps " << eps.convertToDouble()
                         << " is negative or not finite";
  return checkOffset(*this, "weight", getWeight());
}

LogicalResult FoldOp::verify() {
  int64_t heads = getHeads(), headDim = getHeadDim();
  if (failed(checkPositive(*this, "heads", heads)) ||
      failed(checkPositive(*this, "head_dim", headDim)))
    return failure();
  int64_t size = getOutput().getType().getSize();
  if (size % heads || size / heads != headDim)
    return emitOpError() << heads << " heads of " << headDim << " are not "
                         << size << " elements";
  return checkChunks(*this, getWindow(), getChunk());
}

LogicalResult EmbedOp::verify() {
  if (failed(checkPositive(*this, "hidden", getHidden())))
    return failure();
  return checkOffset(*this, "weight", getWeight());
}

LogicalResult RotateOp::verify() {
  int64_t size = getTable().getType().getSize();
  if (size % 32)
    return emitOpError() << "expects a table of as many cosines as sines, each "
                            "a multiple of 16, not "
                         << size << " elements";
  return success();
}

LogicalResult HeadGateOp::verify() {
  if (getInput().getType().getSize() % getGate().getType().getSize())
    return emitOpError() << getInput().getType().getSize()
                         << " elements are not a multiple of "
                         << getGate().getType().getSize() << " gates";
  return success();
}

LogicalResult TilesOp::verifyRegions() {
  Block &block = getBody().front();
  unsigned tiles = getPaired() ? 2 : 1;
  auto tileType = VectorType::get({16}, Float32Type::get(getContext()));
  bool fits = block.getNumArguments() == tiles + 1 &&
              block.getArgument(tiles).getType().isIndex();
  for (unsigned i = 0; fits && i < tiles; ++i)
    fits = block.getArgument(i).getType() == tileType;
  if (!fits)
    return emitOpError() << "its body expects " << tiles << " of " << tileType
                         << " and an index";
  if (failed(checkOffset(*this, "offset", getOffset())) ||
      failed(checkPositive(*this, "cols", getCols())) ||
      failed(checkPositive(*this, "units", getUnits())))
    return failure();
  auto [size, group] = activationShape(getActivation().getType());
  if (!group && getGroup())
    return emitOpError() << "has a group but activations that are not "
                            "quantized";
  if (group && (int64_t(getGroup()) % group || !getGroup()))
    return emitOpError() << "activations in groups of " << group
                         << " do not divide its group of " << getGroup();
  if (size != int64_t(getCols()))
    return emitOpError() << "has " << getCols() << " columns but " << size
                         << " activations";
  return success();
}

LogicalResult AttentionOp::verify() {
  int64_t chunk = getChunk();
  CacheAttr cache = getCache();
  if (failed(checkChunks(*this, getWindow(), chunk)) ||
      failed(checkHeads(*this, cache, getHeads())))
    return failure();
  bool quantized = cache.isQuantized();
  if (bool(getKeyAttr()) != quantized || bool(getValueAttr()) != quantized)
    return emitOpError() << (quantized ? "expects slots of the token's key and "
                                         "value, which it writes to"
                                       : "has slots of the token's key and "
                                         "value, but does not write")
                         << " a cache of " << cache.getElement();
  int64_t needed =
      getWindow() ? maxWindowChunks(getWindow(), chunk) * chunk : 0;
  if (quantized && cache.getPositions() && cache.getPositions() < needed)
    return emitOpError() << "writes to a ring of " << cache.getPositions()
                         << " positions while others read; its window needs "
                         << needed;
  return success();
}

LogicalResult BlockAttentionOp::verify() {
  if (failed(checkChunks(*this, getWindow(), getChunk())))
    return failure();
  return checkHeads(*this, getCache(), getHeads());
}

static LogicalResult checkByToken(Operation *op, bool byToken, Type type) {
  if (byToken && (!activationShape(type).second || isBF16Activation(type)))
    return op->emitOpError() << "lies token by token, as only int8 does, but "
                             << "has " << type;
  return success();
}

LogicalResult PutOp::verify() {
  return checkByToken(*this, getByToken(), getInput().getType());
}

LogicalResult BlockViewOp::verify() {
  return checkByToken(*this, getByToken(), getOutput().getType());
}

LogicalResult CacheWriteOp::verify() {
  if (!getCache().isQuantized())
    return emitOpError() << "is for a cache of i8; epilogues write the others";
  return success();
}

LogicalResult KVStoreOp::verify() {
  if (getCache().isQuantized())
    return emitOpError() << "cannot write to a cache of "
                         << getCache().getElement() << "; step.attention does";
  return success();
}

//===----------------------------------------------------------------------===//
// Uses of symbols
//===----------------------------------------------------------------------===//

static LogicalResult checkSlot(Operation *op, SymbolTableCollection &symbols,
                               FlatSymbolRefAttr name) {
  if (!symbols.lookupNearestSymbolFrom<SlotOp>(op, name))
    return op->emitOpError()
           << "refers to " << name << ", which is no step.slot";
  return success();
}

/// A slot that has a row for each token of a block.
static LogicalResult checkRows(Operation *op, SymbolTableCollection &symbols,
                               FlatSymbolRefAttr name) {
  if (failed(checkSlot(op, symbols, name)))
    return failure();
  if (!symbols.lookupNearestSymbolFrom<SlotOp>(op, name).getRow())
    return op->emitOpError() << "needs rows in " << name << ", which has none";
  return success();
}

LogicalResult ViewOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return getLast() ? checkRows(*this, symbols, getSlotAttr())
                   : checkSlot(*this, symbols, getSlotAttr());
}
LogicalResult PutOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkSlot(*this, symbols, getSlotAttr());
}
LogicalResult KeepOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkRows(*this, symbols, getSlotAttr());
}
LogicalResult CacheWriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(checkRows(*this, symbols, getKeyAttr())))
    return failure();
  return checkRows(*this, symbols, getValueAttr());
}
LogicalResult BlockViewOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkSlot(*this, symbols, getSlotAttr());
}
LogicalResult
BlockAttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(checkRows(*this, symbols, getQueryAttr())))
    return failure();
  return checkRows(*this, symbols, getOutputAttr());
}
LogicalResult FoldOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkSlot(*this, symbols, getSlotAttr());
}
LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkSlot(*this, symbols, getSlotAttr());
}
LogicalResult ResidualOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkSlot(*this, symbols, getSlotAttr());
}
LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkSlot(*this, symbols, getSlotAttr());
}
LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (FlatSymbolRefAttr slot :
       {getQueryAttr(), getPartialsAttr(), getKeyAttr(), getValueAttr()})
    if (slot && failed(checkSlot(*this, symbols, slot)))
      return failure();
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls " << getCalleeAttr()
                         << ", which is no step.func";
  // A recursion would not be static: its barriers could not be counted.
  auto caller = (*this)->getParentOfType<FuncOp>();
  if (!caller.getEntry() || callee.getEntry())
    return emitOpError() << "calls " << getCalleeAttr() << " from @"
                         << caller.getSymName()
                         << "; an entry calls functions that are none";
  if (callee.getBody().front().getArgumentTypes() != getOperands().getTypes())
    return emitOpError() << "its operands do not have the types of the "
                            "arguments of "
                         << getCalleeAttr();
  return success();
}

void StepDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/step/StepTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/step/StepAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/step/StepOps.cpp.inc"
      >();
}
