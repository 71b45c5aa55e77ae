//===- BuildGraph.cpp - From a checkpoint to the spark dialect ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/import/BuildGraph.h"
#include "dialect/spark/Spark.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

int64_t sparkc::ringPositions(int64_t window, int64_t prefillBlock,
                              int64_t chunk, bool quantized) {
  int64_t written = quantized ? std::max(prefillBlock, chunk) : prefillBlock;
  return llvm::alignTo(window + written - 1, chunk);
}

namespace {

class GraphBuilder {
public:
  GraphBuilder(MLIRContext &context, const Checkpoint &checkpoint,
               const GraphOptions &options)
      : checkpoint(checkpoint), config(checkpoint.config()), options(options),
        builder(&context) {}

  OwningOpRef<ModuleOp> build();

private:
  Location named(const llvm::Twine &name) {
    return NameLoc::get(builder.getStringAttr(name));
  }
  RankedTensorType activation(int64_t features) {
    return RankedTensorType::get({1, features}, builder.getF32Type());
  }
  Type elementType(DType dtype, GridAttr grid);
  GridAttr gridOf(const LogicalWeight &weight);
  std::string scheme();

  void buildConfig();
  void buildWeight(const LogicalWeight &weight);
  Type cacheElement();
  void buildCache(int64_t layer);
  void buildStep();
  Value buildLayer(int64_t layer, Value input, Value position);
  Value buildAttention(int64_t layer, Value residual, Value position);
  Value buildMlp(int64_t layer, Value residual);

  Value norm(Value input, const std::string &weight) {
    return RmsNormOp::create(builder, named(weight), input, weight,
                             llvm::APFloat(config.rmsEps));
  }
  Value linear(Value input, const std::string &weight, int64_t rows) {
    return LinearOp::create(builder, named(weight), activation(rows), input,
                            weight);
  }

  const Checkpoint &checkpoint;
  const ModelConfig &config;
  const GraphOptions &options;
  OpBuilder builder;
};

} // namespace

/// "layers.3." and the like.
static std::string prefix(int64_t layer) {
  return "layers." + std::to_string(layer) + ".";
}

static std::string cacheName(int64_t layer) {
  return "kv." + std::to_string(layer);
}

/// A matrix may have one column too, so the name says it.
static bool isVector(const LogicalWeight &weight) {
  return llvm::StringRef(weight.name).ends_with("norm");
}

Type GraphBuilder::elementType(DType dtype, GridAttr grid) {
  switch (dtype) {
  case DType::F32:
    return builder.getF32Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::F16:
    return builder.getF16Type();
  default:
    return builder.getIntegerType(grid.getBits());
  }
}

/// The grid of a quantized type; null for floats.
GridAttr GraphBuilder::gridOf(const LogicalWeight &weight) {
  auto grid = [&](unsigned bits, unsigned group, GridForm form) {
    return GridAttr::get(builder.getContext(), bits, group,
                         form == GridForm::zero, form);
  };
  switch (weight.dtype) {
  case DType::AWQ4:
  case DType::GPTQ4:
  case DType::GPTQ4_V2:
    return GridAttr::get(builder.getContext(), 4, weight.group,
                         /*symmetric=*/false, GridForm::zero);
  case DType::Q4_0:
    return grid(4, 32, GridForm::zero);
  case DType::Q4_1:
    return grid(4, 32, GridForm::minimum);
  case DType::Q5_0:
    return grid(5, 32, GridForm::zero);
  case DType::Q5_1:
    return grid(5, 32, GridForm::minimum);
  case DType::Q8_0:
    return grid(8, 32, GridForm::zero);
  case DType::Q4_K:
    return grid(4, 32, GridForm::super_minimum);
  case DType::Q5_K:
    return grid(5, 32, GridForm::super_minimum);
  case DType::Q6_K:
    return grid(6, 16, GridForm::super);
  default:
    return {};
  }
}

/// The type of the matrices, or "mixed".
std::string GraphBuilder::scheme() {
  std::string name;
  for (const LogicalWeight &weight : checkpoint.weights()) {
    if (isVector(weight))
      continue;
    std::string stored = dtypeName(weight.dtype).lower();
    if (!name.empty() && name != stored)
      return "mixed";
    name = stored;
  }
  return name;
}

void GraphBuilder::buildConfig() {
  bool slides = config.count(LayerKind::Sliding) > 0;
  int64_t context = options.context
                        ? options.context
                        : std::min<int64_t>(config.maxContext, 4096);
  auto orNone = [&](const std::string &text) {
    return text.empty() ? StringAttr() : builder.getStringAttr(text);
  };
  ConfigOp::create(builder, named("config"), config.vocab, config.hidden,
                   config.intermediate, config.layers, config.heads,
                   config.kvHeads, config.headDim,
                   slides ? config.slidingWindow : 0, config.maxContext,
                   context, options.prefillBlock, scheme(),
                   orNone(options.prefillGemm), orNone(options.activations));
}

void GraphBuilder::buildWeight(const LogicalWeight &weight) {
  SmallVector<int64_t> shape{weight.rows};
  if (!isVector(weight))
    shape.push_back(weight.cols);
  auto source = [&](const std::string &file, DType dtype, uint64_t offset,
                    uint64_t bytes, ArrayAttr parts) -> Attribute {
    return SourceAttr::get(builder.getContext(), builder.getStringAttr(file),
                           dtypeName(dtype), offset, bytes,
                           parts ? weight.group : 0, parts);
  };
  auto part = [&](const LogicalWeight::Part &p) {
    return source(p.file, p.dtype, p.offset, p.bytes, {});
  };
  ArrayAttr parts;
  if (weight.group)
    parts = builder.getArrayAttr({part(weight.scales), part(weight.zeros)});
  GridAttr grid = gridOf(weight);
  WeightOp::create(builder, named(weight.name), weight.name,
                   RankedTensorType::get(shape, elementType(weight.dtype, grid),
                                         grid),
                   cast<SourceAttr>(source(weight.file, weight.dtype,
                                           weight.offset, weight.bytes,
                                           parts)),
                   /*transforms=*/nullptr);
}

Type GraphBuilder::cacheElement() {
  switch (options.kv) {
  case GraphOptions::KVType::F32:
    return builder.getF32Type();
  case GraphOptions::KVType::F16:
    return builder.getF16Type();
  case GraphOptions::KVType::Q8:
    return builder.getI8Type();
  }
  llvm_unreachable("no other");
}

void GraphBuilder::buildCache(int64_t layer) {
  bool slides = config.layerKinds[layer] == LayerKind::Sliding;
  int64_t ring = slides ? ringPositions(config.slidingWindow,
                                        options.prefillBlock, options.chunk,
                                        options.kv == GraphOptions::KVType::Q8)
                        : 0;
  Type element = cacheElement();
  KVCacheOp::create(builder, named(cacheName(layer)), cacheName(layer),
                    config.kvHeads, config.headDim, ring, element);
}

Value GraphBuilder::buildAttention(int64_t layer, Value residual,
                                   Value position) {
  std::string at = prefix(layer);
  LayerKind kind = config.layerKinds[layer];
  const Rope &kindRope = config.rope(kind);
  auto rope = RopeAttr::get(builder.getContext(), llvm::APFloat(kindRope.theta),
                            kindRope.width);
  auto q = activation(config.qRows()), kv = activation(config.kvRows());

  Value n = norm(residual, at + "input_layernorm");
  Value qkv = linear(n, at + "q_k_v_proj", config.qkvRows());
  Value gate = linear(n, at + "g_proj", config.heads);
  auto split =
      SplitOp::create(builder, named(at + "split"), TypeRange{q, kv, kv}, qkv);
  Value query =
      RopeOp::create(builder, named(at + "rope_q"), split.getResult(0),
                     position, config.heads, rope);
  Value key = RopeOp::create(builder, named(at + "rope_k"), split.getResult(1),
                             position, config.kvHeads, rope);
  KVWriteOp::create(builder, named(at + "kv_write"), key, split.getResult(2),
                    cacheName(layer), position);
  auto scale =
      llvm::APFloat(static_cast<float>(1.0 / std::sqrt(config.headDim)));
  Value attended = AttentionOp::create(
      builder, named(at + "attention"), query, cacheName(layer), position,
      config.heads, kind == LayerKind::Sliding ? config.slidingWindow : 0,
      scale, options.chunk);
  Value gated =
      HeadGateOp::create(builder, named(at + "head_gate"), attended, gate);
  Value out = linear(gated, at + "out_proj", config.hidden);
  return AddOp::create(builder, named(at + "attention_residual"), residual,
                       out);
}

Value GraphBuilder::buildMlp(int64_t layer, Value residual) {
  std::string at = prefix(layer);
  Value n = norm(residual, at + "post_attention_layernorm");
  Value gate = linear(n, at + "gate_proj", config.intermediate);
  Value up = linear(n, at + "up_proj", config.intermediate);
  Value activated = GegluOp::create(builder, named(at + "geglu"), gate, up);
  Value down = linear(activated, at + "down_proj", config.hidden);
  return AddOp::create(builder, named(at + "mlp_residual"), residual, down);
}

Value GraphBuilder::buildLayer(int64_t layer, Value input, Value position) {
  Location loc = named("layers." + llvm::Twine(layer));
  auto op = LayerOp::create(builder, loc, input.getType(), layer, input);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&op.getBody(), {}, input.getType(), loc);
  Value x = buildAttention(layer, body->getArgument(0), position);
  x = buildMlp(layer, x);
  YieldOp::create(builder, loc, x);
  return op.getOutput();
}

void GraphBuilder::buildStep() {
  auto tokens = RankedTensorType::get({1}, builder.getI32Type());
  auto logits = activation(config.vocab);
  auto step = func::FuncOp::create(
      builder, named("step"), "step",
      builder.getFunctionType({tokens, builder.getIndexType()}, logits));
  OpBuilder::InsertionGuard guard(builder);
  Block *body =
      builder.createBlock(&step.getBody(), {}, step.getArgumentTypes(),
                          {named("token"), named("pos")});
  Value x =
      EmbedOp::create(builder, named("embedding"), activation(config.hidden),
                      "embedding", body->getArgument(0));
  for (int64_t layer = 0; layer < config.layers; ++layer)
    x = buildLayer(layer, x, body->getArgument(1));
  Value n = norm(x, "norm");
  std::string head = config.tied ? "embedding" : "lm_head";
  Value y = LinearOp::create(builder, named("lm_head"), logits, n, head);
  func::ReturnOp::create(builder, named("step"), y);
}

OwningOpRef<ModuleOp> GraphBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, named("model"));
  builder.setInsertionPointToStart(module->getBody());
  buildConfig();
  for (const LogicalWeight &weight : checkpoint.weights())
    buildWeight(weight);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    buildCache(layer);
  buildStep();
  return module;
}

OwningOpRef<ModuleOp> sparkc::buildGraph(MLIRContext &context,
                                         const Checkpoint &checkpoint,
                                         const GraphOptions &options) {
  context.loadDialect<SparkDialect, func::FuncDialect>();
  return GraphBuilder(context, checkpoint, options).build();
}
