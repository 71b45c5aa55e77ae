//===- ModelConfig.cpp - config.json of a Spark-X2.5 checkpoint -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/ModelConfig.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"
#include "dialect/import/MappedFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

using namespace sparkc;
namespace json = llvm::json;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

/// Keys that parseModelConfig gives a meaning or checks by name.
static constexpr StringLiteral understoodKeys[] = {
    "model_type", "dtype", "torch_dtype", "vocab_size", "hidden_size",
    "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "max_position_embeddings",
    "sliding_window", "rms_norm_eps", "tie_word_embeddings", "layer_types",
    "rope_parameters", "rope_theta", "partial_rotary_factor", "rope_scaling",
    "hidden_act", "headwise_attn_output_gate", "gate_attn_act_mode",
    "attention_bias", "mlp_bias", "quantization_config", "bos_token_id",
    "eos_token_id", "pad_token_id"};

/// Keys that say nothing about what a forward pass computes: bookkeeping,
/// training, and the generation settings that older checkpoints keep here.
static constexpr StringLiteral harmlessKeys[] = {
    "architectures", "auto_map", "transformers_version", "_name_or_path",
    "name_or_path", "_commit_hash", "model_name", "unsloth_version",
    "unsloth_fixed", "tokenizer_class", "processor_class", "use_cache",
    "cache_implementation", "initializer_range", "attention_dropout",
    "hidden_dropout", "resid_dropout", "embd_dropout", "attn_implementation",
    "_attn_implementation", "_attn_implementation_autoset", "pretraining_tp",
    "gradient_checkpointing", "router_aux_loss_coef", "output_attentions",
    "output_hidden_states", "output_scores", "return_dict",
    "return_dict_in_generate", "torchscript", "tf_legacy_loss", "use_bfloat16",
    "id2label", "label2id", "num_labels", "problem_type", "finetuning_task",
    "task_specific_params", "prefix", "is_decoder", "chunk_size_feed_forward",
    "max_length", "min_length", "max_new_tokens", "do_sample",
    "early_stopping", "num_beams", "num_beam_groups", "num_return_sequences",
    "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
    "length_penalty", "diversity_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens",
    "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id",
    "exponential_decay_length_penalty", "remove_invalid_values",
    "sep_token_id", "decoder_start_token_id"};

/// Keys that turn off something the graph always does, so false must not pass.
static constexpr StringLiteral alwaysOnKeys[] = {
    "use_sliding_window", "use_rope", "is_causal", "causal"};

int64_t ModelConfig::count(LayerKind kind) const {
  return llvm::count(layerKinds, kind);
}

/// A value for a message, cut where it is long.
static std::string shown(const json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  if (text.size() > 60)
    text = json::fixUTF8(StringRef(text).take_front(60)) + "...";
  return text;
}

/// Whether a value says that a feature is not there.
static bool isOff(const json::Value &value) {
  switch (value.kind()) {
  case json::Value::Null:
    return true;
  case json::Value::Boolean:
    return !*value.getAsBoolean();
  case json::Value::Number:
    return *value.getAsNumber() == 0;
  case json::Value::String:
    return value.getAsString()->empty();
  case json::Value::Array:
    return value.getAsArray()->empty();
  case json::Value::Object:
    return value.getAsObject()->empty();
  }
  return false;
}

static constexpr int64_t int32Max = std::numeric_limits<int32_t>::max();

namespace {
/// Reads members of one JSON object. Keeps the first fault and then answers
/// with harmless values, so that a caller checks once.
class Reader {
public:
  /// where: what stands before a key in messages, e.g. "rope_parameters.".
  Reader(const json::Object &object, std::string &fault, const Twine &where = "")
      : object(object), fault(fault), where(where.str()) {}

  bool ok() const { return fault.empty(); }
  void fail(const Twine &message) {
    if (ok())
      fault = message.str();
  }
  /// The value, or null where the key is missing or JSON's null.
  const json::Value *get(StringRef key) const {
    const json::Value *value = object.get(key);
    return value && value->kind() != json::Value::Null ? value : nullptr;
  }
  const json::Value *required(StringRef key) {
    const json::Value *value = get(key);
    if (!value)
      fail(where + key + " is missing");
    return value;
  }
  int64_t integer(StringRef key, int64_t least, int64_t most);
  double number(StringRef key);
  bool boolean(StringRef key);
  void mustBe(StringRef key, StringRef only);
  void mustNotBeTrue(StringRef key, StringRef why);
  void refuseUnknown(llvm::ArrayRef<StringLiteral> known);

  const json::Object &object;

private:
  std::string &fault;
  std::string where;
};
} // namespace

int64_t Reader::integer(StringRef key, int64_t least, int64_t most) {
  const json::Value *value = required(key);
  if (!value)
    return least;
  std::optional<int64_t> n = value->getAsInteger();
  if (n && *n >= least && *n <= most)
    return *n;
  fail(where + key + " is " + shown(*value) + "; an integer from " +
       Twine(least) + " to " + Twine(most) + " is needed");
  return least;
}

double Reader::number(StringRef key) {
  const json::Value *value = required(key);
  if (!value)
    return 1;
  std::optional<double> n = value->getAsNumber();
  if (n && std::isfinite(*n) && *n > 0)
    return *n;
  fail(where + key + " is " + shown(*value) + "; a number above 0 is needed");
  return 1;
}

bool Reader::boolean(StringRef key) {
  const json::Value *value = required(key);
  if (!value)
    return false;
  if (std::optional<bool> flag = value->getAsBoolean())
    return *flag;
  fail(where + key + " is " + shown(*value) + "; true or false is needed");
  return false;
}

void Reader::mustBe(StringRef key, StringRef only) {
  const json::Value *value = required(key);
  if (value && value->getAsString() != only)
    fail(where + key + " is " + shown(*value) + "; only \"" + only +
         "\" is supported");
}

void Reader::mustNotBeTrue(StringRef key, StringRef why) {
  const json::Value *value = get(key);
  if (value && value->getAsBoolean() != false)
    fail(where + key + " is " + shown(*value) + "; " + why);
}

void Reader::refuseUnknown(llvm::ArrayRef<StringLiteral> known) {
  for (StringRef key : sortedKeys(object)) {
    const json::Value &value = *object.get(key);
    if (!isOff(value) && !llvm::is_contained(known, key))
      fail("unknown key " + quoted(where + key.str()) + " (" + shown(value) +
           ") may change what the model computes");
  }
}

static void readLayerKinds(Reader &in, ModelConfig &config) {
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
      return in.fail("layer_types[" + Twine(i) + "] is " +
                     shown((*kinds)[i]) +
                     "; only \"sliding_attention\" and \"full_attention\" are "
                     "supported");
  }
}

/// Any kind of rotary scaling but none at all is refused.
static void checkRopeType(Reader &in, StringRef where) {
  for (StringRef key : {"rope_type", "type"}) {
    const json::Value *type = in.get(key);
    if (type && type->getAsString() != StringRef("default"))
      in.fail(where + key + " is " + shown(*type) +
              "; only \"default\" is supported");
  }
}

static Rope readRope(const json::Object &parameters, StringRef kind,
                     bool needed, int64_t headDim, std::string &fault) {
  Reader outer(parameters, fault, "rope_parameters.");
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
  Reader in(*object, fault, where);
  checkRopeType(in, where);
  in.refuseUnknown({"rope_theta", "partial_rotary_factor", "rope_type", "type"});
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
static void checkRepeated(Reader &in, StringRef key, double full,
                          double sliding) {
  const json::Value *value = in.get(key);
  if (!value)
    return;
  std::optional<double> n = value->getAsNumber();
  if (!n || (*n != full && *n != sliding))
    in.fail(key + " is " + shown(*value) + ", which contradicts rope_parameters");
}

static void readRopes(Reader &in, ModelConfig &config, std::string &fault) {
  const json::Value *value = in.required("rope_parameters");
  if (!value)
    return;
  const json::Object *parameters = value->getAsObject();
  if (!parameters)
    return in.fail("rope_parameters is " + kindOf(*value) + ", not an object");
  checkRopeType(in = Reader(*parameters, fault, "rope_parameters."), "");
}

static std::optional<int64_t> readToken(Reader &in, StringRef key,
                                        const json::Value *value,
                                        int64_t vocab) {
  if (!value)
    return std::nullopt;
  std::optional<int64_t> id = value->getAsInteger();
  if (id == -1) // how some checkpoints say "none"
    return std::nullopt;
  if (!id || *id < 0 || *id >= vocab)
    in.fail(key + " is " + shown(*value) + "; a token id below vocab_size " +
            Twine(vocab) + " is needed");
  return id;
}

static void readTokens(Reader &in, ModelConfig &config) {
  config.bos = readToken(in, "bos_token_id", in.get("bos_token_id"), config.vocab);
  config.pad = readToken(in, "pad_token_id", in.get("pad_token_id"), config.vocab);
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
