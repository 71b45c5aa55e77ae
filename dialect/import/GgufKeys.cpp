//===- GgufKeys.cpp - A model's keys for a GGUF file ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/GgufWriter.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace sparkc;
namespace json = llvm::json;
using llvm::StringRef;
using llvm::Twine;

/// Types of tokens.
enum : int32_t { Normal = 1, Control = 3, UserDefined = 4, Unused = 5 };

static llvm::Error copyKeys(GgufWriter &writer, StringRef path) {
  auto file = GgufFile::open(path);
  if (!file)
    return file.takeError();
  for (const auto &[key, value] : file->keys())
    if (key != "general.alignment" && key != "general.file_type" &&
        !key.starts_with("split.") && !key.starts_with("quantize."))
      writer.add(key, value);
  return llvm::Error::success();
}

static void addConfig(GgufWriter &writer, const ModelConfig &c) {
  auto key = [](StringRef name) { return ("spark2_5." + name).str(); };
  auto u32 = [&](StringRef name, int64_t value) {
    writer.add(key(name), static_cast<uint32_t>(value));
  };
  writer.add("general.architecture", "spark2_5");
  writer.add("general.type", "model");
  u32("block_count", c.layers);
  u32("context_length", c.maxContext);
  u32("embedding_length", c.hidden);
  u32("feed_forward_length", c.intermediate);
  u32("vocab_size", c.vocab);
  u32("attention.head_count", c.heads);
  u32("attention.head_count_kv", c.kvHeads);
  u32("attention.key_length", c.headDim);
  u32("attention.value_length", c.headDim);
  writer.add(key("attention.layer_norm_rms_epsilon"), float(c.rmsEps));
  u32("attention.sliding_window", std::max<int64_t>(c.slidingWindow, 1));
  auto slides = std::make_unique<bool[]>(c.layers);
  for (int64_t i = 0; i < c.layers; ++i)
    slides[i] = c.layerKinds[i] == LayerKind::Sliding;
  writer.add(key("attention.sliding_window_pattern"),
             llvm::ArrayRef<bool>(slides.get(), c.layers));
  // A kind that no layer is of needs values all the same.
  const Rope &full = c.ropeFull.width ? c.ropeFull : c.ropeSliding;
  const Rope &sliding = c.ropeSliding.width ? c.ropeSliding : c.ropeFull;
  writer.add(key("rope.freq_base"), float(full.theta));
  writer.add(key("rope.freq_base_swa"), float(sliding.theta));
  u32("rope.dimension_count", full.width);
  u32("rope.dimension_count_swa", sliding.width);
}

static llvm::Expected<json::Object> readJson(StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return parseJsonObject(llvm::toStringRef((*file)->bytes()), path);
}

namespace {
/// The vocabulary of a tokenizer.json as GGUF has it.
class Tokens {
public:
  Tokens(StringRef path, int64_t vocab)
      : path(path), tokens(vocab), types(vocab, Unused) {}
  llvm::Error read(const json::Object &root);
  void write(GgufWriter &writer);

private:
  llvm::Error put(StringRef text, const json::Value *id, int32_t type);
  llvm::Error readMerge(const json::Value &merge);

  StringRef path;
  std::vector<std::string> tokens, merges;
  std::vector<int32_t> types;
};
} // namespace

llvm::Error Tokens::put(StringRef text, const json::Value *id, int32_t type) {
  std::optional<int64_t> n = id ? integerOf(*id) : std::nullopt;
  if (!n || *n < 0 || *n >= int64_t(tokens.size()))
    return importError(path, "the id of token " + quotedName(text) +
                                 " is none below vocab_size " +
                                 Twine(tokens.size()));
  tokens[*n] = text.str();
  types[*n] = type;
  return llvm::Error::success();
}

llvm::Error Tokens::readMerge(const json::Value &merge) {
  if (auto text = merge.getAsString()) {
    merges.push_back(text->str());
    return llvm::Error::success();
  }
  const json::Array *pair = merge.getAsArray();
  auto left = pair && pair->size() == 2 ? (*pair)[0].getAsString()
                                        : std::nullopt;
  auto right = left ? (*pair)[1].getAsString() : std::nullopt;
  if (!right)
    return importError(path, "model.merges: entry " + Twine(merges.size()) +
                                 " is not a pair of tokens");
  merges.push_back((*left + " " + *right).str());
  return llvm::Error::success();
}

llvm::Error Tokens::read(const json::Object &root) {
  const json::Object *model = root.getObject("model");
  const json::Object *vocab = model ? model->getObject("vocab") : nullptr;
  const json::Array *list = model ? model->getArray("merges") : nullptr;
  if (!vocab || !list)
    return importError(path, "has no model with vocab and merges");
  for (const auto &[text, id] : *vocab)
    if (llvm::Error error = put(text, &id, Normal))
      return error;
  for (const json::Value &merge : *list)
    if (llvm::Error error = readMerge(merge))
      return error;
  if (const json::Array *added = root.getArray("added_tokens"))
    for (const json::Value &entry : *added) {
      const json::Object *token = entry.getAsObject();
      auto text = token ? token->getString("content") : std::nullopt;
      if (!text)
        return importError(path, "added_tokens: an entry without content");
      bool special = token->getBoolean("special").value_or(false);
      if (llvm::Error error = put(*text, token->get("id"),
                                  special ? Control : UserDefined))
        return error;
    }
  for (size_t i = 0; i < tokens.size(); ++i)
    if (types[i] == Unused)
      tokens[i] = "[PAD" + std::to_string(i) + "]";
  return llvm::Error::success();
}

void Tokens::write(GgufWriter &writer) {
  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", "spark2_5");
  writer.add("tokenizer.ggml.tokens", llvm::ArrayRef(tokens));
  writer.add("tokenizer.ggml.token_type", llvm::ArrayRef(types));
  writer.add("tokenizer.ggml.merges", llvm::ArrayRef(merges));
}

/// The chat template and what tokenizer_config.json says of a text's ends.
static llvm::Error addTokenizerConfig(GgufWriter &writer,
                                      const Checkpoint::TextFiles &text) {
  std::optional<std::string> chat;
  bool bos = false, eos = false;
  if (!text.tokenizerConfig.empty()) {
    auto config = readJson(text.tokenizerConfig);
    if (!config)
      return config.takeError();
    bos = config->getBoolean("add_bos_token").value_or(false);
    eos = config->getBoolean("add_eos_token").value_or(false);
    if (auto jinja = config->getString("chat_template"))
      chat = jinja->str();
  }
  writer.add("tokenizer.ggml.add_bos_token", bos);
  writer.add("tokenizer.ggml.add_eos_token", eos);
  if (!text.chatTemplate.empty()) {
    auto file = MappedFile::open(text.chatTemplate);
    if (!file)
      return file.takeError();
    chat = llvm::toStringRef((*file)->bytes()).str();
  }
  if (chat)
    writer.add("tokenizer.chat_template", StringRef(*chat));
  return llvm::Error::success();
}

llvm::Error sparkc::addModelKeys(GgufWriter &writer,
                                 const Checkpoint &checkpoint,
                                 StringRef source) {
  if (checkpoint.isGguf())
    return copyKeys(writer, source);
  const ModelConfig &config = checkpoint.config();
  addConfig(writer, config);
  writer.add("general.name",
             llvm::sys::path::filename(source.rtrim('/')));
  const Checkpoint::TextFiles &text = checkpoint.textFiles();
  if (text.tokenizer.empty()) {
    writer.add("tokenizer.ggml.model", "no_vocab");
    return llvm::Error::success();
  }
  auto root = readJson(text.tokenizer);
  if (!root)
    return root.takeError();
  Tokens tokens(text.tokenizer, config.vocab);
  if (llvm::Error error = tokens.read(*root))
    return error;
  tokens.write(writer);
  auto token = [&](StringRef name, std::optional<int64_t> id) {
    if (id)
      writer.add(("tokenizer.ggml." + name + "_token_id").str(),
                 static_cast<uint32_t>(*id));
  };
  token("bos", config.bos);
  if (!config.eos.empty())
    token("eos", config.eos.front());
  token("padding", config.pad);
  return addTokenizerConfig(writer, text);
}
