//===- ModelConfig.cpp - config.json of a Spark-X2.5 checkpoint -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/ModelConfig.h"
#include "dialect/import/ConfigReader.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"
#include "dialect/import/MappedFile.h"
#include "dialect/import/StoredCodes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>

using namespace sparkc;
namespace json = llvm::json;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

/// Keys that parseModelConfig gives a meaning or checks by name.
static constexpr StringLiteral understoodKeys[] = {"model_type",
                                                   "dtype",
                                                   "torch_dtype",
                                                   "vocab_size",
                                                   "hidden_size",
                                                   "intermediate_size",
                                                   "num_hidden_layers",
                                                   "num_attention_heads",
                                                   "num_key_value_heads",
                                                   "head_dim",
                                                   "max_position_embeddings",
                                                   "sliding_window",
                                                   "rms_norm_eps",
                                                   "tie_word_embeddings",
                                                   "layer_types",
                                                   "rope_parameters",
                                                   "rope_theta",
                                                   "partial_rotary_factor",
                                                   "rope_scaling",
                                                   "hidden_act",
                                                   "headwise_attn_output_gate",
                                                   "gate_attn_act_mode",
                                                   "attention_bias",
                                                   "mlp_bias",
                                                   "quantization_config",
                                                   "bos_token_id",
                                                   "eos_token_id",
                                                   "pad_token_id"};

/// Keys that say nothing about what a forward pass computes: bookkeeping,
/// training, and the generation settings that older checkpoints keep here.
static constexpr StringLiteral harmlessKeys[] = {
    "architectures",
    "auto_map",
    "transformers_version",
    "_name_or_path",
    "name_or_path",
    "_commit_hash",
    "model_name",
    "unsloth_version",
    "unsloth_fixed",
    "tokenizer_class",
    "processor_class",
    "use_cache",
    "cache_implementation",
    "initializer_range",
    "attention_dropout",
    "hidden_dropout",
    "resid_dropout",
    "embd_dropout",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "pretraining_tp",
    "gradient_checkpointing",
    "router_aux_loss_coef",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "return_dict",
    "return_dict_in_generate",
    "torchscript",
    "tf_legacy_loss",
    "use_bfloat16",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "finetuning_task",
    "task_specific_params",
    "prefix",
    "is_decoder",
    "chunk_size_feed_forward",
    "max_length",
    "min_length",
    "max_new_tokens",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "diversity_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "exponential_decay_length_penalty",
    "remove_invalid_values",
    "sep_token_id",
    "decoder_start_token_id"};

/// Keys that turn off something the graph always does, so false must not pass.
static constexpr StringLiteral alwaysOnKeys[] = {
    "use_sliding_window", "use_rope", "is_causal", "causal"};

int64_t ModelConfig::count(LayerKind kind) const {
  return llvm::count(layerKinds, kind);
}

static constexpr int64_t int32Max = std::numeric_limits<int32_t>::max();

static void readLayerKinds(ConfigReader &in, ModelConfig &config) {
  const json::Value *value = in.required("layer_types");
  if (!value)
    return;
  const json::Array *kinds = value->getAsArray();
  if (!kinds)
    return in.fail("layer_types is " + kindOf(*value) + ", not an array");
  if (static_cast<int64_t>(kinds->size()) != config.layers)
    return in.fail("layer_types has " + Twine(kinds->size()) +
                   " entries; num_hidden_layers is " + Twine(config.layers));
  for (size_t i = 0; i < kinds->size(); ++i) {
    std::optional<StringRef> kind = (*kinds)[i].getAsString();
    if (kind == StringRef("sliding_attention"))
      config.layerKinds.push_back(LayerKind::Sliding);
    else if (kind == StringRef("full_attention"))
      config.layerKinds.push_back(LayerKind::Full);
    else
      return in.fail("layer_types[" + Twine(i) + "] is " + shown((*kinds)[i]) +
                     "; only \"sliding_attention\" and \"full_attention\" are "
                     "supported");
  }
}

/// Any kind of rotary scaling but none at all is refused.
static void checkRopeType(ConfigReader &in, StringRef where) {
  for (StringRef key : {"rope_type", "type"}) {
    const json::Value *type = in.get(key);
    if (type && type->getAsString() != StringRef("default"))
      in.fail(where + key + " is " + shown(*type) +
              "; only \"default\" is supported");
  }
}

static Rope readRope(const json::Object &parameters, StringRef kind,
                     bool needed, int64_t headDim, std::string &fault) {
  ConfigReader outer(parameters, fault, "rope_parameters.");
  const json::Value *value = needed ? outer.required(kind) : outer.get(kind);
  if (!value)
    return {};
  std::string where = ("rope_parameters." + kind + ".").str();
  const json::Object *object = value->getAsObject();
  if (!object) {
    outer.fail("rope_parameters." + kind + " is " + kindOf(*value) +
               ", not an object");
    return {};
  }
  ConfigReader in(*object, fault, where);
  checkRopeType(in, where);
  in.refuseUnknown(
      {"rope_theta", "partial_rotary_factor", "rope_type", "type"});
  Rope rope;
  rope.theta = in.number("rope_theta");
  rope.partialFactor = in.number("partial_rotary_factor");
  if (!in.ok())
    return rope;
  if (rope.theta < 1)
    in.fail(where + "rope_theta is " + shown(*in.get("rope_theta")) +
            "; at least 1 is needed");
  double width = static_cast<double>(headDim) * rope.partialFactor;
  if (width < 2 || width > static_cast<double>(headDim) ||
      static_cast<int64_t>(width) % 2) {
    in.fail(where + "partial_rotary_factor " +
            shown(*in.get("partial_rotary_factor")) + " of head_dim " +
            Twine(headDim) + " gives a rotary width of " +
            Twine(width < 1e9 ? static_cast<int64_t>(width) : int32Max) +
            "; an even width from 2 to " + Twine(headDim) + " is needed");
    return rope;
  }
  rope.width = static_cast<int64_t>(width);
  return rope;
}

/// A key at top level that rope_parameters overrides: it may repeat one of the
/// two values there, but not contradict both.
static void checkRepeated(ConfigReader &in, StringRef key, double full,
                          double sliding) {
  const json::Value *value = in.get(key);
  if (!value)
    return;
  std::optional<double> n = value->getAsNumber();
  if (!n || (*n != full && *n != sliding))
    in.fail(key + " is " + shown(*value) +
            ", which contradicts rope_parameters");
}

static void readRopes(ConfigReader &in, ModelConfig &config,
                      std::string &fault) {
  const json::Value *value = in.required("rope_parameters");
  if (!value)
    return;
  const json::Object *parameters = value->getAsObject();
  if (!parameters)
    return in.fail("rope_parameters is " + kindOf(*value) + ", not an object");
  auto rope = [&](StringRef kind, LayerKind of) {
    return readRope(*parameters, kind, config.count(of) > 0, config.headDim,
                    fault);
  };
  config.ropeFull = rope("full_attention", LayerKind::Full);
  config.ropeSliding = rope("sliding_attention", LayerKind::Sliding);
  ConfigReader inner(*parameters, fault, "rope_parameters.");
  checkRopeType(inner, "rope_parameters.");
  inner.refuseUnknown(
      {"full_attention", "sliding_attention", "rope_type", "type"});
  checkRepeated(in, "rope_theta", config.ropeFull.theta,
                config.ropeSliding.theta);
  checkRepeated(in, "partial_rotary_factor", config.ropeFull.partialFactor,
                config.ropeSliding.partialFactor);
  if (const json::Value *scaling = in.get("rope_scaling")) {
    const json::Object *object = scaling->getAsObject();
    if (!object)
      return in.fail("rope_scaling is " + shown(*scaling) +
                     "; rotary scaling is not supported");
    ConfigReader scaled(*object, fault, "rope_scaling.");
    checkRopeType(scaled, "rope_scaling.");
    scaled.refuseUnknown({"rope_type", "type"});
  }
}

static std::optional<int64_t> readToken(ConfigReader &in, StringRef key,
                                        const json::Value *value,
                                        int64_t vocab) {
  if (!value)
    return std::nullopt;
  std::optional<int64_t> id = integerOf(*value);
  if (id == -1) // how some checkpoints say "none"
    return std::nullopt;
  if (!id || *id < 0 || *id >= vocab)
    in.fail(key + " is " + shown(*value) + "; a token id below vocab_size " +
            Twine(vocab) + " is needed");
  return id;
}

static void readTokens(ConfigReader &in, ModelConfig &config) {
  config.bos =
      readToken(in, "bos_token_id", in.get("bos_token_id"), config.vocab);
  config.pad =
      readToken(in, "pad_token_id", in.get("pad_token_id"), config.vocab);
  const json::Value *eos = in.get("eos_token_id");
  auto add = [&](const json::Value *value) {
    if (auto id = readToken(in, "eos_token_id", value, config.vocab))
      config.eos.push_back(*id);
  };
  if (const json::Array *list = eos ? eos->getAsArray() : nullptr)
    for (const json::Value &value : *list)
      add(&value);
  else
    add(eos);
}

/// What must hold before any size is worth reading.
static void checkKind(ConfigReader &in) {
  in.mustBe("model_type", "spark2_5");
  in.mustBe("hidden_act", "gelu"); // the exact one, with erf
  if (!in.boolean("headwise_attn_output_gate"))
    in.fail("headwise_attn_output_gate is false; only gated heads are "
            "supported");
  in.mustBe("gate_attn_act_mode", "sigmoid");
  in.mustNotBeTrue("attention_bias", "biases are not supported");
  in.mustNotBeTrue("mlp_bias", "biases are not supported");
  for (StringRef key : alwaysOnKeys)
    if (const json::Value *value = in.get(key))
      if (value->getAsBoolean() != true)
        in.fail(key + " is " + shown(*value) + "; only true is supported");
}

static void readSizes(ConfigReader &in, ModelConfig &config) {
  config.vocab = in.integer("vocab_size", 1, 1 << 24);
  config.hidden = in.integer("hidden_size", 1, 1 << 18);
  config.intermediate = in.integer("intermediate_size", 1, 1 << 20);
  config.layers = in.integer("num_hidden_layers", 1, 4096);
  config.heads = in.integer("num_attention_heads", 1, 1024);
  config.kvHeads = in.integer("num_key_value_heads", 1, 1024);
  if (!in.get("head_dim"))
    in.fail("head_dim is missing (it does not follow from hidden_size and "
            "num_attention_heads)");
  config.headDim = in.integer("head_dim", 2, 1024);
  config.maxContext = in.integer("max_position_embeddings", 1, int32Max);
  config.rmsEps = in.number("rms_norm_eps");
  config.tied = in.boolean("tie_word_embeddings");
  if (!in.ok())
    return;
  if (config.heads % config.kvHeads)
    in.fail("num_attention_heads " + Twine(config.heads) +
            " is not a multiple of num_key_value_heads " +
            Twine(config.kvHeads));
  if (config.headDim % 2)
    in.fail("head_dim " + Twine(config.headDim) + " is odd");
  if (config.rmsEps >= 1)
    in.fail("rms_norm_eps is " + shown(*in.get("rms_norm_eps")) +
            "; a number below 1 is needed");
}

llvm::Expected<ModelConfig> sparkc::parseModelConfig(StringRef text,
                                                     StringRef path) {
  llvm::Expected<json::Object> object = parseJsonObject(text, path);
  if (!object)
    return object.takeError();
  ModelConfig config;
  std::string fault;
  ConfigReader in(*object, fault);

  checkKind(in);
  if (const json::Value *q = in.get("quantization_config"); q && !isOff(*q))
    config.codes = readQuantizationConfig(*q, fault);
  readSizes(in, config);
  if (in.ok())
    readLayerKinds(in, config);
  if (in.ok()) {
    if (config.count(LayerKind::Sliding) || in.get("sliding_window"))
      config.slidingWindow = in.integer("sliding_window", 1, int32Max);
    readRopes(in, config, fault);
    readTokens(in, config);
  }
  std::vector<StringLiteral> known(std::begin(understoodKeys),
                                   std::end(understoodKeys));
  llvm::append_range(known, harmlessKeys);
  llvm::append_range(known, alwaysOnKeys);
  in.refuseUnknown(known);
  if (!in.ok())
    return importError(path, fault);

  config.modelType = "spark2_5";
  for (StringRef key : {"dtype", "torch_dtype"})
    if (auto dtype = object->getString(key); dtype && config.dtype.empty())
      config.dtype = dtype->str();
  return config;
}

llvm::Expected<ModelConfig> sparkc::readModelConfig(StringRef path) {
  llvm::Expected<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  constexpr uint64_t most = 16 << 20;
  if ((*file)->size() > most)
    return importError(path, Twine((*file)->size()) +
                                 " bytes are too many for a config.json");
  return parseModelConfig(llvm::toStringRef((*file)->bytes()), path);
}
