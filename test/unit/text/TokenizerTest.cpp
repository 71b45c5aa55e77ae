//===- TokenizerTest.cpp - Text to token ids ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/Fixtures.h"

#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace sparkc;
using namespace sparkc::test;

static const EncodeOptions kPlain = {/*addSpecial=*/true,
                                     /*parseSpecial=*/false};

/// Prompts whose tokens were made by Hugging Face's tokenizers; the chats
/// among them hold special tokens. Continuations are text of their tokens.
TEST(Tokenizer, GivesTheGoldenTokens) {
  Json cases =
      Json::parse(readFile("test/integration/golden/spark-tiny/greedy.json"));
  ASSERT_EQ(cases.size(), 7u);
  for (const Json &c : cases) {
    const std::string prompt = c["prompt"];
    EXPECT_EQ(encode(sparkTiny(), prompt), c["prompt_tokens"].get<Ids>())
        << prompt;
    EXPECT_EQ(decode(sparkTiny(), c["prompt_tokens"].get<Ids>()), prompt);
    EXPECT_EQ(decode(sparkTiny(), c["greedy_tokens"].get<Ids>()),
              c["text"].get<std::string>());
  }
}

/// 320 tokens from the validation text, as the reference saw them.
TEST(Tokenizer, GivesTheTokensOfTheGoldenLogits) {
  const std::string file =
      readFile("test/integration/golden/spark-tiny/golden.safetensors");
  uint64_t header;
  ASSERT_GT(file.size(), sizeof header);
  std::memcpy(&header, file.data(), sizeof header);
  Json directory = Json::parse(file.substr(8, header));
  const Json &place = directory["tokens"]["data_offsets"];
  Ids ids((place[1].get<size_t>() - place[0].get<size_t>()) / 4);
  std::memcpy(ids.data(), file.data() + 8 + header + place[0].get<size_t>(),
              ids.size() * 4);
  ASSERT_EQ(ids.size(), 320u);
  std::string text = decode(sparkTiny(), ids);
  EXPECT_NE(readFile("examples/spark-tiny/valid_dev.txt").find(text),
            std::string::npos);
  EXPECT_EQ(encode(sparkTiny(), text), ids);
}

TEST(Tokenizer, TextComesBackUnchanged) {
  const std::string text = readFile("examples/spark-tiny/valid_dev.txt");
  EXPECT_EQ(decode(sparkTiny(), encode(sparkTiny(), text)), text);
  size_t lines = 0;
  for (size_t begin = 0; begin < text.size(); ++lines) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    ASSERT_EQ(decode(sparkTiny(), encode(sparkTiny(), line)), line);
    begin = end + 1;
  }
  EXPECT_GT(lines, 500u);
}

TEST(Tokenizer, AnyUtf8ComesBackUnchanged) {
  for (std::string text :
       {std::string("中文，日本語のテキスト。한국어"),
        std::string("👩‍👩‍👧 😀🏽"),
        std::string("\t \n\r\n  x\u00a0\u3000y  "),
        std::string("0 12 345 6789"), std::string("a\0\0b", 4),
        std::string("e\u0301\u0327\u200d\ufeff"),
        std::string("\U0010ffff\ufffd\ue000")})
    EXPECT_EQ(decode(sparkTiny(), encode(sparkTiny(), text)), text);
  // Random characters from all planes, spaces and letters among them.
  uint64_t state = 11;
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      uint32_t c = static_cast<uint32_t>(state >> 33);
      switch (state >> 60) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        c = 0x20 + c % 0x5f;
        break;
      case 6:
        c = "\n\r\t "[c % 4];
        break;
      case 7:
      case 8:
        c = 0x4e00 + c % 0x5000;
        break;
      case 9:
      case 10:
        c = 0xa0 + c % 0x2f60;
        break;
      default:
        c %= 0x110000;
        break;
      }
      if (c >= 0xd800 && c <= 0xdfff)
        c = ' ';
      appendUtf8(text, c);
    }
    ASSERT_EQ(decode(sparkTiny(), encode(sparkTiny(), text)), text);
  }
}

TEST(Tokenizer, BytesThatAreNotUtf8CountAsReplacements) {
  const std::string r = "\xef\xbf\xbd";
  for (auto [bytes, text] :
       {std::pair<std::string, std::string>("a\xff\xfe z", "a" + r + r + " z"),
        {"\xe4\xb8", r + r},
        {"caf\xe9 \xe4\xb8\xad", "caf" + r + " 中"},
        {"\xc0\xafx", "/x"}})
    EXPECT_EQ(encode(sparkTiny(), bytes), encode(sparkTiny(), text));
  // A surrogate keeps its bytes, and is not a letter.
  EXPECT_EQ(encode(sparkTiny(), "\xed\xa0\x80").size(), 3u);
}

TEST(Tokenizer, SpecialTokensInTextAreTokensIfAllowed) {
  const Tokenizer &t = sparkTiny();
  EXPECT_EQ(encode(t, "<think>"), (Ids{6}));
  EXPECT_EQ(encode(t, "a</think><|User|>b"), (Ids{73, 7, 3, 74}));
  Ids plain = encode(t, "<think>", kPlain);
  EXPECT_GT(plain.size(), 1u);
  EXPECT_EQ(decode(t, plain), "<think>");
  EXPECT_EQ(encode(t, "<think", {}), encode(t, "<think", kPlain));
  EXPECT_EQ(t.addedToken("<|Bot|>"), 4);
  EXPECT_EQ(t.addedToken("Bot"), -1);
  EXPECT_TRUE(t.isSpecial(6));
  EXPECT_FALSE(t.isSpecial(73));
}

TEST(Tokenizer, NothingIsAddedUnlessTheConfigSaysSo) {
  EXPECT_EQ(encode(sparkTiny(), "").size(), 0u);
  EXPECT_EQ(sparkTiny().bos(), 0);
  EXPECT_EQ(sparkTiny().eos(), (std::vector<int32_t>{1}));
  EXPECT_FALSE(sparkTiny().addsBos());
}

static Json addedToken(int id, const char *text) {
  return {{"id", id},        {"content", text}, {"single_word", false},
          {"lstrip", false}, {"rstrip", false}, {"normalized", false},
          {"special", false}};
}

TEST(Tokenizer, BosIsAddedOnce) {
  Json config = {{"bos_token", {{"content", "<s>"}}}, {"add_bos_token", true}};
  std::unique_ptr<Tokenizer> t = build(smallTokenizer(), config);
  EXPECT_TRUE(t->addsBos());
  EXPECT_EQ(encode(*t, "a"), (Ids{256, 'a'}));
  EXPECT_EQ(encode(*t, ""), (Ids{256}));
  EXPECT_EQ(encode(*t, "<s>a"), (Ids{256, 'a'}));
  EXPECT_EQ(encode(*t, "a", {false, true}), (Ids{'a'}));
}

TEST(Tokenizer, ATemplateIsFollowedUnlessOverruled) {
  Json json = smallTokenizer();
  json["added_tokens"].push_back(addedToken(257, "</s>"));
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
        {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}}}},
      {"pair", Json::array()},
      {"special_tokens",
       {{"<s>", {{"id", "<s>"}, {"ids", {256}}, {"tokens", {"<s>"}}}},
        {"</s>", {{"id", "</s>"}, {"ids", {257}}, {"tokens", {"</s>"}}}}}}};
  EXPECT_EQ(encode(*build(json), "a"), (Ids{256, 'a', 257}));
  Json config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  config["add_bos_token"] = true;
  EXPECT_EQ(encode(*build(json, config), "a"), (Ids{256, 'a', 257}));
  config["add_bos_token"] = false;
  EXPECT_EQ(encode(*build(json, config), "a"), (Ids{'a', 257}));
  config["add_eos_token"] = false;
  EXPECT_EQ(encode(*build(json, config), "a"), (Ids{'a'}));
  json["post_processor"] = {
      {"type", "Sequence"},
      {"processors", {{{"type", "ByteLevel"}}, json["post_processor"]}}};
  EXPECT_EQ(encode(*build(json), "a"), (Ids{256, 'a', 257}));
}

TEST(Tokenizer, LongestOfTheLeftmostAddedTokens) {
  Json json = smallTokenizer();
  json["added_tokens"].push_back(addedToken(257, "ab"));
  json["added_tokens"].push_back(addedToken(258, "abc"));
  json["added_tokens"].push_back(addedToken(259, "bcde"));
  std::unique_ptr<Tokenizer> t = build(json);
  EXPECT_EQ(encode(*t, "abcde"), (Ids{258, 'd', 'e'}));
  EXPECT_EQ(encode(*t, "xabab"), (Ids{'x', 257, 257}));
  EXPECT_EQ(encode(*t, "bcabcde"), (Ids{'b', 'c', 258, 'd', 'e'}));
  // They are not special: plain text has them too.
  EXPECT_EQ(encode(*t, "ab<s>", kPlain), (Ids{257, '<', 's', '>'}));
}

TEST(Tokenizer, NormalizedTokensComeSecond) {
  Json json = smallTokenizer();
  Json second = addedToken(257, "abc");
  second["normalized"] = true;
  json["added_tokens"].push_back(second);
  json["added_tokens"].push_back(addedToken(258, "bc"));
  EXPECT_EQ(encode(*build(json), "abcabc"), (Ids{'a', 258, 'a', 258}));
  json["added_tokens"][2]["normalized"] = true;
  EXPECT_EQ(encode(*build(json), "abcabc"), (Ids{257, 257}));
}

TEST(Tokenizer, StrippingTokensTakeTheWhiteSpace) {
  Json json = smallTokenizer();
  Json token = addedToken(257, "[M]");
  token["lstrip"] = true;
  json["added_tokens"].push_back(token);
  EXPECT_EQ(encode(*build(json), "a \u3000\n[M] b"), (Ids{'a', 257, ' ', 'b'}));
  json["added_tokens"][1]["lstrip"] = false;
  json["added_tokens"][1]["rstrip"] = true;
  EXPECT_EQ(encode(*build(json), "a [M] \u3000b"), (Ids{'a', ' ', 257, 'b'}));
  json["added_tokens"][1]["lstrip"] = true;
  EXPECT_EQ(encode(*build(json), "[M] [M] "), (Ids{257, 257}));
}

TEST(Tokenizer, AnAddedTokenIsItsNameWhenDecoded) {
  Json json = smallTokenizer();
  json["added_tokens"].push_back(addedToken(257, "é Ġ"));
  std::unique_ptr<Tokenizer> t = build(json);
  EXPECT_EQ(decode(*t, {257}), "é Ġ");
  EXPECT_EQ(t->bytesOf(258), "");
  EXPECT_FALSE(t->has(258));
  EXPECT_FALSE(t->has(-1));
}
