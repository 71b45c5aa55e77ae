//===- TestFiles.cpp - Small input files for the import tests -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestFiles.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>

#include <gtest/gtest.h>

using namespace sparkc::test;
namespace json = llvm::json;

TempDir::TempDir() {
  llvm::SmallString<128> made;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("sparkc-import", made));
  root = made.str().str();
}

TempDir::~TempDir() { llvm::sys::fs::remove_directories(root); }

std::string TempDir::file(llvm::StringRef name) const {
  return root + "/" + name.str();
}

std::string TempDir::write(llvm::StringRef name, llvm::StringRef bytes) const {
  std::string path = file(name);
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(out.good()) << path;
  return path;
}

std::string sparkc::test::noError(llvm::StringRef file) {
  ADD_FAILURE() << file.str() << " was accepted";
  return "";
}

std::string sparkc::test::checkMessage(std::string message,
                                       llvm::StringRef file) {
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_EQ(message.rfind(file.str() + ": ", 0), 0u) << message;
  EXPECT_GT(message.size(), file.size() + 2) << message;
  return message;
}

std::string sparkc::test::safetensorsOf(llvm::StringRef header,
                                        llvm::StringRef data) {
  std::string out;
  for (int i = 0; i < 8; ++i)
    out += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  return out + header.str() + data.str();
}

std::string sparkc::test::safetensorsOf(llvm::ArrayRef<Tensor> tensors) {
  json::Object header;
  int64_t end = 0;
  for (const Tensor &tensor : tensors) {
    int64_t bytes = tensor.dtype == "F32" ? 4 : tensor.dtype == "I8" ? 1 : 2;
    for (int64_t dim : tensor.shape)
      bytes *= dim;
    header[tensor.name] =
        json::Object{{"dtype", tensor.dtype},
                     {"shape", json::Array(tensor.shape)},
                     {"data_offsets", json::Array{end, end + bytes}}};
    end += bytes;
  }
  std::string data;
  for (int64_t i = 0; i < end; ++i)
    data += static_cast<char>(i);
  return safetensorsOf(textOf(std::move(header)), data);
}

json::Object sparkc::test::smallConfig() {
  return json::Object{
      {"architectures", json::Array{"Spark2_5ForCausalLM"}},
      {"model_type", "spark2_5"},
      {"vocab_size", 10},
      {"hidden_size", 8},
      {"intermediate_size", 12},
      {"num_hidden_layers", 2},
      {"num_attention_heads", 2},
      {"num_key_value_heads", 1},
      {"head_dim", 8},
      {"hidden_act", "gelu"},
      {"max_position_embeddings", 64},
      {"rope_parameters",
       json::Object{
           {"full_attention", json::Object{{"partial_rotary_factor", 0.25},
                                           {"rope_theta", 5000000}}},
           {"sliding_attention", json::Object{{"partial_rotary_factor", 1.0},
                                              {"rope_theta", 10000}}}}},
      {"sliding_window", 4},
      {"headwise_attn_output_gate", true},
      {"gate_attn_act_mode", "sigmoid"},
      {"layer_types", json::Array{"sliding_attention", "full_attention"}},
      {"tie_word_embeddings", true},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"mlp_bias", false},
      {"rms_norm_eps", 1e-6},
      {"initializer_range", 0.02},
      {"pad_token_id", 2},
      {"bos_token_id", 0},
      {"eos_token_id", 1},
      {"use_cache", true},
      {"torch_dtype", "bfloat16"}};
}

std::vector<Tensor> sparkc::test::smallTensors() {
  std::vector<Tensor> all = {{"model.embedding.weight", "BF16", {10, 8}}};
  for (int n = 0; n < 2; ++n) {
    std::string layer = "model.layers." + std::to_string(n) + ".";
    all.push_back({layer + "input_layernorm.weight", "BF16", {8}});
    all.push_back({layer + "self_attn.q_k_v_proj.weight", "BF16", {32, 8}});
    all.push_back({layer + "self_attn.g_proj.weight", "BF16", {2, 8}});
    all.push_back({layer + "self_attn.out_proj.weight", "BF16", {8, 16}});
    all.push_back({layer + "post_attention_layernorm.weight", "BF16", {8}});
    all.push_back({layer + "mlp.gate_proj.weight", "BF16", {12, 8}});
    all.push_back({layer + "mlp.up_proj.weight", "BF16", {12, 8}});
    all.push_back({layer + "mlp.down_proj.weight", "BF16", {8, 12}});
  }
  all.push_back({"model.norm.weight", "BF16", {8}});
  return all;
}

std::string sparkc::test::textOf(const json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}
