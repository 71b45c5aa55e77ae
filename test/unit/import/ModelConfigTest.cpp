//===- ModelConfigTest.cpp - Tests of the config.json reader --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/ModelConfig.h"
#include "TestFiles.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;
namespace json = llvm::json;

static llvm::Expected<ModelConfig> parse(json::Object object) {
  return parseModelConfig(textOf(std::move(object)), "config.json");
}

static std::string refusal(json::Object object) {
  return errorOf(parse(std::move(object)), "config.json");
}

/// smallConfig with one member replaced; the value is JSON text.
static json::Object with(llvm::StringRef key, llvm::StringRef value) {
  json::Object object = smallConfig();
  object[key] = llvm::cantFail(json::parse(value));
  return object;
}

static json::Object without(llvm::StringRef key) {
  json::Object object = smallConfig();
  object.erase(key);
  return object;
}

/// smallConfig with one member of one rope_parameters entry replaced.
static json::Object withRope(llvm::StringRef kind, llvm::StringRef key,
                             llvm::StringRef value) {
  json::Object object = smallConfig();
  (*object.getObject("rope_parameters")->getObject(kind))[key] =
      llvm::cantFail(json::parse(value));
  return object;
}

static void expectRefused(json::Object object, llvm::StringRef reason) {
  std::string text = textOf(json::Object(object));
  std::string message = refusal(std::move(object));
  EXPECT_NE(message.find(reason.str()), std::string::npos)
      << message << "\nwanted: " << reason.str() << "\nfor: " << text;
}

static void expectAccepted(json::Object object) {
  auto config = parse(std::move(object));
  EXPECT_TRUE(static_cast<bool>(config)) << llvm::toString(config.takeError());
}

TEST(ModelConfig, ReadsEverything) {
  auto config = parse(smallConfig());
  ASSERT_TRUE(static_cast<bool>(config)) << llvm::toString(config.takeError());
  EXPECT_EQ(config->modelType, "spark2_5");
  EXPECT_EQ(config->dtype, "bfloat16");
  EXPECT_EQ(config->vocab, 10);
  EXPECT_EQ(config->hidden, 8);
  EXPECT_EQ(config->intermediate, 12);
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->heads, 2);
  EXPECT_EQ(config->kvHeads, 1);
  EXPECT_EQ(config->headDim, 8);
  EXPECT_EQ(config->qRows(), 16); // not hidden
  EXPECT_EQ(config->qkvRows(), 32);
  EXPECT_EQ(config->maxContext, 64);
  EXPECT_EQ(config->slidingWindow, 4);
  EXPECT_EQ(config->rmsEps, 1e-6);
  EXPECT_TRUE(config->tied);
  EXPECT_EQ(config->layerKinds,
            (std::vector<LayerKind>{LayerKind::Sliding, LayerKind::Full}));
  EXPECT_EQ(config->ropeFull.theta, 5e6);
  EXPECT_EQ(config->ropeFull.width, 2);
  EXPECT_EQ(config->ropeSliding.theta, 1e4);
  EXPECT_EQ(config->ropeSliding.width, 8);
  EXPECT_EQ(&config->rope(LayerKind::Full), &config->ropeFull);
  EXPECT_EQ(config->bos, 0);
  EXPECT_EQ(config->pad, 2);
  EXPECT_EQ(config->eos, std::vector<int64_t>{1});
}

TEST(ModelConfig, NothingThatMattersHasADefault) {
  for (const char *key :
       {"model_type", "vocab_size", "hidden_size", "intermediate_size",
        "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "head_dim", "hidden_act", "max_position_embeddings", "rope_parameters",
        "sliding_window", "headwise_attn_output_gate", "gate_attn_act_mode",
        "layer_types", "tie_word_embeddings", "rms_norm_eps"}) {
    expectRefused(without(key), (llvm::Twine(key) + " is missing").str());
    expectRefused(with(key, "null"), (llvm::Twine(key) + " is missing").str());
  }
  for (const char *kind : {"full_attention", "sliding_attention"}) {
    expectRefused(with("rope_parameters", "{}"), "full_attention is missing");
    for (const char *key : {"rope_theta", "partial_rotary_factor"})
      expectRefused(
          withRope(kind, key, "null"),
          (llvm::Twine("rope_parameters.") + kind + "." + key + " is missing")
              .str());
  }
}

TEST(ModelConfig, RefusesOtherModels) {
  struct Case {
    const char *key, *value, *reason;
  } cases[] = {
      {"model_type", "\"llama\"", "model_type is \"llama\"; only \"spark2_5\""},
      {"model_type", "7", "only \"spark2_5\""},
      {"hidden_act", "\"silu\"", "hidden_act is \"silu\"; only \"gelu\""},
      {"hidden_act", "\"gelu_pytorch_tanh\"", "only \"gelu\""},
      {"hidden_act", "\"gelu_new\"", "only \"gelu\""},
      {"gate_attn_act_mode", "\"silu\"", "only \"sigmoid\""},
      {"headwise_attn_output_gate", "false", "headwise_attn_output_gate is"},
      {"headwise_attn_output_gate", "1", "true or false"},
      {"attention_bias", "true", "attention_bias is true; biases"},
      {"mlp_bias", "true", "mlp_bias is true; biases"},
      {"attention_bias", "\"no\"", "biases"},
      {"quantization_config", "{\"bits\":4}", "quant_method is missing"},
      {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4}",
       "rope_scaling.rope_type is \"yarn\""},
      {"rope_scaling", "{\"type\":\"linear\"}", "rope_scaling.type"},
      {"rope_scaling", "{\"factor\":4}", "'rope_scaling.factor'"},
      {"rope_scaling", "4", "rope_scaling is 4"},
      {"rope_theta", "20000", "contradicts rope_parameters"},
      {"partial_rotary_factor", "0.5", "contradicts rope_parameters"},
      {"final_logit_softcapping", "30.0",
       "unknown key 'final_logit_softcapping' (30"},
      {"attn_logit_softcapping", "50", "'attn_logit_softcapping'"},
      {"use_qk_norm", "true", "'use_qk_norm'"},
      {"embedding_multiplier", "12.0", "'embedding_multiplier'"},
      {"num_experts", "8", "'num_experts'"},
      {"use_sliding_window", "false", "use_sliding_window is false"},
      {"text_config", "{\"hidden_size\":3}", "'text_config'"},
  };
  for (const Case &c : cases)
    expectRefused(with(c.key, c.value), c.reason);
}

TEST(ModelConfig, Sizes) {
  for (const char *key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim",
        "max_position_embeddings", "sliding_window"})
    for (const char *value :
         {"0", "-1", "1.5", "\"8\"", "true", "[]", "4294967296", "2147483648",
          "9223372036854775807", "18446744073709551615", "1e300"})
      expectRefused(with(key, value), (llvm::Twine(key) + " is ").str());
  expectRefused(with("num_key_value_heads", "3"), "multiple");
  expectRefused(with("num_key_value_heads", "4"), "multiple");
  expectRefused(with("head_dim", "7"), "head_dim 7 is odd");
  for (const char *value : {"0", "-1e-6", "1", "\"1e-6\""})
    expectRefused(with("rms_norm_eps", value), "rms_norm_eps is ");
  expectAccepted(with("vocab_size", "10.0")); // as some writers put it
}

TEST(ModelConfig, NumbersTooLargeForADouble) {
  for (const char *number : {":9.9999999999999995e-07", ":5000000", ":0.25"}) {
    std::string text = textOf(smallConfig());
    text.replace(text.find(number), llvm::StringRef(number).size(), ":1e999");
    EXPECT_NE(errorOf(parseModelConfig(text, "c"), "c")
                  .find("is inf; a number above 0 is needed"),
              std::string::npos);
  }
}

TEST(ModelConfig, LayerTypes) {
  expectRefused(with("layer_types", "[\"full_attention\"]"),
                "layer_types has 1 entries; num_hidden_layers is 2");
  expectRefused(with("layer_types", "[]"), "layer_types has 0 entries");
  expectRefused(with("layer_types", "[\"full_attention\",\"full_attention\","
                                    "\"full_attention\"]"),
                "layer_types has 3 entries");
  expectRefused(with("layer_types", "[\"full_attention\",\"linear\"]"),
                "layer_types[1] is \"linear\"");
  expectRefused(with("layer_types", "[\"full_attention\",1]"),
                "layer_types[1] is 1");
  expectRefused(with("layer_types", "\"full_attention\""), "not an array");
}

TEST(ModelConfig, RotaryWidths) {
  for (const char *kind : {"full_attention", "sliding_attention"}) {
    // head_dim 8: truncated to 1, 0, 3, 5, 7 and beyond 8.
    for (const char *factor :
         {"0.125", "0.2", "0.01", "0.4", "0.7", "0.99", "1.25", "2", "1e300"})
      expectRefused(withRope(kind, "partial_rotary_factor", factor),
                    "rotary width");
    for (const char *factor : {"0", "-0.5", "\"1\""})
      expectRefused(withRope(kind, "partial_rotary_factor", factor),
                    "partial_rotary_factor is ");
    for (const char *theta : {"0", "-1", "0.5", "\"1\""})
      expectRefused(withRope(kind, "rope_theta", theta), "rope_theta is ");
    expectRefused(withRope(kind, "rope_type", "\"yarn\""),
                  "rope_type is \"yarn\"");
    expectRefused(withRope(kind, "factor", "2"), "factor' (2)");
    expectAccepted(withRope(kind, "rope_type", "\"default\""));
  }
  auto config =
      parse(withRope("full_attention", "partial_rotary_factor", "0.6"));
  ASSERT_TRUE(static_cast<bool>(config));
  EXPECT_EQ(config->ropeFull.width, 4); // int(4.8)
}

TEST(ModelConfig, AKindThatNoLayerHasNeedsNothing) {
  json::Object full =
      with("layer_types", "[\"full_attention\",\"full_attention\"]");
  full.erase("sliding_window");
  full.getObject("rope_parameters")->erase("sliding_attention");
  auto config = parse(std::move(full));
  ASSERT_TRUE(static_cast<bool>(config)) << llvm::toString(config.takeError());
  EXPECT_EQ(config->slidingWindow, 0);
  EXPECT_EQ(config->ropeSliding.width, 0);
  EXPECT_EQ(config->count(LayerKind::Sliding), 0);
}

TEST(ModelConfig, TokenIds) {
  auto config = parse(with("eos_token_id", "[1,3]"));
  ASSERT_TRUE(static_cast<bool>(config));
  EXPECT_EQ(config->eos, (std::vector<int64_t>{1, 3}));
  config = parse(without("eos_token_id"));
  ASSERT_TRUE(static_cast<bool>(config));
  EXPECT_TRUE(config->eos.empty());
  config = parse(with("pad_token_id", "-1"));
  ASSERT_TRUE(static_cast<bool>(config));
  EXPECT_EQ(config->pad, std::nullopt);
  config = parse(with("bos_token_id", "null"));
  ASSERT_TRUE(static_cast<bool>(config));
  EXPECT_EQ(config->bos, std::nullopt);
  for (const char *key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    for (const char *value : {"10", "-2", "\"1\"", "1.5", "4294967297"})
      expectRefused(with(key, value), key);
  expectRefused(with("eos_token_id", "[1,10]"), "eos_token_id is 10");
}

TEST(ModelConfig, BookkeepingAndSwitchedOffKeysPass) {
  struct {
    const char *key, *value;
  } cases[] = {
      {"architectures", "[\"Spark2_5ForCausalLM\"]"},
      {"auto_map", "{\"AutoConfig\":\"configuration_spark.Spark2_5Config\"}"},
      {"transformers_version", "\"4.57.1\""},
      {"_name_or_path", "\"somewhere\""},
      {"dtype", "\"bfloat16\""},
      {"use_cache", "false"},
      {"initializer_range", "0.01976"},
      {"quantization_config", "null"},
      {"rope_scaling", "null"},
      {"rope_scaling", "{\"rope_type\":\"default\"}"},
      {"rope_theta", "10000"},
      {"final_logit_softcapping", "null"},
      {"use_qk_norm", "false"},
      {"num_experts", "0"},
      {"some_list", "[]"},
      {"use_sliding_window", "true"},
  };
  for (const auto &c : cases)
    expectAccepted(with(c.key, c.value));
}

// The published 4B's file, but for white space.
TEST(ModelConfig, PublishedShape) {
  std::string kinds;
  for (int i = 0; i < 36; ++i)
    kinds += std::string(i ? "," : "") +
             (i % 4 == 3 ? "\"full_attention\"" : "\"sliding_attention\"");
  std::string text =
      R"({"architectures":["Spark2_5ForCausalLM"],"attention_bias":false,
      "attention_dropout":0.0,"auto_map":{"AutoModel":"x.Y"},"bos_token_id":0,
      "dtype":"bfloat16","eos_token_id":1,"gate_attn_act_mode":"sigmoid",
      "head_dim":256,"headwise_attn_output_gate":true,"hidden_act":"gelu",
      "hidden_size":2560,"initializer_range":0.01976,"intermediate_size":10240,
      "layer_types":[)" +
      kinds + R"(],"max_position_embeddings":1048576,"mlp_bias":false,
      "model_type":"spark2_5","num_attention_heads":16,"num_hidden_layers":36,
      "num_key_value_heads":4,"pad_token_id":2,"rms_norm_eps":0.000001,
      "rope_parameters":{"full_attention":{"partial_rotary_factor":0.25,
      "rope_theta":5000000},"sliding_attention":{"partial_rotary_factor":1,
      "rope_theta":10000}},"sliding_window":512,"tie_word_embeddings":true,
      "transformers_version":"4.57.1","use_cache":true,"vocab_size":131072})";
  auto config = parseModelConfig(text, "config.json");
  ASSERT_TRUE(static_cast<bool>(config)) << llvm::toString(config.takeError());
  EXPECT_EQ(config->qRows(), 4096);
  EXPECT_EQ(config->qkvRows(), 6144);
  EXPECT_EQ(config->ropeFull.width, 64);
  EXPECT_EQ(config->ropeSliding.width, 256);
  EXPECT_EQ(config->count(LayerKind::Full), 9);
}

TEST(ModelConfig, CutAtAnyByte) {
  std::string text = textOf(smallConfig());
  for (size_t n = 0; n < text.size(); ++n)
    errorOf(parseModelConfig(llvm::StringRef(text).take_front(n), "c"), "c");
}

TEST(ModelConfig, ReadNamesTheFile) {
  TempDir dir;
  std::string path = dir.file("config.json");
  EXPECT_EQ(errorOf(readModelConfig(path), path),
            path + ": No such file or directory");
  dir.write("config.json", "{");
  EXPECT_NE(errorOf(readModelConfig(path), path).find("malformed JSON"),
            std::string::npos);
  dir.write("config.json", "");
  errorOf(readModelConfig(path), path);
  dir.write("config.json", std::string((16 << 20) + 1, ' '));
  EXPECT_NE(errorOf(readModelConfig(path), path).find("too many"),
            std::string::npos);
  dir.write("config.json", textOf(smallConfig()));
  EXPECT_TRUE(static_cast<bool>(readModelConfig(path)));
}
