//===- TokenizerFileTest.cpp - Files that are refused, and why ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/Fixtures.h"

#include "runtime/text/ModelText.h"

#include <gtest/gtest.h>

#include <functional>

using namespace sparkc;
using namespace sparkc::test;

static std::string whyNot(const Json &tokenizer,
                          const Json &config = Json::object()) {
  std::string error;
  EXPECT_FALSE(build(tokenizer, config, error));
  EXPECT_EQ(error.find('\n'), std::string::npos);
  return error;
}

static std::string whyNotText(std::string_view text) {
  TokenizerSpec spec;
  std::string error;
  EXPECT_FALSE(readTokenizerJson(text, spec, error));
  return error;
}

TEST(TokenizerFile, SaysWhatItDoesNotImplement) {
  struct Case {
    const char *error;
    std::function<void(Json &)> change;
  };
  const Case cases[] = {
      {"unknown key 'surprise'", [](Json &j) { j["surprise"] = 1; }},
      {"no model", [](Json &j) { j.erase("model"); }},
      {"model: not an object", [](Json &j) { j["model"] = 3; }},
      {"model.type: \"Unigram\" is not \"BPE\"",
       [](Json &j) { j["model"]["type"] = "Unigram"; }},
      {"model.dropout: 0.1 is not supported",
       [](Json &j) { j["model"]["dropout"] = 0.1; }},
      {"model.end_of_word_suffix: \"</w>\" is not supported",
       [](Json &j) { j["model"]["end_of_word_suffix"] = "</w>"; }},
      {"model.surprise: unknown key",
       [](Json &j) { j["model"]["surprise"] = 1; }},
      {"model.ignore_merges: not true or false",
       [](Json &j) { j["model"]["ignore_merges"] = 1; }},
      {"normalizer: NFC is not supported",
       [](Json &j) {
         j["normalizer"] = {{"type", "NFC"}};
       }},
      {"pre_tokenizer: not byte-level (no ByteLevel step)",
       [](Json &j) { j["pre_tokenizer"] = nullptr; }},
      {"pre_tokenizer: Metaspace is not supported",
       [](Json &j) { j["pre_tokenizer"]["type"] = "Metaspace"; }},
      {"pre_tokenizer: unknown is not supported",
       [](Json &j) { j["pre_tokenizer"] = "ByteLevel"; }},
      {"pre_tokenizer: add_prefix_space is not supported",
       [](Json &j) { j["pre_tokenizer"]["add_prefix_space"] = true; }},
      {"pre_tokenizer: unknown key 'x' of ByteLevel",
       [](Json &j) { j["pre_tokenizer"]["x"] = 1; }},
      {"pre_tokenizer: a step after ByteLevel is not supported",
       [](Json &j) {
         Json step = j["pre_tokenizer"];
         j["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", {step, step}}};
       }},
      {"pre_tokenizer: behavior \"Removed\" is not supported",
       [](Json &j) {
         j["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"Regex", "a"}}},
                               {"behavior", "Removed"}};
       }},
      {"post_processor: BertProcessing is not supported",
       [](Json &j) {
         j["post_processor"] = {{"type", "BertProcessing"}};
       }},
      {"decoder: WordPiece is not supported",
       [](Json &j) { j["decoder"]["type"] = "WordPiece"; }},
      {"added_tokens: not an array",
       [](Json &j) { j["added_tokens"] = Json::object(); }},
      {"added_tokens[0]: unknown key 'x'",
       [](Json &j) { j["added_tokens"][0]["x"] = 1; }},
      {"added_tokens[0]: no id",
       [](Json &j) { j["added_tokens"][0].erase("id"); }},
      {"added_tokens[0].id: -1 is not a token id",
       [](Json &j) { j["added_tokens"][0]["id"] = -1; }},
      {"added_tokens[0].id: 4194304 is not a token id",
       [](Json &j) { j["added_tokens"][0]["id"] = 4194304; }},
      {"added_tokens[0].content: not a string of characters",
       [](Json &j) { j["added_tokens"][0]["content"] = ""; }},
      {"added_tokens[0].special: not true or false",
       [](Json &j) { j["added_tokens"][0]["special"] = "yes"; }},
      {"added token '<s>': single_word is not supported",
       [](Json &j) { j["added_tokens"][0]["single_word"] = true; }},
      {"id 7 of '<s>' is already another token's",
       [](Json &j) { j["added_tokens"][0]["id"] = 7; }},
      {"added token 'a' has id 256, in the vocabulary 97",
       [](Json &j) { j["added_tokens"][0]["content"] = "a"; }},
      {"model.vocab: of the wrong type",
       [](Json &j) { j["model"]["vocab"] = Json::array(); }},
      {"model.vocab: no tokens",
       [](Json &j) { j["model"]["vocab"] = Json::object(); }},
      {"model.vocab: no token for byte 97",
       [](Json &j) { j["model"]["vocab"].erase("a"); }},
      {"model.vocab: an id is not a number",
       [](Json &j) { j["model"]["vocab"]["a"] = "97"; }},
      {"model.vocab: an id is not a number in range",
       [](Json &j) { j["model"]["vocab"]["a"] = -97; }},
      {"model.vocab: an id is not a number in range",
       [](Json &j) { j["model"]["vocab"]["a"] = 1.5; }},
      {"model.vocab: id 4294967296 is too large",
       [](Json &j) { j["model"]["vocab"]["a"] = 1ull << 32; }},
      {"model.vocab: an array among its entries",
       [](Json &j) { j["model"]["vocab"]["a"] = Json::array(); }},
      {"id 98 of 'b' is already another token's",
       [](Json &j) { j["model"]["vocab"]["a"] = 98; }},
      {"model.merges: of the wrong type",
       [](Json &j) { j["model"]["merges"] = "a b"; }},
      {"model.merges: entry 0 is not two tokens with a space between them",
       [](Json &j) { j["model"]["merges"] = {"ab"}; }},
      {"model.merges: entry 0 is not two tokens with a space between them",
       [](Json &j) { j["model"]["merges"] = {"a b c"}; }},
      {"model.merges: entry 0 is not two strings",
       [](Json &j) { j["model"]["merges"] = Json::array({{"a"}}); }},
      {"model.merges: entry 0 is not two strings",
       [](Json &j) {
         j["model"]["merges"] = {{"a", "b", "c"}};
       }},
      {"model.merges: an entry is not a string",
       [](Json &j) { j["model"]["merges"] = {7}; }},
      {"model.merges: an object among its entries",
       [](Json &j) { j["model"]["merges"] = {Json::object()}; }},
      {"model.merges: entry 0: 'ab' is not in the vocabulary",
       [](Json &j) { j["model"]["merges"] = Json::parse(R"([["a","b"]])"); }},
      {"model.merges: entry 0: 'xyz' is not in the vocabulary",
       [](Json &j) { j["model"]["merges"] = Json::parse(R"([["xyz","b"]])"); }},
  };
  for (const Case &c : cases) {
    Json json = smallTokenizer();
    c.change(json);
    EXPECT_EQ(whyNot(json), c.error);
  }
}

TEST(TokenizerFile, PatternsThatDoNotCompile) {
  auto with = [](const char *pattern) {
    Json json = smallTokenizer();
    json["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers",
                              {{{"type", "Split"},
                                {"pattern", {{"Regex", pattern}}},
                                {"behavior", "Isolated"},
                                {"invert", false}},
                               json["pre_tokenizer"]}}};
    return json;
  };
  EXPECT_NE(build(with("a+")), nullptr);
  EXPECT_EQ(whyNot(with("\\h")), "'\\h' in a pattern is not supported");
  EXPECT_EQ(whyNot(with("a)")).substr(0, 27), "a pattern does not compile:");
  EXPECT_EQ(whyNot(with("\\p{Nonsense}")).substr(0, 27),
            "a pattern does not compile:");
}

TEST(TokenizerFile, SettingsThatAddNothingAreAccepted) {
  Json json = smallTokenizer();
  json["version"] = "1.0";
  json["truncation"] = {{"max_length", 3}};
  json["padding"] = nullptr;
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  json["model"]["byte_fallback"] = false;
  json["model"]["unk_token"] = nullptr;
  json["model"]["fuse_unk"] = false;
  json["model"]["dropout"] = nullptr;
  json["model"]["continuing_subword_prefix"] = "";
  EXPECT_EQ(encode(*build(json), "abcd").size(), 4u);
}

TEST(TokenizerFile, BrokenTextIsRefused) {
  const std::string good = smallTokenizer().dump();
  std::string why = whyNotText(good.substr(0, good.size() / 2));
  EXPECT_EQ(why.substr(0, 23), "not JSON: error at byte") << why;
  EXPECT_EQ(whyNotText("[]"), "not an object");
  EXPECT_EQ(whyNotText("").substr(0, 9), "not JSON:");
  EXPECT_EQ(whyNotText(R"({"model":{"vocab":{"a":1},"vocab":{"b":2}}})"),
            "duplicate key 'vocab'");
  EXPECT_EQ(whyNotText(R"({"decoder":null,"decoder":null})"),
            "duplicate key in 'decoder'");
  EXPECT_EQ(whyNotText(std::string(1000, '[')), "nested too deeply");
  // Cut anywhere, it is never accepted and never crashes.
  for (size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(whyNotText(std::string_view(good).substr(0, cut)).empty());
  // Twice the same token is not two tokens.
  std::string twice = good;
  size_t at = twice.find("\"a\":97");
  ASSERT_NE(at, std::string::npos);
  twice.insert(at, "\"a\":300,");
  TokenizerSpec spec;
  std::string error;
  ASSERT_TRUE(readTokenizerJson(twice, spec, error));
  EXPECT_EQ(Tokenizer::build(std::move(spec), {}, {}, error), nullptr);
  EXPECT_EQ(error, "model.vocab: 'a' stands there twice");
}

TEST(TokenizerFile, ConfigsThatDoNotFit) {
  EXPECT_EQ(whyNot(smallTokenizer(), {{"bos_token", "<x>"}}),
            "bos_token: there is no token '<x>'");
  EXPECT_EQ(whyNot(smallTokenizer(), {{"eos_token", 3}}),
            "eos_token: not a string");
  EXPECT_EQ(whyNot(smallTokenizer(), {{"add_bos_token", true}}),
            "add_bos_token is set, but no token is named");
  EXPECT_EQ(whyNot(smallTokenizer(), {{"add_bos_token", "yes"}}),
            "add_bos_token: not true or false");
  Json template1 = smallTokenizer();
  template1["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "x"}}}}, {{"Sequence", {{"id", "A"}}}}}},
      {"special_tokens", {{"x", {{"ids", {999}}}}}}};
  EXPECT_EQ(whyNot(template1),
            "there is no token 999, which is to begin or end a text");
  template1["post_processor"].erase("special_tokens");
  EXPECT_EQ(whyNot(template1), "post_processor: no ids for 'x'");
}

static std::shared_ptr<const ModelText>
load(const std::string &generation, std::string &error, uint32_t vocab = 257) {
  const std::string tokenizer = smallTokenizer().dump();
  TextFiles files;
  files.tokenizer = tokenizer;
  files.generationConfig = generation;
  return ModelText::load(files, vocab, error);
}

TEST(ModelText, AdvisesWhatTheGenerationConfigSays) {
  std::string error;
  auto text = load("", error);
  ASSERT_TRUE(text) << error;
  EXPECT_EQ(text->temperature, 1.0);
  EXPECT_EQ(text->topP, 0.95);
  EXPECT_EQ(text->topK, 0u);
  text = load(R"({"temperature":0.6,"top_p":0.8,"top_k":20,"bos_token_id":256,
                  "eos_token_id":[256,3],"pad_token_id":9})",
              error);
  ASSERT_TRUE(text) << error;
  EXPECT_EQ(text->temperature, 0.6);
  EXPECT_EQ(text->topP, 0.8);
  EXPECT_EQ(text->topK, 20u);
  EXPECT_EQ(text->tokenizer->bos(), 256);
  EXPECT_EQ(text->tokenizer->eos(), (std::vector<int32_t>{256, 3}));
  EXPECT_TRUE(text->tokenizer->isEos(3));
  EXPECT_FALSE(text->tokenizer->isEos(4));
  // As Spark-X2.5's own file says.
  text = load(R"({"do_sample":true,"temperature":1.0,"top_p":0.95,"top_k":-1})",
              error);
  ASSERT_TRUE(text) << error;
  EXPECT_EQ(text->temperature, 1);
  EXPECT_EQ(text->topK, 0u);
  text = load(R"({"do_sample":false,"temperature":0.6})", error);
  ASSERT_TRUE(text) << error;
  EXPECT_EQ(text->temperature, 0);
}

TEST(ModelText, TakesTheTemplateForAnyChat) {
  auto chat = [](const char *json) {
    TokenizerConfig config;
    std::string error;
    EXPECT_TRUE(readTokenizerConfig(json, config, error)) << error;
    return config.chatTemplate.value_or("none");
  };
  EXPECT_EQ(chat(R"({"chat_template": "a"})"), "a");
  EXPECT_EQ(chat(R"({"chat_template": [{"name": "tool_use", "template": "b"},
                     {"name": "default", "template": "c"}, {}, 1]})"),
            "c");
  EXPECT_EQ(chat(R"({"chat_template": [{"name": "tool_use"}]})"), "none");
  EXPECT_EQ(chat(R"({"chat_template": null})"), "none");
  EXPECT_EQ(chat("{}"), "none");
}

TEST(ModelText, NamesTheFileAtFault) {
  std::string error;
  for (auto [generation, why] : {
           std::pair("{", "generation_config.json: not JSON"),
           {"[]", "generation_config.json: not an object"},
           {R"({"top_p":2})",
            "generation_config.json: top_p: 2 is out of range"},
           {R"({"top_p":"x"})",
            "generation_config.json: top_p: \"x\" is out of range"},
           {R"({"eos_token_id":-2})",
            "generation_config.json: eos_token_id: -2 is not a token id"},
           {R"({"eos_token_id":[1,"x"]})",
            "generation_config.json: eos_token_id: \"x\" is not a token id"},
           {R"({"eos_token_id":300})",
            "tokenizer.json: there is no token 300, which is to begin or end "
            "a text"},
       }) {
    EXPECT_FALSE(load(generation, error)) << generation;
    EXPECT_EQ(error, why);
  }
  EXPECT_FALSE(load("", error, 256));
  EXPECT_EQ(error, "tokenizer.json: has token 256, the model's vocabulary is "
                   "256");
  EXPECT_FALSE(load(std::string(100000, '['), error));
}
