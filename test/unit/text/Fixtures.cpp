//===- Fixtures.cpp - Tokenizers for tests --------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/Fixtures.h"

#include "runtime/text/ByteAlphabet.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

using namespace sparkc;
using namespace sparkc::test;

std::string sparkc::test::readFile(const std::string &path) {
  std::ifstream in(std::string(SPARKC_SOURCE_DIR) + "/" + path,
                   std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

const Tokenizer &sparkc::test::sparkTiny() {
  static const std::unique_ptr<Tokenizer> tokenizer =
      build(Json::parse(readFile("examples/spark-tiny/tokenizer.json")),
            Json::parse(readFile("examples/spark-tiny/tokenizer_config.json")));
  return *tokenizer;
}

Json sparkc::test::smallTokenizer() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[spellByte(static_cast<uint8_t>(byte))] = byte;
  return {{"added_tokens",
           {{{"id", 256},
             {"content", "<s>"},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", false}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}};
}

void sparkc::test::addMerge(Json &tokenizer, const std::string &left,
                            const std::string &right) {
  Json &vocab = tokenizer["model"]["vocab"];
  if (!vocab.contains(left + right))
    vocab[left + right] = vocab.size() + tokenizer["added_tokens"].size();
  tokenizer["model"]["merges"].push_back({left, right});
}

std::unique_ptr<Tokenizer> sparkc::test::build(const Json &tokenizer,
                                               const Json &config,
                                               std::string &error) {
  TokenizerSpec spec;
  TokenizerConfig more;
  if (!readTokenizerJson(tokenizer.dump(), spec, error) ||
      !readTokenizerConfig(config.dump(), more, error))
    return nullptr;
  return Tokenizer::build(std::move(spec), more, {}, error);
}

std::unique_ptr<Tokenizer> sparkc::test::build(const Json &tokenizer,
                                               const Json &config) {
  std::string error;
  std::unique_ptr<Tokenizer> built = build(tokenizer, config, error);
  EXPECT_TRUE(built) << error;
  return built;
}

Ids sparkc::test::encode(const Tokenizer &tokenizer, std::string_view text,
                         EncodeOptions options) {
  Ids ids;
  std::string error;
  EXPECT_TRUE(tokenizer.encode(text, options, ids, error)) << error;
  return ids;
}

std::string sparkc::test::decode(const Tokenizer &tokenizer, const Ids &ids,
                                 bool showSpecial) {
  StreamDecoder decoder(tokenizer, showSpecial);
  std::string out;
  for (int32_t id : ids)
    decoder.add(id, out);
  decoder.finish(out);
  return out;
}
