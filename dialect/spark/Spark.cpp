//===- Spark.cpp - The spark dialect --------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/spark/Spark.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

#include "dialect/spark/SparkDialect.cpp.inc"
#include "dialect/spark/SparkEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static ParseResult parseKeyword(AsmParser &parser, std::string &dtype) {
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  dtype = keyword.str();
  return success();
}

static void printKeyword(AsmPrinter &printer, StringRef dtype) {
  printer << dtype;
}

/// Elements and bytes of a block of a source type; none where unknown.
static std::optional<std::pair<int64_t, int64_t>> sourceBlock(StringRef dtype) {
  using Block = std::optional<std::pair<int64_t, int64_t>>;
  return llvm::StringSwitch<Block>(dtype)
      .Case("F32", Block({1, 4}))
      .Cases({"F16", "BF16"}, Block({1, 2}))
      .Case("Q4_0", Block({32, 18}))
      .Case("Q4_1", Block({32, 20}))
      .Case("Q5_0", Block({32, 22}))
      .Case("Q5_1", Block({32, 24}))
      .Case("Q8_0", Block({32, 34}))
      .Case("Q4_K", Block({256, 144}))
      .Case("Q5_K", Block({256, 176}))
      .Case("Q6_K", Block({256, 210}))
      .Cases({"AWQ4", "GPTQ4", "GPTQ4_V2"}, Block({8, 4}))
      .Case("I32", Block({1, 4}))
      .Cases({"C4_32", "C5_32", "C6_32", "C8_32"}, Block({32, 35}))
      .Cases({"C4_64", "C5_64", "C6_64", "C8_64"}, Block({64, 67}))
      .Cases({"C4_128", "C5_128", "C6_128", "C8_128"}, Block({128, 131}))
      .Default(std::nullopt);
}

LogicalResult SourceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringAttr file, StringRef dtype,
                                 uint64_t offset, uint64_t bytes,
                                 uint64_t group, ArrayAttr parts) {
  if (!sourceBlock(dtype))
    return emitError() << "unknown source type '" << dtype
                       << "'; expected F32, F16 or BF16, a quantized type of "
                          "GGUF, AWQ or GPTQ, or codes (C4_64)";
  bool hasParts = dtype == "AWQ4" || dtype.starts_with("GPTQ4");
  if (hasParts != (group != 0) || hasParts != bool(parts))
    return emitError() << "AWQ and GPTQ sources alone have a group and the "
                          "places of their scales and zero points";
  if (hasParts) {
    if (group != 32 && group != 64 && group != 128)
      return emitError() << "a group has 32, 64 or 128 columns, not " << group;
    auto is = [&](unsigned i, StringRef type) {
      auto part = dyn_cast<SourceAttr>(parts[i]);
      return part && part.getDtype() == type;
    };
    if (parts.size() != 2 || !is(0, "F16") || !is(1, "I32"))
      return emitError() << "expects an F16 source of scales and an I32 source "
                            "of zero points";
  }
  if (offset + bytes < offset)
    return emitError() << "source span overflows: offset " << offset
                       << ", bytes " << bytes;
  return success();
}

LogicalResult GridAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               unsigned bits, unsigned group, bool symmetric,
                               GridForm form) {
  if (form == GridForm::zero) {
    if (bits != 4 && bits != 5 && bits != 6 && bits != 8)
      return emitError() << "a grid has 4, 5, 6 or 8 bits, not " << bits;
    if (group != 32 && group != 64 && group != 128)
      return emitError() << "a group has 32, 64 or 128 columns, not " << group;
    return success();
  }
  if (symmetric)
    return emitError() << "only grids with zero points are symmetric";
  bool isSuper = form == GridForm::super;
  if (isSuper ? bits != 6 : bits != 4 && bits != 5)
    return emitError() << "a grid of the form " << stringifyGridForm(form)
                       << " has " << (isSuper ? "6" : "4 or 5")
                       << " bits, not " << bits;
  if (group != (isSuper ? 16 : 32))
    return emitError() << "a grid of the form " << stringifyGridForm(form)
                       << " has groups of " << (isSuper ? 16 : 32)
                       << " columns, not " << group;
  return success();
}

LogicalResult
RotateInAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                     uint64_t size, uint64_t seed) {
  return size ? success() : emitError() << "a rotation has a size, not 0";
}

LogicalResult
RotateOutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      uint64_t size, uint64_t seed, uint64_t first) {
  return RotateInAttr::verify(emitError, size, seed);
}

Attribute RopeAttr::parse(AsmParser &parser, Type) {
  double theta = 0;
  int64_t width = 0;
  if (parser.parseLess() || parser.parseKeyword("theta") ||
      parser.parseEqual() || parser.parseFloat(theta) || parser.parseComma() ||
      parser.parseKeyword("width") || parser.parseEqual() ||
      parser.parseInteger(width) || parser.parseGreater())
    return {};
  return parser.getChecked<RopeAttr>(parser.getContext(), APFloat(theta), width);
}

void RopeAttr::print(AsmPrinter &printer) const {
  printer << "<theta = ";
  printer.printFloat(getTheta());
  printer << ", width = " << getWidth() << ">";
}

LogicalResult RopeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               APFloat theta, int64_t width) {
  if (!theta.isFinite() || theta.isNegative() || theta.isZero())
    return emitError() << "rope theta must be positive";
  if (width <= 0 || width % 2)
    return emitError() << "rotary width must be even and positive, not "
                       << width;
  return success();
}

#define GET_ATTRDEF_CLASSES
#include "dialect/spark/SparkAttrs.cpp.inc"

//===----------------------------------------------------------------------===//
// Module level
//===----------------------------------------------------------------------===//

std::string ConfigOp::getSchemeInWords() {
  std::string words = getScheme().str();
  if (std::optional<StringRef> activations = getActivations())
    words += ", " + activations->str() + " activations";
  return words;
}

LogicalResult ConfigOp::verify() {
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"vocab", getVocab()},
        {"hidden", getHidden()},
        {"intermediate", getIntermediate()},
        {"layers", getLayers()},
        {"heads", getHeads()},
        {"kv_heads", getKvHeads()},
        {"head_dim", getHeadDim()},
        {"max_context", getMaxContext()},
        {"context", getContext()},
        {"prefill_block", getPrefillBlock()}})
    if (value <= 0)
      return emitOpError() << "'" << name << "' must be positive, not "
                           << value;
  if (getContext() > getMaxContext())
    return emitOpError() << "context (" << getContext()
                         << ") exceeds max_context (" << getMaxContext() << ")";
  if (getPrefillGemm() && *getPrefillGemm() != "onednn")
    return emitOpError() << "'prefill_gemm' must be \"onednn\", not \""
                         << *getPrefillGemm() << "\"";
  if (getActivations() && !hasBF16Activations() && !getActivationGroup())
    return emitOpError() << "'activations' must be \"bf16\", \"int8:g32\" or "
                            "\"int8:g64\", not \""
                         << *getActivations() << "\"";
  if (getWindowAttr().getInt() < 0)
    return emitOpError() << "'window' must not be negative, not "
                         << getWindowAttr().getInt();
  if (getHeads() % getKvHeads())
    return emitOpError() << "heads (" << getHeads()
                         << ") must be a multiple of kv_heads ("
                         << getKvHeads() << ")";
  return success();
}

/// What a transform wants of the weight's shape and source.
static LogicalResult verifyTransform(WeightOp weight, Attribute transform) {
  RankedTensorType type = weight.getTensorType();
  if (isa<FoldedAttr>(transform) != (type.getRank() == 1))
    return weight.emitOpError()
           << "matrices are rotated and have norms folded into them, vectors "
              "are #spark.folded; "
           << type << " is not for " << transform;
  StringRef dtype = weight.getSource().getDtype();
  if (dtype != "F32" && dtype != "F16" && dtype != "BF16")
    return weight.emitOpError()
           << "holds codes (" << dtype << "), which no transform leaves on "
                                          "their grid";
  if (auto in = dyn_cast<RotateInAttr>(transform))
    if (type.getDimSize(1) % in.getSize())
      return weight.emitOpError()
             << "has " << type.getDimSize(1)
             << " columns, which are not whole runs of " << in.getSize();
  if (auto out = dyn_cast<RotateOutAttr>(transform))
    if (uint64_t(type.getDimSize(0)) <= out.getFirst() ||
        (type.getDimSize(0) - out.getFirst()) % out.getSize())
      return weight.emitOpError()
             << "has " << type.getDimSize(0) << " rows, which from row "
             << out.getFirst() << " on are not whole runs of "
             << out.getSize();
  return success();
}

LogicalResult WeightOp::verify() {
  RankedTensorType type = getTensorType();
  if (!type.hasStaticShape() || type.getRank() < 1 ||
      type.getRank() > 2 || llvm::is_contained(type.getShape(), 0))
    return emitOpError() << "expects a static vector or matrix, not "
                         << type;
  Type element = type.getElementType();
  if (GridAttr grid = getGrid()) {
    if (!element.isSignlessInteger(grid.getBits()))
      return emitOpError() << "has a grid of " << grid.getBits()
                           << " bits but elements of type " << element;
    if (type.getRank() != 2)
      return emitOpError() << "only matrices have a grid";
  } else if (!element.isF32() && !element.isBF16() && !element.isF16()) {
    return emitOpError() << "expects f32, bf16, f16 or a grid, not " << element;
  }
  if (getSource().getDtype() == "I32")
    return emitOpError("has a source of I32, which only zero points are");
  auto [blockElements, blockBytes] = *sourceBlock(getSource().getDtype());
  if (type.getShape().back() % blockElements)
    return emitOpError() << "has rows of " << type.getShape().back()
                         << " elements, which are not whole blocks of "
                         << getSource().getDtype() << " (" << blockElements
                         << ")";
  int64_t elements = 1, expected = 0;
  for (int64_t dim : type.getShape())
    if (llvm::MulOverflow(elements, dim, elements))
      return emitOpError() << "is too large: " << type;
  if (llvm::MulOverflow(elements / blockElements, blockBytes, expected))
    return emitOpError() << "is too large: " << type;
  if (getSource().getBytes() != uint64_t(expected))
    return emitOpError() << "expects a source of " << expected
                         << " bytes, not " << getSource().getBytes();
  if (ArrayAttr transforms = getTransformsAttr())
    for (Attribute transform : transforms)
      if (failed(verifyTransform(*this, transform)))
        return failure();
  uint64_t group = getSource().getGroup();
  if (!group)
    return success();
  if (type.getRank() != 2 || type.getDimSize(0) % 8 ||
      type.getDimSize(1) % group)
    return emitOpError() << "expects a matrix of whole eights of rows and "
                            "groups of "
                         << group << " columns, not " << type;
  if (getSource().getScales().getBytes() != elements / group * 2 ||
      getSource().getZeros().getBytes() != elements / group / 2)
    return emitOpError() << "expects " << elements / group * 2
                         << " bytes of scales and " << elements / group / 2
                         << " of zero points";
  return success();
}

LogicalResult AssetOp::verify() {
  if (!llvm::is_contained({"tokenizer", "tokenizer_config",
                           "generation_config", "chat_template"},
                          getKind()))
    return emitOpError() << "unknown kind '" << getKind() << "'";
  return success();
}

LogicalResult KVCacheOp::verify() {
  Type element = getElementType();
  if (!element.isF32() && !element.isF16() && !element.isSignlessInteger(8))
    return emitOpError() << "expects f32, f16 or i8 elements, not " << element;
  for (IntegerAttr size : {getHeadsAttr(), getHeadDimAttr()})
    if (size.getInt() <= 0)
      return emitOpError() << "expects positive heads and head_dim, not "
                           << size.getInt();
  if (getRingAttr().getInt() < 0)
    return emitOpError() << "ring must not be negative, not "
                         << getRingAttr().getInt();
  return success();
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult LayerOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != TypeRange(getInput().getType()))
    return emitOpError() << "its body expects one argument of type "
                         << getInput().getType();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().getTypes() != getOperation()->getResultTypes())
    return emitOpError() << "its body must yield one value of type "
                         << getOutput().getType();
  return success();
}

YieldOp FusedLinearOp::getPrologueYield() {
  return cast<YieldOp>(getPrologue().front().getTerminator());
}
Value FusedLinearOp::getActivation() {
  return getPrologueYield().getValues()[0];
}
YieldOp FusedLinearOp::getEpilogueYield() {
  return cast<YieldOp>(getEpilogue().front().getTerminator());
}

LogicalResult FusedLinearOp::verifyRegions() {
  if (getPrologue().front().getArgumentTypes() != getInputs().getTypes())
    return emitOpError() << "the prologue's arguments must have the types of "
                            "the inputs";
  auto prologue = dyn_cast<YieldOp>(getPrologue().front().getTerminator());
  if (!prologue || prologue.getValues().size() != 1)
    return emitOpError() << "the prologue must yield one activation";
  for (Operation &op : getPrologue().front())
    if (!isMemoryEffectFree(&op))
      return op.emitOpError() << "has side effects, which a prologue must not";
  if (getSegments().empty())
    return emitOpError() << "expects at least one segment";
  if (getEpilogue().front().getNumArguments() != getSegments().size())
    return emitOpError() << "expects one epilogue argument for each of its "
                         << getSegments().size() << " segments, not "
                         << getEpilogue().front().getNumArguments();
  auto epilogue = dyn_cast<YieldOp>(getEpilogue().front().getTerminator());
  if (!epilogue ||
      epilogue.getValues().getTypes() != getOperation()->getResultTypes())
    return emitOpError() << "the epilogue must yield the results";
  return success();
}

//===----------------------------------------------------------------------===//
// Uses of weights and caches
//===----------------------------------------------------------------------===//

/// Finds the weight and checks its shape.
static LogicalResult checkWeight(Operation *op, SymbolTableCollection &symbols,
                                 FlatSymbolRefAttr name,
                                 ArrayRef<int64_t> shape) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(op, name);
  if (!weight)
    return op->emitOpError() << "refers to " << name
                             << ", which is no spark.weight";
  ArrayRef<int64_t> actual = weight.getTensorType().getShape();
  if (actual != shape) {
    InFlightDiagnostic diag = op->emitOpError() << "expects " << name << " to be [";
    llvm::interleaveComma(shape, diag);
    diag << "], not [";
    llvm::interleaveComma(actual, diag);
    diag << "]";
    diag.attachNote(weight.getLoc()) << "the weight is declared here";
    return diag;
  }
  return success();
}

static int64_t tokens(Value value) {
  return cast<RankedTensorType>(value.getType()).getDimSize(0);
}

static LogicalResult checkTokens(Operation *op, int64_t expected, Value value) {
  if (tokens(value) == expected)
    return success();
  return op->emitOpError() << "expects " << expected << " tokens, not "
                           << tokens(value);
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  ArrayAttr transforms = getTransformsAttr();
  if (!transforms)
    return success();
  for (Attribute transform : transforms) {
    auto fold = dyn_cast<FoldAttr>(transform);
    if (!fold)
      continue;
    if (failed(checkWeight(*this, symbols, fold.getNorm(),
                           {getTensorType().getDimSize(1)})))
      return failure();
    auto norm = symbols.lookupNearestSymbolFrom<WeightOp>(*this, fold.getNorm());
    if (!norm.isFolded())
      return emitOpError() << "folds " << fold.getNorm()
                           << ", which is no #spark.folded: it would count twice";
  }
  return success();
}

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  if (!weight)
    return emitOpError() << "refers to " << getWeightAttr()
                         << ", which is no spark.weight";
  return checkWeight(*this, symbols, getWeightAttr(),
                     {weight.getTensorType().getDimSize(0), features(getOutput())});
}

LogicalResult RmsNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkWeight(*this, symbols, getWeightAttr(), {features(getInput())});
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkWeight(*this, symbols, getWeightAttr(),
                     {features(getOutput()), features(getInput())});
}

LogicalResult FusedLinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  int64_t cols = features(getActivation());
  for (BlockArgument rows : getEpilogue().getArguments())
    if (failed(checkTokens(*this, tokens(getActivation()), rows)))
      return failure();
  for (auto [segment, arg] : llvm::zip(getSegments().getAsRange<FlatSymbolRefAttr>(),
                                       getEpilogue().front().getArguments()))
    if (failed(checkWeight(*this, symbols, segment, {features(arg), cols})))
      return failure();
  return success();
}

/// Finds the cache; null after an error.
static KVCacheOp findCache(Operation *op, SymbolTableCollection &symbols,
                           FlatSymbolRefAttr name) {
  auto cache = symbols.lookupNearestSymbolFrom<KVCacheOp>(op, name);
  if (!cache)
    op->emitOpError() << "refers to " << name << ", which is no spark.kv_cache";
  return cache;
}

LogicalResult KVWriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KVCacheOp cache = findCache(*this, symbols, getCacheAttr());
  if (!cache)
    return failure();
  int64_t expected = cache.getHeads() * cache.getHeadDim();
  for (Value value : {getKey(), getValue()})
    if (features(value) != expected)
      return emitOpError() << "expects " << expected
                           << " features (heads x head_dim of the cache), not "
                           << features(value);
  return success();
}

void KVWriteOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KVCacheOp cache = findCache(*this, symbols, getCacheAttr());
  if (!cache)
    return failure();
  if (features(getQuery()) != int64_t(getHeads() * cache.getHeadDim()))
    return emitOpError() << "expects " << getHeads() * cache.getHeadDim()
                         << " features (heads x head_dim), not "
                         << features(getQuery());
  if (getHeads() % cache.getHeads())
    return emitOpError() << "heads (" << getHeads()
                         << ") must be a multiple of the cache's ("
                         << cache.getHeads() << ")";
  if (getWindow() && cache.getRing() &&
      int64_t(cache.getRing()) < int64_t(getWindow()))
    return emitOpError() << "has a window of " << getWindow()
                         << " but its cache a ring of " << cache.getRing();
  if (!getWindow() && cache.getRing())
    return emitOpError() << "sees all keys but its cache is a ring";
  if (cache.getRing() % getChunk())
    return emitOpError() << "the cache's ring (" << cache.getRing()
                         << ") must be a multiple of the chunk (" << getChunk()
                         << ")";
  return success();
}

void AttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get());
}

LogicalResult AttentionOp::verify() {
  if (getWindowAttr().getInt() < 0)
    return emitOpError() << "window must not be negative, not "
                         << getWindowAttr().getInt();
  int64_t chunk = getChunkAttr().getInt();
  if (chunk <= 0 || chunk % 16)
    return emitOpError() << "chunk must be a positive multiple of 16, not "
                         << chunk;
  int64_t heads = getHeadsAttr().getInt();
  if (heads <= 0 || features(getQuery()) % heads)
    return emitOpError() << features(getQuery())
                         << " features are not a multiple of " << heads
                         << " heads";
  return success();
}

LogicalResult EmbedOp::verify() {
  return checkTokens(*this, getTokens().getType().getDimSize(0), getOutput());
}

LogicalResult LinearOp::verify() {
  return checkTokens(*this, tokens(getInput()), getOutput());
}

LogicalResult RmsNormOp::verify() {
  if (!getEps().isFinite() || getEps().isNegative())
    return emitOpError() << "eps must be finite and not negative, not "
                         << getEpsAttr().getValueAsDouble();
  return success();
}

LogicalResult SplitOp::verify() {
  int64_t total = 0;
  for (Value output : getOutputs()) {
    if (failed(checkTokens(*this, tokens(getInput()), output)))
      return failure();
    total += features(output);
  }
  if (total != features(getInput()))
    return emitOpError() << "splits " << features(getInput())
                         << " features into " << total;
  return success();
}

LogicalResult RopeOp::verify() {
  int64_t heads = getHeadsAttr().getInt();
  if (heads <= 0 || features(getInput()) % heads)
    return emitOpError() << features(getInput())
                         << " features are not a multiple of " << heads
                         << " heads";
  int64_t headDim = features(getInput()) / heads;
  if (getRope().getWidth() > headDim)
    return emitOpError() << "rotary width " << getRope().getWidth()
                         << " exceeds head_dim " << headDim;
  return success();
}

LogicalResult HeadGateOp::verify() {
  if (failed(checkTokens(*this, tokens(getInput()), getGate())))
    return failure();
  if (features(getInput()) % features(getGate()))
    return emitOpError() << features(getInput())
                         << " features are not a multiple of "
                         << features(getGate()) << " gates";
  return success();
}

void SparkDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/spark/SparkAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/spark/SparkOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialect/spark/SparkOps.cpp.inc"
