//===- GgufText.cpp - Tokenizer and templates from GGUF keys --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GGUF names a pre-tokenizer and leaves its patterns to the reader; those of
// "spark2_5" stand here. Tokens and merges are spelled in the byte alphabet, as
// in a tokenizer.json.
//
//===----------------------------------------------------------------------===//
#include "dialect/import/GgufModel.h"
#include "dialect/import/ImportError.h"

#include "llvm/Support/raw_ostream.h"

using namespace sparkc;
namespace json = llvm::json;
using llvm::StringRef;
using llvm::Twine;

/// Applied one after the other; each match is a piece of its own.
static constexpr const char *patterns[] = {
    R"(\p{N}{1,3})",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
    R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)",
    R"(\p{N})"};

/// llama.cpp's types of tokens that are matched in the text itself.
enum TokenType : int64_t { UnknownToken = 2, ControlToken = 3, UserToken = 4 };

static std::optional<StringRef> textOf(const GgufFile &file, StringRef key) {
  const GgufValue *value = file.find(key);
  return value ? value->string() : std::nullopt;
}

bool sparkc::ggufHasTokenizer(const GgufFile &file) {
  const GgufValue *model = file.find("tokenizer.ggml.model");
  return model && model->string() != StringRef("no_vocab");
}

namespace {
/// What a tokenizer.json is written from, checked.
struct Vocabulary {
  std::vector<StringRef> tokens, merges;
  std::vector<int64_t> types; ///< empty, or one for each token
};
} // namespace

static llvm::Error checkTexts(const GgufFile &file, StringRef what,
                              llvm::ArrayRef<StringRef> texts) {
  for (size_t i = 0; i < texts.size(); ++i)
    if (!json::isUTF8(texts[i]))
      return importError(file.path(), what + "[" + Twine(i) +
                                          "] is not UTF-8: " +
                                          quotedName(texts[i]));
  return llvm::Error::success();
}

static llvm::Expected<Vocabulary> readVocabulary(const GgufFile &file) {
  auto fail = [&](const Twine &message) {
    return importError(file.path(), message);
  };
  auto model = textOf(file, "tokenizer.ggml.model");
  if (model != StringRef("gpt2"))
    return fail("tokenizer.ggml.model is " + quotedName(model.value_or("")) +
                "; only byte-level BPE ('gpt2') is supported");
  auto pre = textOf(file, "tokenizer.ggml.pre");
  if (pre != StringRef("spark2_5"))
    return fail("tokenizer.ggml.pre is " + quotedName(pre.value_or("")) +
                "; only 'spark2_5' is supported");
  Vocabulary vocabulary;
  for (auto [key, list] :
       {std::pair{StringRef("tokenizer.ggml.tokens"), &vocabulary.tokens},
        std::pair{StringRef("tokenizer.ggml.merges"), &vocabulary.merges}}) {
    const GgufValue *value = file.find(key);
    auto strings = value ? value->strings() : std::nullopt;
    if (!strings)
      return fail(key + (value ? " is no array of strings" : " is missing"));
    *list = std::move(*strings);
    if (llvm::Error error = checkTexts(file, key, *list))
      return error;
  }
  if (const GgufValue *value = file.find("tokenizer.ggml.token_type")) {
    auto types = value->integers();
    if (!types)
      return fail("tokenizer.ggml.token_type is no array of integers");
    if (types->size() != vocabulary.tokens.size())
      return fail("tokenizer.ggml.token_type has " + Twine(types->size()) +
                  " entries for " + Twine(vocabulary.tokens.size()) +
                  " tokens");
    vocabulary.types = std::move(*types);
  }
  return vocabulary;
}

static void writePreTokenizer(json::OStream &out) {
  out.attributeObject("pre_tokenizer", [&] {
    out.attribute("type", "Sequence");
    out.attributeArray("pretokenizers", [&] {
      for (const char *pattern : patterns)
        out.object([&] {
          out.attribute("type", "Split");
          out.attribute("pattern", json::Object{{"Regex", pattern}});
          out.attribute("behavior", "Isolated");
          out.attribute("invert", false);
        });
      out.object([&] {
        out.attribute("type", "ByteLevel");
        out.attribute("add_prefix_space", false);
        out.attribute("trim_offsets", true);
        out.attribute("use_regex", false);
      });
    });
  });
}

static llvm::Expected<std::string> tokenizerJson(const GgufFile &file) {
  auto vocabulary = readVocabulary(file);
  if (!vocabulary)
    return vocabulary.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("version", "1.0");
    out.attributeArray("added_tokens", [&] {
      for (size_t id = 0; id < vocabulary->types.size(); ++id) {
        int64_t type = vocabulary->types[id];
        if (type != UnknownToken && type != ControlToken && type != UserToken)
          continue;
        out.object([&] {
          out.attribute("id", int64_t(id));
          out.attribute("content", vocabulary->tokens[id]);
          for (StringRef flag : {"single_word", "lstrip", "rstrip",
                                 "normalized"})
            out.attribute(flag, false);
          out.attribute("special", type != UserToken);
        });
      }
    });
    writePreTokenizer(out);
    out.attributeObject("decoder",
                        [&] { out.attribute("type", "ByteLevel"); });
    out.attributeObject("model", [&] {
      out.attribute("type", "BPE");
      out.attributeObject("vocab", [&] {
        for (size_t id = 0; id < vocabulary->tokens.size(); ++id)
          out.attribute(vocabulary->tokens[id], int64_t(id));
      });
      out.attributeArray("merges", [&] {
        for (StringRef merge : vocabulary->merges)
          out.value(merge);
      });
    });
  });
  out.flush();
  return text;
}

/// bos_token and so on by their texts, whether a text gets them.
static llvm::Expected<std::string> tokenizerConfig(const GgufFile &file) {
  json::Object config;
  for (StringRef flag : {"add_bos_token", "add_eos_token"}) {
    const GgufValue *value = file.find(("tokenizer.ggml." + flag).str());
    if (value && !value->boolean())
      return importError(file.path(),
                         "tokenizer.ggml." + flag + " is no bool");
    config[flag] = value && *value->boolean();
  }
  const GgufValue *list = file.find("tokenizer.ggml.tokens");
  auto tokens = list ? list->strings() : std::nullopt;
  for (auto [key, name] : {std::pair{"bos", "bos_token"},
                           std::pair{"eos", "eos_token"},
                           std::pair{"padding", "pad_token"}}) {
    const GgufValue *value =
        file.find((Twine("tokenizer.ggml.") + key + "_token_id").str());
    if (!value || !tokens)
      continue;
    std::optional<int64_t> id = value->integer();
    if (!id || *id < 0 || uint64_t(*id) >= tokens->size())
      return importError(file.path(), Twine("tokenizer.ggml.") + key +
                                          "_token_id is no token");
    config[name] = json::fixUTF8((*tokens)[*id]);
  }
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(config));
  return text;
}

/// Tokens that end a text, and what the file advises for sampling.
static llvm::Expected<std::string> generationConfig(const GgufFile &file) {
  auto config = ggufConfig(file);
  if (!config)
    return config.takeError();
  json::Object generation;
  for (StringRef key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (json::Value *value = config->get(key))
      generation[key] = std::move(*value);
  for (auto [key, name] : {std::pair{"temp", "temperature"},
                           std::pair{"top_p", "top_p"},
                           std::pair{"top_k", "top_k"}})
    if (const GgufValue *value =
            file.find((Twine("general.sampling.") + key).str()))
      if (std::optional<double> n = value->number())
        generation[name] = *n;
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(generation));
  return text;
}

llvm::Expected<std::string> sparkc::ggufText(const GgufFile &file,
                                             StringRef kind) {
  if (!ggufHasTokenizer(file))
    return std::string();
  if (kind == "tokenizer")
    return tokenizerJson(file);
  if (kind == "tokenizer_config")
    return tokenizerConfig(file);
  if (kind == "generation_config")
    return generationConfig(file);
  return textOf(file, "tokenizer.chat_template").value_or("").str();
}
