//===- BuildGraphTest.cpp - Graphs of real checkpoints --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/import/BuildGraph.h"
#include "dialect/spark/Spark.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

namespace {

/// A checkpoint and the graph of it.
struct Graph {
  explicit Graph(const std::string &directory,
                 const GraphOptions &options = {}) {
    llvm::Expected<Checkpoint> opened = Checkpoint::open(directory);
    if (!opened) {
      ADD_FAILURE() << llvm::toString(opened.takeError());
      return;
    }
    checkpoint = std::make_unique<Checkpoint>(std::move(*opened));
    module = buildGraph(context, *checkpoint, options);
    EXPECT_TRUE(succeeded(verify(*module)));
  }

  bool run(llvm::function_ref<void(OpPassManager &)> build) {
    PassManager pm(&context);
    build(pm);
    return succeeded(pm.run(*module));
  }
  bool runGraph(StringRef scheme = "stored") {
    GraphPipelineOptions options;
    options.scheme = scheme.str();
    return run([&](OpPassManager &pm) { buildGraphPipeline(pm, options); });
  }
  bool runFuse() {
    return run([&](OpPassManager &pm) { buildFusePipeline(pm, {}); });
  }

  template <typename OpT> OpT lookup(StringRef name) {
    return module->lookupSymbol<OpT>(name);
  }
  ConfigOp config() { return *module->getOps<ConfigOp>().begin(); }
  SmallVector<LayerOp> layers() {
    auto step = lookup<func::FuncOp>("step");
    return llvm::to_vector(step.getBody().front().getOps<LayerOp>());
  }
  std::string text(bool locations = false) {
    std::string result;
    llvm::raw_string_ostream stream(result);
    OpPrintingFlags flags;
    if (locations)
      flags.enableDebugInfo();
    module->print(stream, flags);
    return result;
  }

  MLIRContext context;
  std::unique_ptr<Checkpoint> checkpoint;
  OwningOpRef<ModuleOp> module;
};

std::string golden(const std::string &name) {
  return std::string(SPARKC_TEST_GOLDEN) + "/" + name;
}

class GoldenGraph : public testing::TestWithParam<const char *> {
protected:
  std::string directory() const {
    return GetParam() == std::string("spark-tiny") ? SPARKC_TEST_SPARK_TINY
                                                   : golden(GetParam());
  }
};

} // namespace

TEST_P(GoldenGraph, HoldsEveryWeightAsTheFileHasIt) {
  Graph graph(directory());
  ASSERT_TRUE(graph.module);
  auto ops = llvm::to_vector(graph.module->getOps<WeightOp>());
  ArrayRef<LogicalWeight> weights = graph.checkpoint->weights();
  ASSERT_EQ(ops.size(), weights.size());
  for (auto [op, weight] : llvm::zip(ops, weights)) {
    EXPECT_EQ(op.getSymName().str(), weight.name);
    EXPECT_EQ(op.getSource().getFile().str(), weight.file);
    EXPECT_EQ(op.getSource().getOffset(), weight.offset);
    EXPECT_EQ(op.getSource().getBytes(), weight.bytes);
    EXPECT_EQ(op.getSource().getDtype(), dtypeName(weight.dtype));
    EXPECT_EQ(op.getTensorType().getElementTypeBitWidth(),
              8 * dtypeBytes(weight.dtype));
    EXPECT_EQ(op.getTensorType().getDimSize(0), weight.rows);
    if (op.getTensorType().getRank() == 2) {
      EXPECT_EQ(op.getTensorType().getDimSize(1), weight.cols);
    }
  }
}

TEST_P(GoldenGraph, AgreesWithItsConfig) {
  GraphOptions options;
  options.prefillBlock = 100;
  Graph graph(directory(), options);
  ASSERT_TRUE(graph.module);
  EXPECT_TRUE(graph.runGraph());
  const ModelConfig &config = graph.checkpoint->config();
  ConfigOp op = graph.config();
  EXPECT_EQ(int64_t(op.getVocab()), config.vocab);
  EXPECT_EQ(int64_t(op.getHeads()), config.heads);
  EXPECT_EQ(int64_t(op.getContext()),
            std::min<int64_t>(4096, config.maxContext));
  EXPECT_EQ(op.getPrefillBlock(), 100u);

  SmallVector<LayerOp> layers = graph.layers();
  ASSERT_EQ(int64_t(layers.size()), config.layers);
  for (auto [layer, kind] : llvm::zip(layers, config.layerKinds)) {
    bool slides = kind == LayerKind::Sliding;
    AttentionOp attention = *layer.getBody().getOps<AttentionOp>().begin();
    EXPECT_EQ(int64_t(attention.getWindow()),
              slides ? config.slidingWindow : 0);
    auto cache = graph.lookup<KVCacheOp>(attention.getCache());
    EXPECT_EQ(int64_t(cache.getRing()),
              slides ? (config.slidingWindow + 99 + 63) / 64 * 64 : 0);
    EXPECT_TRUE(cache.getElementType().isF16());
    for (auto rope : layer.getBody().getOps<RopeOp>()) {
      EXPECT_EQ(rope.getRope().getTheta().convertToDouble(),
                config.rope(kind).theta);
      EXPECT_EQ(rope.getRope().getWidth(), config.rope(kind).width);
    }
  }
}

TEST_P(GoldenGraph, NamesItsHead) {
  Graph graph(directory());
  ASSERT_TRUE(graph.module);
  auto step = graph.lookup<func::FuncOp>("step");
  LinearOp head = *step.getBody().front().getOps<LinearOp>().begin();
  EXPECT_EQ(head.getWeight().str(),
            graph.checkpoint->config().tied ? "embedding" : "lm_head");
}

TEST_P(GoldenGraph, EveryOpHasANameForALocation) {
  Graph graph(directory());
  ASSERT_TRUE(graph.module);
  graph.module->walk([](Operation *op) {
    EXPECT_TRUE(isa<NameLoc>(op->getLoc()))
        << op->getName().getStringRef().str();
  });
  std::string text = graph.text(/*locations=*/true);
  EXPECT_NE(text.find("loc(\"layers.1.q_k_v_proj\")"), std::string::npos);
}

TEST_P(GoldenGraph, FusesToFourLinearsAndOneAttention) {
  Graph graph(directory());
  ASSERT_TRUE(graph.module);
  ASSERT_TRUE(graph.runGraph());
  ASSERT_TRUE(graph.runFuse());
  for (LayerOp layer : graph.layers()) {
    std::string ops;
    for (Operation &op : layer.getBody().front())
      ops += op.getName().stripDialect().str() + " ";
    EXPECT_EQ(ops, "fused_linear attention fused_linear fused_linear "
                   "fused_linear yield ");
  }
  std::string ops;
  for (Operation &op : graph.lookup<func::FuncOp>("step").getBody().front())
    if (!isa<LayerOp>(op))
      ops += op.getName().getStringRef().str() + " ";
  EXPECT_EQ(ops, "spark.embed spark.fused_linear func.return ");
  // The fused form still is the model that the config describes.
  EXPECT_TRUE(graph.run(
      [](OpPassManager &pm) { pm.addPass(createSparkCheckConfig()); }));
}

TEST_P(GoldenGraph, TextReadsBack) {
  Graph graph(directory());
  ASSERT_TRUE(graph.module);
  ASSERT_TRUE(graph.runGraph());
  for (bool fused : {false, true}) {
    if (fused) {
      ASSERT_TRUE(graph.runFuse());
    }
    for (bool locations : {false, true}) {
      std::string text = graph.text(locations);
      OwningOpRef<ModuleOp> parsed =
          parseSourceString<ModuleOp>(text, &graph.context);
      ASSERT_TRUE(parsed);
      std::string again;
      llvm::raw_string_ostream stream(again);
      OpPrintingFlags flags;
      if (locations)
        flags.enableDebugInfo();
      parsed->print(stream, flags);
      EXPECT_EQ(text, again);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGraph,
                         testing::Values("all-full", "all-sliding", "base",
                                         "base-sharded", "f16", "f32",
                                         "head-dim-256", "long", "mha", "mqa",
                                         "odd-vocab", "partial-rotary",
                                         "spark-tiny", "untied", "window-edge"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           std::string name = info.param;
                           for (char &c : name)
                             if (c == '-')
                               c = '_';
                           return name;
                         });

TEST(BuildGraph, SchemeSaysHowMatricesAreStored) {
  for (auto [name, stored, widened] :
       {std::array<const char *, 3>{"base", "bf16", "bf16"},
        std::array<const char *, 3>{"f16", "f16", "f32"},
        std::array<const char *, 3>{"f32", "f32", "f32"}}) {
    Graph graph(golden(name));
    ASSERT_TRUE(graph.module);
    EXPECT_EQ(graph.config().getScheme(), stored);
    ASSERT_TRUE(graph.runGraph());
    EXPECT_EQ(graph.config().getScheme(), widened);
  }
}

TEST(BuildGraph, OptionsReachTheGraph) {
  GraphOptions options;
  options.kv = GraphOptions::KVType::F32;
  options.context = 77;
  options.chunk = 32;
  Graph graph(golden("base"), options);
  ASSERT_TRUE(graph.module);
  EXPECT_TRUE(graph.runGraph());
  EXPECT_EQ(graph.config().getContext(), 77u);
  for (auto cache : graph.module->getOps<KVCacheOp>())
    EXPECT_TRUE(cache.getElementType().isF32());
  graph.module->walk([](AttentionOp op) { EXPECT_EQ(op.getChunk(), 32u); });
}

TEST(BuildGraph, QuantizedCache) {
  GraphOptions options;
  options.kv = GraphOptions::KVType::Q8;
  Graph graph(golden("base"), options);
  ASSERT_TRUE(graph.module);
  EXPECT_TRUE(graph.runGraph());
  const ModelConfig &config = graph.checkpoint->config();
  for (auto [layer, kind] : llvm::zip(graph.layers(), config.layerKinds)) {
    AttentionOp attention = *layer.getBody().getOps<AttentionOp>().begin();
    auto cache = graph.lookup<KVCacheOp>(attention.getCache());
    EXPECT_TRUE(cache.getElementType().isInteger(8));
    EXPECT_EQ(int64_t(cache.getRing()),
              kind == LayerKind::Sliding
                  ? ringPositions(config.slidingWindow, 1, 64, true)
                  : 0);
  }
}

TEST(BuildGraph, RingHoldsTheWindowOfAWholeBlock) {
  EXPECT_EQ(ringPositions(512, 1, 64, false), 512);
  EXPECT_EQ(ringPositions(512, 2, 64, false), 576);
  EXPECT_EQ(ringPositions(16, 1, 64, false), 64);
  EXPECT_EQ(ringPositions(65, 64, 64, false), 128);
  EXPECT_EQ(ringPositions(65, 65, 64, false), 192);
}

TEST(BuildGraph, RingOfAQuantizedCacheHasRoomForTheChunkThatIsWritten) {
  EXPECT_EQ(ringPositions(1, 1, 64, true), 64);
  EXPECT_EQ(ringPositions(2, 1, 64, true), 128);
  EXPECT_EQ(ringPositions(512, 1, 64, true), 576);
  EXPECT_EQ(ringPositions(512, 65, 64, true), 576);
  EXPECT_EQ(ringPositions(512, 66, 64, true), 640);
  for (int64_t window : {1, 2, 3, 63, 64, 65, 66, 100, 512})
    for (int64_t chunk : {16, 64}) {
      // The chunks that a token at `pos` may see lie in slots of their own.
      int64_t ring = ringPositions(window, 1, chunk, true);
      for (int64_t pos = 0; pos < 3 * ring; ++pos) {
        int64_t first = std::max<int64_t>(pos - window + 1, 0) / chunk;
        EXPECT_LE((pos / chunk - first + 1) * chunk, ring)
            << window << " " << chunk << " " << pos;
      }
    }
}

//===----------------------------------------------------------------------===//
// The shapes of the 1.7B: bytes as holes in a file, since nothing reads them
//===----------------------------------------------------------------------===//

namespace {

class RealShapes : public testing::Test {
protected:
  void SetUp() override {
    directory = std::filesystem::temp_directory_path() /
                ("sparkc-graph-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory);
    writeConfig();
    add("model.embedding.weight", {131072, 2048});
    for (int layer = 0; layer < 28; ++layer) {
      std::string at = "model.layers." + std::to_string(layer) + ".";
      add(at + "input_layernorm.weight", {2048});
      add(at + "post_attention_layernorm.weight", {2048});
      add(at + "self_attn.q_k_v_proj.weight", {3072, 2048});
      add(at + "self_attn.g_proj.weight", {8, 2048});
      add(at + "self_attn.out_proj.weight", {2048, 2048});
      add(at + "mlp.gate_proj.weight", {6656, 2048});
      add(at + "mlp.up_proj.weight", {6656, 2048});
      add(at + "mlp.down_proj.weight", {2048, 6656});
    }
    add("model.norm.weight", {2048});
    header += "}";
    std::filesystem::path file = directory / "model.safetensors";
    {
      std::ofstream stream(file, std::ios::binary);
      uint64_t length = header.size();
      stream.write(reinterpret_cast<const char *>(&length), sizeof(length));
      stream << header;
    }
    std::filesystem::resize_file(file, 8 + header.size() + end);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  void add(const std::string &name, std::vector<int64_t> shape) {
    int64_t bytes = 2;
    std::string dims;
    for (int64_t dim : shape) {
      bytes *= dim;
      dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    }
    header += (header.size() > 1 ? ",\"" : "\"") + name +
              "\":{\"dtype\":\"BF16\",\"shape\":[" + dims +
              "],\"data_offsets\":[" + std::to_string(end) + "," +
              std::to_string(end + bytes) + "]}";
    end += bytes;
  }

  void writeConfig() {
    std::ofstream stream(directory / "config.json");
    stream << R"({"architectures": ["Spark2_5ForCausalLM"],
      "model_type": "spark2_5", "vocab_size": 131072, "hidden_size": 2048,
      "intermediate_size": 6656, "num_hidden_layers": 28,
      "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
      "hidden_act": "gelu", "max_position_embeddings": 1048576,
      "rope_parameters": {
        "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 5000000},
        "sliding_attention": {"partial_rotary_factor": 1.0, "rope_theta": 10000}},
      "sliding_window": 512, "headwise_attn_output_gate": true,
      "gate_attn_act_mode": "sigmoid", "layer_types": [)";
    for (int layer = 0; layer < 28; ++layer)
      stream << (layer ? "," : "")
             << (layer % 4 == 3 ? "\"full_attention\""
                                : "\"sliding_attention\"");
    stream << R"(], "tie_word_embeddings": true, "attention_bias": false,
      "mlp_bias": false, "rms_norm_eps": 1e-06, "pad_token_id": 2,
      "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "bfloat16"})";
  }

  std::filesystem::path directory;
  std::string header = "{";
  uint64_t end = 0;
};

} // namespace

TEST_F(RealShapes, PrintsInUnderASecond) {
  Graph graph(directory.string());
  ASSERT_TRUE(graph.module);
  ASSERT_TRUE(graph.runGraph());
  ASSERT_TRUE(graph.runFuse());
  auto start = std::chrono::steady_clock::now();
  std::string text = graph.text(/*locations=*/true);
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 1.0);
  // Readable: no weight's bytes, a few thousand lines.
  EXPECT_LT(text.size(), 400u << 10);
  EXPECT_EQ(graph.layers().size(), 28u);
  EXPECT_EQ(graph.lookup<KVCacheOp>("kv.0").getRing(), 512u);
  EXPECT_EQ(graph.lookup<KVCacheOp>("kv.3").getRing(), 0u);
}
