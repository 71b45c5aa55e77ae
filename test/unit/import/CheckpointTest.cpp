//===- CheckpointTest.cpp - Tests of whole checkpoints --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/Checkpoint.h"
#include "TestFiles.h"
#include "dialect/import/TensorSet.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;
namespace json = llvm::json;

namespace {
class CheckpointTest : public ::testing::Test {
protected:
  void SetUp() override {
    dir.write("config.json", textOf(smallConfig()));
    tensors = smallTensors();
    weights = dir.file("model.safetensors");
    index = dir.file("model.safetensors.index.json");
  }
  void write() { dir.write("model.safetensors", safetensorsOf(tensors)); }
  std::string refusal(llvm::StringRef file) {
    return errorOf(Checkpoint::open(dir.path()), file);
  }
  void expectRefused(llvm::StringRef file, llvm::StringRef reason) {
    std::string message = refusal(file);
    EXPECT_NE(message.find(reason.str()), std::string::npos)
        << message << "\nwanted: " << reason.str();
  }
  /// Splits the tensors over two shards; returns the index's weight_map.
  json::Object shard(size_t first) {
    llvm::ArrayRef<Tensor> all = tensors;
    dir.write("a.safetensors", safetensorsOf(all.take_front(first)));
    dir.write("b.safetensors", safetensorsOf(all.drop_front(first)));
    json::Object map;
    for (size_t i = 0; i < all.size(); ++i)
      map[all[i].name] = i < first ? "a.safetensors" : "b.safetensors";
    return map;
  }
  void writeIndex(json::Object map) {
    dir.write("model.safetensors.index.json",
              textOf(json::Object{{"metadata", json::Object{}},
                                  {"weight_map", std::move(map)}}));
  }
  Tensor &tensor(llvm::StringRef name) {
    return *llvm::find_if(tensors,
                          [&](const Tensor &t) { return t.name == name; });
  }

  TempDir dir;
  std::vector<Tensor> tensors;
  std::string weights, index;
};
} // namespace

TEST_F(CheckpointTest, ResolvesWeightsInModelOrder) {
  write();
  auto checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint))
      << llvm::toString(checkpoint.takeError());
  std::vector<std::string> names;
  for (const LogicalWeight &weight : checkpoint->weights())
    names.push_back(weight.name);
  std::vector<std::string> expected = {"embedding"};
  for (std::string layer : {"layers.0.", "layers.1."})
    for (const char *name :
         {"input_layernorm", "q_k_v_proj", "g_proj", "out_proj",
          "post_attention_layernorm", "gate_proj", "up_proj", "down_proj"})
      expected.push_back(layer + name);
  expected.push_back("norm");
  EXPECT_EQ(names, expected);

  const LogicalWeight *down = checkpoint->find("layers.1.down_proj");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->file, weights);
  EXPECT_EQ(down->dtype, DType::BF16);
  EXPECT_EQ(down->rows, 8);
  EXPECT_EQ(down->cols, 12);
  EXPECT_EQ(down->bytes, 8u * 12 * 2);
  const LogicalWeight *norm = checkpoint->find("norm");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->rows, 8);
  EXPECT_EQ(norm->cols, 1);
  EXPECT_EQ(checkpoint->find("lm_head"), nullptr);
  EXPECT_TRUE(checkpoint->warnings().empty());

  // The bytes count up through the file, so they tell where they are from.
  const LogicalWeight *norm0 = checkpoint->find("layers.0.input_layernorm");
  EXPECT_EQ(checkpoint->data(*norm0)[0], 10 * 8 * 2);
  EXPECT_EQ(checkpoint->map(weights), checkpoint->map(weights));
  ASSERT_NE(checkpoint->map(weights), nullptr);
  EXPECT_EQ(checkpoint->map("elsewhere"), nullptr);
}

TEST_F(CheckpointTest, OtherNameOfTheEmbedding) {
  tensors[0].name = "model.embed_tokens.weight";
  write();
  EXPECT_TRUE(static_cast<bool>(Checkpoint::open(dir.path())));
  tensors.push_back({"model.embedding.weight", "BF16", {10, 8}});
  write();
  expectRefused(weights, "are both there");
}

TEST_F(CheckpointTest, HeadTiedAndUntied) {
  tensors.push_back({"lm_head.weight", "BF16", {3}}); // not even looked at
  write();
  auto tied = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(tied)) << llvm::toString(tied.takeError());
  EXPECT_EQ(tied->find("lm_head"), nullptr);
  EXPECT_TRUE(tied->warnings().empty());

  json::Object config = smallConfig();
  config["tie_word_embeddings"] = false;
  dir.write("config.json", textOf(std::move(config)));
  expectRefused(weights, "'lm_head.weight': expected shape [10, 8] from "
                         "config.json, found [3]");
  tensors.back().shape = {10, 8};
  write();
  auto untied = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(untied)) << llvm::toString(untied.takeError());
  EXPECT_NE(untied->find("lm_head"), nullptr);
  tensors.pop_back();
  write();
  expectRefused(weights, "tensor 'lm_head.weight' is missing");
}

TEST_F(CheckpointTest, EveryTensorIsNeeded) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<Tensor> rest = tensors;
    rest.erase(rest.begin() + static_cast<long>(i));
    dir.write("model.safetensors", safetensorsOf(rest));
    expectRefused(weights, "tensor '" + tensors[i].name + "' is missing");
  }
}

TEST_F(CheckpointTest, EveryShapeAndTypeIsChecked) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<Tensor> changed = tensors;
    std::string at = "tensor '" + tensors[i].name + "': ";
    changed[i].shape[0] += 1;
    dir.write("model.safetensors", safetensorsOf(changed));
    expectRefused(weights, at + "expected shape ");
    changed[i].shape[0] -= 1;
    changed[i].shape.push_back(1);
    dir.write("model.safetensors", safetensorsOf(changed));
    expectRefused(weights, at + "expected shape ");
    changed[i] = tensors[i];
    changed[i].dtype = "I8";
    dir.write("model.safetensors", safetensorsOf(changed));
    expectRefused(weights, at + "expected dtype F32, BF16 or F16, found I8");
  }
  // Transposed, with the same number of elements.
  tensor("model.layers.0.mlp.up_proj.weight").shape = {8, 12};
  write();
  expectRefused(weights, "expected shape [12, 8] from config.json, found "
                         "[8, 12]");
}

TEST_F(CheckpointTest, TypesMayBeMixed) {
  tensor("model.norm.weight").dtype = "F32";
  tensor("model.embedding.weight").dtype = "F16";
  write();
  auto checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint));
  EXPECT_EQ(checkpoint->find("norm")->dtype, DType::F32);
  EXPECT_EQ(checkpoint->find("norm")->bytes, 32u);
  EXPECT_EQ(checkpoint->find("embedding")->dtype, DType::F16);
}

TEST_F(CheckpointTest, ExtraTensors) {
  tensors.push_back({"model.layers.0.rotary_emb.inv_freq", "F32", {4}});
  tensors.push_back({"model.vision.weight", "BF16", {4}});
  write();
  auto checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint))
      << llvm::toString(checkpoint.takeError());
  ASSERT_EQ(checkpoint->warnings().size(), 1u);
  EXPECT_EQ(checkpoint->warnings()[0],
            weights + ": tensor 'model.vision.weight' is not part of the model "
                      "and is ignored");
  for (const char *name : {"model.layers.0.self_attn.g_proj.bias",
                           "lm_head.bias", "model.layers.1.mlp.up_proj.bias"}) {
    tensors.push_back({name, "BF16", {2}});
    write();
    expectRefused(weights, "is a bias");
    tensors.pop_back();
  }
  for (const char *name : {"model.layers.0.self_attn.q_norm.weight",
                           "model.layers.2.input_layernorm.weight",
                           "model.layers.00.input_layernorm.weight"}) {
    tensors.push_back({name, "BF16", {8}});
    write();
    expectRefused(weights, "is not part of a Spark-X2.5 model of 2 layers");
    tensors.pop_back();
  }
}

TEST_F(CheckpointTest, Truncated) {
  std::string good = safetensorsOf(tensors);
  for (size_t n = 0; n < good.size(); n += 97) {
    dir.write("model.safetensors", llvm::StringRef(good).take_front(n));
    refusal(weights);
  }
}

TEST_F(CheckpointTest, Shards) {
  writeIndex(shard(5));
  auto checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint))
      << llvm::toString(checkpoint.takeError());
  EXPECT_EQ(checkpoint->find("embedding")->file, dir.file("a.safetensors"));
  EXPECT_EQ(checkpoint->find("norm")->file, dir.file("b.safetensors"));
  EXPECT_NE(checkpoint->map(dir.file("a.safetensors")), nullptr);

  // A whole file goes before an index.
  write();
  checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint));
  EXPECT_EQ(checkpoint->find("norm")->file, weights);
}

TEST_F(CheckpointTest, ShardFaults) {
  std::string a = dir.file("a.safetensors"), b = dir.file("b.safetensors");
  json::Object map = shard(5);
  map["model.norm.weight"] = "a.safetensors";
  writeIndex(std::move(map));
  expectRefused(b, "'model.norm.weight' belongs in 'a.safetensors'");

  map = shard(5);
  map["model.more.weight"] = "a.safetensors";
  writeIndex(std::move(map));
  expectRefused(a, "'model.more.weight' is missing, though the index");

  map = shard(5);
  map.erase("model.norm.weight");
  writeIndex(std::move(map));
  expectRefused(b, "'model.norm.weight' is not in model.safetensors.index");

  map = shard(5);
  map["model.norm.weight"] = "c.safetensors";
  writeIndex(std::move(map));
  expectRefused(b, "'model.norm.weight' belongs in 'c.safetensors'");

  writeIndex(shard(5));
  llvm::sys::fs::remove(b);
  expectRefused(b, "No such file");

  dir.write("model.safetensors.index.json", "{\"weight_map\":");
  expectRefused(index, "malformed JSON");
  dir.write("model.safetensors.index.json", "{}");
  expectRefused(index, "no weight_map");
  dir.write("model.safetensors.index.json", "{\"weight_map\":{}}");
  expectRefused(index, "empty");
}

TEST(ShardIndex, NamesArePlain) {
  for (const char *name : {"\"../x\"", "\"/etc/passwd\"", "\"a/b\"", "\"..\"",
                           "\".\"", "\"\"", "\"a\\\\b\"", "\"a\\u0000b\""})
    EXPECT_NE(
        errorOf(parseShardIndex(
                    std::string("{\"weight_map\":{\"t\":") + name + "}}", "i"),
                "i")
            .find("not a plain file name"),
        std::string::npos)
        << name;
  errorOf(parseShardIndex("{\"weight_map\":{\"t\":3}}", "i"), "i");
  errorOf(parseShardIndex("{\"weight_map\":[]}", "i"), "i");
}

TEST_F(CheckpointTest, MissingFiles) {
  expectRefused(dir.path(), "neither model.safetensors nor");
  llvm::sys::fs::remove(dir.file("config.json"));
  write();
  expectRefused(dir.file("config.json"), "No such file");
  EXPECT_EQ(errorOf(Checkpoint::open("/nonexistent"), "/nonexistent"),
            "/nonexistent: no such directory");
  EXPECT_EQ(errorOf(Checkpoint::open(weights), weights),
            weights + ": is not a directory with a checkpoint");
}

TEST_F(CheckpointTest, TextFiles) {
  write();
  auto checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint));
  EXPECT_EQ(checkpoint->textFiles().tokenizer, "");
  std::string tokenizer = dir.write("tokenizer.json", "{}");
  std::string chat = dir.write("chat_template.jinja", "x");
  checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(static_cast<bool>(checkpoint));
  EXPECT_EQ(checkpoint->textFiles().tokenizer, tokenizer);
  EXPECT_EQ(checkpoint->textFiles().chatTemplate, chat);
  EXPECT_EQ(checkpoint->textFiles().generationConfig, "");
}

// Every model that stands in the tree.
class StoredCheckpoint : public ::testing::TestWithParam<const char *> {};

TEST_P(StoredCheckpoint, Opens) {
  std::string path = GetParam() == std::string("spark-tiny")
                         ? std::string(SPARKC_TEST_SPARK_TINY)
                         : std::string(SPARKC_TEST_GOLDEN) + "/" + GetParam();
  auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(static_cast<bool>(checkpoint))
      << llvm::toString(checkpoint.takeError());
  const ModelConfig &config = checkpoint->config();
  EXPECT_EQ(checkpoint->weights().size(),
            static_cast<size_t>(2 + 8 * config.layers + !config.tied));
  EXPECT_TRUE(checkpoint->warnings().empty());
  for (const LogicalWeight &weight : checkpoint->weights())
    EXPECT_EQ(checkpoint->data(weight).size(),
              static_cast<size_t>(weight.rows * weight.cols) *
                  dtypeBytes(weight.dtype));
}

INSTANTIATE_TEST_SUITE_P(
    InTree, StoredCheckpoint,
    ::testing::Values("all-full", "all-sliding", "base", "base-sharded", "f16",
                      "f32", "head-dim-256", "long", "mha", "mqa", "odd-vocab",
                      "partial-rotary", "untied", "window-edge", "spark-tiny"),
    [](const auto &info) {
      std::string name = info.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });
