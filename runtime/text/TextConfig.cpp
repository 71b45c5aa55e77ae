//===- TextConfig.cpp - Reading the configs beside a tokenizer ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Json.h"
#include "runtime/text/TokenizerSpec.h"

#include <cmath>

using namespace sparkc;

const Json *sparkc::find(const Json &root,
                         std::initializer_list<std::string> path) {
  const Json *at = &root;
  for (const std::string &key : path) {
    if (!at->is_object())
      return nullptr;
    auto it = at->find(key);
    if (it == at->end())
      return nullptr;
    at = &*it;
  }
  return at;
}

std::string sparkc::typeOf(const Json &value) {
  const Json *type = find(value, {"type"});
  return type && type->is_string() ? type->get<std::string>() : "unknown";
}

std::string sparkc::shown(const Json &value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                Json::error_handler_t::replace);
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text;
}

bool sparkc::readTokenId(const Json &value, uint32_t &id) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxTokenId)
    return false;
  id = static_cast<uint32_t>(value.get<uint64_t>());
  return true;
}

namespace {
/// Stops a parse that nests too deeply for the value's destructor and copies.
struct DepthLimit {
  bool &tooDeep;
  bool operator()(int depth, Json::parse_event_t, Json &) {
    tooDeep |= depth > 64;
    return !tooDeep;
  }
};
} // namespace

bool sparkc::parseObject(std::string_view text, Json &value,
                         std::string &error) {
  value = Json::object();
  if (text.empty())
    return true;
  bool tooDeep = false;
  value = Json::parse(text.begin(), text.end(), DepthLimit{tooDeep},
                      /*allow_exceptions=*/false);
  if (tooDeep)
    error = "nested too deeply";
  else if (value.is_discarded())
    error = "not JSON";
  else if (!value.is_object())
    error = "not an object";
  else
    return true;
  return false;
}

/// A token in tokenizer_config.json: its text, or an object with "content".
static bool readTokenText(const Json &root, const char *key,
                          std::optional<std::string> &out, std::string &error) {
  const Json *value = find(root, {key});
  if (value && value->is_object())
    value = find(*value, {"content"});
  if (!value || value->is_null())
    return true;
  if (!value->is_string()) {
    error = std::string(key) + ": not a string";
    return false;
  }
  out = value->get<std::string>();
  return true;
}

static bool readFlag(const Json &root, const char *key,
                     std::optional<bool> &out, std::string &error) {
  const Json *value = find(root, {key});
  if (!value || value->is_null())
    return true;
  if (!value->is_boolean()) {
    error = std::string(key) + ": not true or false";
    return false;
  }
  out = value->get<bool>();
  return true;
}

static bool readNumber(const Json &root, const char *key, double low,
                       double high, std::optional<double> &out,
                       std::string &error) {
  const Json *value = find(root, {key});
  if (!value || value->is_null())
    return true;
  double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= low && number <= high)) {
    error = std::string(key) + ": " + shown(*value) + " is out of range";
    return false;
  }
  out = number;
  return true;
}

bool sparkc::readTokenizerConfig(std::string_view json, TokenizerConfig &config,
                                 std::string &error) {
  Json root;
  if (!parseObject(json, root, error) ||
      !readFlag(root, "add_bos_token", config.addBos, error) ||
      !readFlag(root, "add_eos_token", config.addEos, error) ||
      !readTokenText(root, "bos_token", config.bos, error) ||
      !readTokenText(root, "eos_token", config.eos, error) ||
      !readTokenText(root, "pad_token", config.pad, error))
    return false;
  const Json *chat = find(root, {"chat_template"});
  // Of a list of named ones, that which is for any chat.
  const Json *given = chat && chat->is_string() ? chat : nullptr;
  if (chat && chat->is_array())
    for (const Json &named : *chat) {
      const Json *name = find(named, {"name"});
      if (name && *name == "default")
        given = find(named, {"template"});
    }
  if (given && given->is_string())
    config.chatTemplate = given->get<std::string>();
  return true;
}

bool sparkc::readGenerationConfig(std::string_view json,
                                  GenerationConfig &config,
                                  std::string &error) {
  Json root;
  std::optional<double> topK;
  if (!parseObject(json, root, error) ||
      !readFlag(root, "do_sample", config.doSample, error) ||
      !readNumber(root, "temperature", 0, 1e6, config.temperature, error) ||
      !readNumber(root, "top_p", 0, 1, config.topP, error) ||
      !readNumber(root, "top_k", -1, 1e9, topK, error))
    return false;
  if (topK) // -1 is a way to say: no limit
    config.topK = *topK > 0 ? static_cast<uint32_t>(*topK) : 0;
  auto badId = [&](const char *key, const Json &value) {
    error = std::string(key) + ": " + shown(value) + " is not a token id";
    return false;
  };
  uint32_t id;
  const Json *bos = find(root, {"bos_token_id"});
  if (bos && !bos->is_null()) {
    if (!readTokenId(*bos, id))
      return badId("bos_token_id", *bos);
    config.bos = id;
  }
  const Json *eos = find(root, {"eos_token_id"});
  if (!eos || eos->is_null())
    return true;
  if (readTokenId(*eos, id)) {
    config.eos.push_back(id);
    return true;
  }
  if (!eos->is_array())
    return badId("eos_token_id", *eos);
  for (const Json &value : *eos) {
    if (!readTokenId(value, id))
      return badId("eos_token_id", value);
    config.eos.push_back(id);
  }
  return true;
}
