//===- GgufConfig.cpp - A model's config from GGUF keys -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/GgufModel.h"
#include "dialect/import/ImportError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstdlib>

using namespace sparkc;
namespace json = llvm::json;
using llvm::StringRef;
using llvm::Twine;

static constexpr llvm::StringLiteral architecture = "spark2_5";

std::string sparkc::ggufTensorName(StringRef logical) {
  if (logical == "embedding")
    return "token_embd.weight";
  if (logical == "norm")
    return "output_norm.weight";
  if (logical == "lm_head")
    return "output.weight";
  logical.consume_front("layers.");
  auto [layer, part] = logical.split('.');
  StringRef name = llvm::StringSwitch<StringRef>(part)
                       .Case("input_layernorm", "attn_norm")
                       .Case("q_k_v_proj", "attn_qkv")
                       .Case("g_proj", "attn_gate")
                       .Case("out_proj", "attn_output")
                       .Case("post_attention_layernorm", "ffn_norm")
                       .Case("gate_proj", "ffn_gate")
                       .Case("up_proj", "ffn_up")
                       .Case("down_proj", "ffn_down");
  return ("blk." + layer + "." + name + ".weight").str();
}

namespace {
/// Takes keys of the architecture. Keeps the first fault; after it, answers
/// with harmless values.
class KeyReader {
public:
  explicit KeyReader(const GgufFile &file) : file(file) {}

  bool ok() const { return fault.empty(); }
  void fail(const Twine &message) {
    if (ok())
      fault = message.str();
  }
  /// Null where there is none.
  const GgufValue *get(StringRef key) {
    used.insert(key);
    return file.find((architecture + "." + key).str());
  }
  const GgufValue *required(StringRef key) {
    const GgufValue *value = get(key);
    if (!value)
      fail("key " + architecture + "." + key + " is missing");
    return value;
  }
  void wrongType(StringRef key, const GgufValue &value, StringRef expected) {
    fail("key " + architecture + "." + key + " is of type " +
         value.typeText() + "; expected " + expected);
  }
  /// An integer, or one for each layer where they are all the same.
  int64_t integer(StringRef key) {
    const GgufValue *value = required(key);
    if (!value)
      return 1;
    if (std::optional<int64_t> n = value->integer())
      return *n;
    auto list = value->integers();
    if (list && !list->empty()) {
      if (llvm::all_equal(*list))
        return list->front();
      fail("key " + architecture + "." + key +
           " differs from layer to layer, which is not supported");
      return 1;
    }
    wrongType(key, *value, "an integer");
    return 1;
  }
  double number(StringRef key) {
    const GgufValue *value = required(key);
    std::optional<double> n = value ? value->number() : 1.0;
    if (!n)
      wrongType(key, *value, "a number");
    return n.value_or(1.0);
  }
  void refuseUnknown();
  const std::string &message() const { return fault; }

private:
  const GgufFile &file;
  llvm::StringSet<> used;
  std::string fault;
};
} // namespace

/// What is left of the architecture's keys must say "off".
void KeyReader::refuseUnknown() {
  for (const auto &[key, value] : file.keys()) {
    StringRef name = key;
    if (!name.consume_front(architecture) || !name.consume_front(".") ||
        used.contains(name) || value.isOff())
      continue;
    if (name == "rope.scaling.type" && value.string() == StringRef("none"))
      continue;
    fail("key " + quotedName(key) + " is not supported");
  }
}

/// A float32 as the shortest decimal that reads back as it.
static double shortest(double value) {
  auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value)
    return value;
  for (int digits = 1; digits <= 9; ++digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    double parsed = std::strtod(text, nullptr);
    if (static_cast<float>(parsed) == narrow)
      return parsed;
  }
  return value;
}

/// A rope of `width` dims of a head, as config.json says it.
static json::Object rope(double theta, int64_t width, int64_t headDim) {
  double factor = headDim > 0 ? double(width) / double(headDim) : 0;
  if (static_cast<int64_t>(double(headDim) * factor) < width)
    factor = std::nextafter(factor, 2.0);
  return json::Object{{"rope_theta", theta}, {"partial_rotary_factor", factor}};
}

static json::Array layerTypes(KeyReader &in) {
  json::Array kinds;
  constexpr StringRef key = "attention.sliding_window_pattern";
  const GgufValue *value = in.required(key);
  if (!value)
    return kinds;
  auto slides = value->booleans();
  if (!slides) {
    in.wrongType(key, *value, "an array of bool");
    return kinds;
  }
  for (bool sliding : *slides)
    kinds.push_back(sliding ? "sliding_attention" : "full_attention");
  return kinds;
}

/// Ids of special tokens, where they are said.
static void addTokens(const GgufFile &file, json::Object &config,
                      KeyReader &in) {
  auto id = [&](StringRef name) -> std::optional<int64_t> {
    std::string key = ("tokenizer.ggml." + name + "_token_id").str();
    const GgufValue *value = file.find(key);
    if (!value)
      return std::nullopt;
    std::optional<int64_t> n = value->integer();
    if (!n)
      in.fail("key " + key + " is of type " + value->typeText() +
              "; expected an integer");
    return n;
  };
  if (auto bos = id("bos"))
    config["bos_token_id"] = *bos;
  if (auto pad = id("padding"))
    config["pad_token_id"] = *pad;
  json::Array eos;
  for (StringRef name : {"eos", "eot"})
    if (auto n = id(name); n && !llvm::is_contained(eos, json::Value(*n)))
      eos.push_back(*n);
  if (!eos.empty())
    config["eos_token_id"] = std::move(eos);
}

llvm::Expected<json::Object> sparkc::ggufConfig(const GgufFile &file) {
  const GgufValue *name = file.find("general.architecture");
  std::optional<StringRef> said = name ? name->string() : std::nullopt;
  if (said != StringRef(architecture))
    return importError(file.path(),
                       said ? "is a model of architecture " +
                                  quotedName(*said) + "; only '" +
                                  architecture + "' is supported"
                            : Twine("general.architecture is missing"));
  if (const GgufValue *type = file.find("general.type"))
    if (type->string() != StringRef("model"))
      return importError(file.path(), "general.type is not 'model'");

  KeyReader in(file);
  int64_t headDim = in.integer("attention.key_length");
  if (in.integer("attention.value_length") != headDim)
    in.fail("keys and values have different lengths, which is not supported");
  int64_t vocab = 0;
  if (in.get("vocab_size"))
    vocab = in.integer("vocab_size");
  else if (auto *table = file.findTensor("token_embd.weight"))
    vocab = table->info->shape.front();
  json::Object config{
      {"architectures", json::Array{"Spark2_5ForCausalLM"}},
      {"model_type", "spark2_5"},
      {"vocab_size", vocab},
      {"hidden_size", in.integer("embedding_length")},
      {"intermediate_size", in.integer("feed_forward_length")},
      {"num_hidden_layers", in.integer("block_count")},
      {"num_attention_heads", in.integer("attention.head_count")},
      {"num_key_value_heads", in.integer("attention.head_count_kv")},
      {"head_dim", headDim},
      {"max_position_embeddings", in.integer("context_length")},
      {"sliding_window", in.integer("attention.sliding_window")},
      {"rms_norm_eps", shortest(in.number("attention.layer_norm_rms_epsilon"))},
      {"tie_word_embeddings", !file.findTensor("output.weight")},
      {"layer_types", layerTypes(in)},
      {"rope_parameters",
       json::Object{
           {"full_attention", rope(shortest(in.number("rope.freq_base")),
                                   in.integer("rope.dimension_count"), headDim)},
           {"sliding_attention",
            rope(shortest(in.number("rope.freq_base_swa")),
                 in.integer("rope.dimension_count_swa"), headDim)}}},
      {"hidden_act", "gelu"},
      {"headwise_attn_output_gate", true},
      {"gate_attn_act_mode", "sigmoid"},
      {"attention_bias", false},
      {"mlp_bias", false}};
  addTokens(file, config, in);
  in.refuseUnknown();
  if (!in.ok())
    return importError(file.path(), in.message());
  return config;
}
