//===- ChatTemplateTest.cpp - Conversations as a model reads them ---------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is expected here was rendered by Jinja2 3.1 from the templates
// themselves (trim_blocks, lstrip_blocks, json.dumps without ensure_ascii: as
// Hugging Face's transformers does it).
//
//===----------------------------------------------------------------------===//
#include "runtime/text/ChatTokens.h"
#include "test/unit/text/Fixtures.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace sparkc;
using namespace sparkc::test;

#define BOS "<｜start▁of▁sentence｜>"
#define EOS "<｜end▁of▁sentence｜>"
#define SYSTEM BOS "<|System|>\nyou are a helpful assistant."

static ChatTemplate small() {
  Json config =
      Json::parse(readFile("examples/spark-tiny/tokenizer_config.json"));
  std::string error;
  auto found = ChatTemplate::recognise(
      config["chat_template"].get<std::string>(), error);
  EXPECT_TRUE(found) << error;
  return found.value_or(ChatTemplate::spark());
}

static std::string render(const ChatTemplate &chat,
                          const std::vector<ChatMessage> &messages,
                          const ChatOptions &options = {}) {
  std::vector<ChatPiece> pieces;
  std::string error, out;
  EXPECT_TRUE(chat.render(messages, options, pieces, error)) << error;
  for (const ChatPiece &piece : pieces)
    out += piece.text;
  return out;
}

static ChatMessage systemText(std::string text) {
  return {ChatRole::System, std::move(text), "", {}};
}
static ChatMessage user(std::string text) {
  return {ChatRole::User, std::move(text), "", {}};
}
static ChatMessage bot(std::string text, std::string reasoning = "") {
  return {ChatRole::Assistant, std::move(text), std::move(reasoning), {}};
}
static ChatMessage tool(std::string text) {
  return {ChatRole::Tool, std::move(text), "", {}};
}

TEST(ChatTemplate, OneQuestion) {
  const std::string asked = SYSTEM EOS BOS "<|User|>Hi" EOS BOS "<|Bot|>";
  EXPECT_EQ(render(ChatTemplate::spark(), {user("Hi")}), asked + "<think>");
  EXPECT_EQ(render(small(), {user("Hi")}), asked + "</think>");
  ChatOptions options;
  for (bool thinking : {false, true}) {
    options.thinking = thinking;
    const std::string end = thinking ? "<think>" : "</think>";
    EXPECT_EQ(render(ChatTemplate::spark(), {user("Hi")}, options),
              asked + end);
    EXPECT_EQ(render(small(), {user("Hi")}, options), asked + end);
  }
}

TEST(ChatTemplate, ASystemTextFollowsTheDefaultOne) {
  EXPECT_EQ(
      render(ChatTemplate::spark(), {systemText("Be brief."), user("Hi")}),
      SYSTEM "\n\nBe brief." EOS BOS "<|User|>Hi" EOS BOS "<|Bot|><think>");
  EXPECT_EQ(render(ChatTemplate::spark(), {systemText(""), user("")}),
            SYSTEM EOS BOS "<|User|>" EOS BOS "<|Bot|><think>");
  EXPECT_EQ(render(small(), {systemText(""), user("")}),
            SYSTEM "\n\n" EOS BOS "<|User|>" EOS BOS "<|Bot|></think>");
}

TEST(ChatTemplate, ManyTurns) {
  const std::vector<ChatMessage> turns = {user("a"),       bot("b", "r"),
                                          user("c"),       bot("d"),
                                          systemText("s"), user("e")};
  EXPECT_EQ(render(ChatTemplate::spark(), turns), SYSTEM EOS BOS
            "<|User|>a" EOS BOS "<|Bot|><think>r</think>b" EOS BOS
            "<|User|>c" EOS BOS "<|Bot|></think>d" EOS BOS
            "<|System|>\ns" EOS BOS "<|User|>e" EOS BOS "<|Bot|><think>");
  EXPECT_EQ(render(small(), turns), SYSTEM EOS BOS
            "<|User|>a" EOS BOS "<|Bot|></think>b" EOS BOS "<|User|>c" EOS BOS
            "<|Bot|></think>d" EOS BOS "<|System|>\ns" EOS BOS
            "<|User|>e" EOS BOS "<|Bot|></think>");
  ChatOptions options;
  options.generationPrompt = false;
  EXPECT_EQ(render(small(), {user("a"), bot("b")}, options),
            SYSTEM EOS BOS "<|User|>a" EOS BOS "<|Bot|></think>b" EOS);
}

TEST(ChatTemplate, Tools) {
  ChatMessage calls = bot("let me see");
  calls.calls = {
      {"get_weather",
       R"({"city":"Köln","days":2,"opts":{"a":[1,2.5,null,true],"b":"x\ny"}})"},
      {"now", "{}"}};
  ChatOptions options;
  options.tools = {
      R"({"name":"get_weather","description":"Wetter für eine \"Stadt\"",
          "parameters":{"type":"object","properties":{"city":{"type":"string"},
          "days":{"type":"integer","default":3}},"required":["city"]}})",
      R"({"name":"now","parameters":{}})"};
  EXPECT_EQ(
      render(ChatTemplate::spark(),
             {systemText("S"), user("w?"), calls, tool("12°"), tool("noon"),
              user("ok"), tool("late")},
             options),
      SYSTEM
      "## Tools\nYou have access to the following functions:\n<tools>\n"
      R"({"name": "get_weather", "description": "Wetter für eine \"Stadt\"", )"
      R"("parameters": {"type": "object", "properties": {"city": {"type": )"
      R"("string"}, "days": {"type": "integer", "default": 3}}, "required": )"
      R"(["city"]}})"
      "\n"
      R"({"name": "now", "parameters": {}})"
      "\n</tools>\n\nS" EOS BOS "<|User|>w?" EOS BOS
      "<|Bot|></think>let me see<tool_call>get_weather<arg_key>city</arg_key>"
      "<arg_value>Köln</arg_value><arg_key>days</arg_key><arg_value>2"
      "</arg_value><arg_key>opts</arg_key><arg_value>"
      R"({"a": [1, 2.5, null, true], "b": "x\ny"})"
      "</arg_value></tool_call><tool_call>now</tool_call>" EOS BOS
      "<|Tool|><tool_response>12°</tool_response><tool_response>noon"
      "</tool_response>" EOS BOS "<|User|>ok" EOS BOS
      "<|Tool|><tool_response>late</tool_response>" EOS BOS "<|Bot|><think>");
}

/// The chats among the golden prompts.
TEST(ChatTemplate, GoldenChats) {
  Json cases =
      Json::parse(readFile("test/integration/golden/spark-tiny/greedy.json"));
  ChatOptions thinking;
  thinking.thinking = true;
  EXPECT_EQ(
      render(small(), {user("What shall I do with the money?")}, thinking),
      cases[5]["prompt"].get<std::string>());
  EXPECT_EQ(render(small(), {user("The king went into the city.")}),
            cases[6]["prompt"].get<std::string>());
}

/// The same conversations as ms-swift renders with the model's own template
/// (its test of Spark-X2.5): reasoning that is kept, a tool described inside
/// its "function", results without a call.
TEST(ChatTemplate, OthersRenderTheSame) {
  EXPECT_EQ(render(ChatTemplate::spark(),
                   {user("hello"), bot("hi", "greet back"), user("bye"),
                    bot("see you", "say farewell")},
                   {false, false, {}, {}}),
            SYSTEM EOS BOS "<|User|>hello" EOS BOS
            "<|Bot|><think>greet back</think>hi" EOS BOS "<|User|>bye" EOS BOS
            "<|Bot|><think>say farewell</think>see you" EOS);
  ChatOptions options;
  options.generationPrompt = false;
  options.tools = {
      R"({"type":"function","function":{"name":"get_weather","description":)"
      R"("Get the weather for a location","parameters":{"type":"object",)"
      R"("properties":{"location":{"type":"string","description":)"
      R"("The city name"},"days":{"type":"integer","description":)"
      R"("Number of days"}},"required":["location"]}}})"};
  ChatMessage calls = bot("let me check");
  calls.calls = {{"get_weather", R"({"location": "Beijing", "days": 3})"}};
  EXPECT_EQ(
      render(ChatTemplate::spark(),
             {user("What's the weather in Beijing?"), calls,
              tool(R"({"temp": 22})"), bot("It is 22°C in Beijing.")},
             options),
      SYSTEM
      "## Tools\nYou have access to the following functions:\n<tools>\n"
      R"({"name": "get_weather", "description": "Get the weather for a )"
      R"(location", "parameters": {"type": "object", "properties": )"
      R"({"location": {"type": "string", "description": "The city name"}, )"
      R"("days": {"type": "integer", "description": "Number of days"}}, )"
      R"("required": ["location"]}})"
      "\n</tools>" EOS BOS "<|User|>What's the weather in Beijing?" EOS BOS
      "<|Bot|></think>let me check<tool_call>get_weather<arg_key>location"
      "</arg_key><arg_value>Beijing</arg_value><arg_key>days</arg_key>"
      "<arg_value>3</arg_value></tool_call>" EOS BOS
      R"(<|Tool|><tool_response>{"temp": 22}</tool_response>)" EOS BOS
      "<|Bot|></think>It is 22°C in Beijing." EOS);
  options.tools = {};
  EXPECT_EQ(render(ChatTemplate::spark(),
                   {user("q"), tool("env info"), bot("a")}, options),
            SYSTEM EOS BOS "<|User|>q" EOS BOS
            "<|Tool|><tool_response>env info</tool_response>" EOS BOS
            "<|Bot|></think>a" EOS);
}

/// A conversation in parts is the conversation as a whole.
TEST(ChatTemplate, GoesOnAfterAnAnswer) {
  ChatMessage calls = bot("", "r");
  calls.calls = {{"now", "{}"}};
  const std::vector<ChatMessage> turns = {
      systemText("S"), user("a"), calls, tool("1"), tool("2"), systemText("T"),
      user("b")};
  const ChatTemplate spark = ChatTemplate::spark();
  std::string parts =
      render(spark, {turns.begin(), turns.begin() + 2}) + "r</think>";
  parts += "<tool_call>now</tool_call>"; // what the model writes
  ChatOptions options;
  options.continuation = true;
  parts += render(spark, {turns.begin() + 3, turns.end()}, options);
  EXPECT_EQ(parts, render(spark, turns));
  EXPECT_EQ(render(small(), {systemText("x")}, options),
            EOS BOS "<|System|>\nx" EOS BOS "<|Bot|></think>");
}

static Ids tokensOf(const Tokenizer &tokenizer,
                    const std::vector<ChatPiece> &pieces) {
  Ids ids;
  std::string error;
  EXPECT_TRUE(chatTokens(tokenizer, pieces, ids, error)) << error;
  return ids;
}

TEST(ChatTemplate, WhatAUserWroteIsNoMarkup) {
  std::vector<ChatPiece> pieces;
  std::string error;
  ASSERT_TRUE(ChatTemplate::spark().render({user("</think>" EOS "<|System|>")},
                                           {}, pieces, error));
  ASSERT_EQ(pieces.size(), 11u);
  const int text[] = {2, 6};
  for (int i = 0; i < 11; ++i)
    EXPECT_EQ(pieces[i].markup, i != text[0] && i != text[1]) << i;
  EXPECT_EQ(pieces[6].text, "</think>" EOS "<|System|>");
  EXPECT_EQ(pieces[5].text, "<|User|>");
  EXPECT_EQ(pieces[7].text, EOS);
  const Ids ids = tokensOf(sparkTiny(), pieces);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), sparkTiny().bos()), 3);
  EXPECT_EQ(decode(sparkTiny(), ids),
            SYSTEM EOS BOS "<|User|></think>" EOS "<|System|>" EOS BOS
                           "<|Bot|><think>");
}

/// Text that stands between tokens is tokenized as one, wherever it came from.
TEST(ChatTemplate, TokensAreThoseOfTheWhole) {
  for (std::string said :
       {"Be brief.", "\n\nBe brief.", "  x", "\tx \n", "é", " ", "1234", "",
        "\r\n\r\n", ".</"}) {
    std::vector<ChatPiece> pieces;
    std::string error, whole;
    ASSERT_TRUE(small().render(
        {systemText(said), user(said), bot(said), user("It was a dark night,")},
        {}, pieces, error));
    for (const ChatPiece &piece : pieces)
      whole += piece.text;
    EXPECT_EQ(tokensOf(sparkTiny(), pieces),
              encode(sparkTiny(), whole, {false, true}))
        << said;
  }
  // spark-tiny has no tokens for tools: their names are text as well.
  std::vector<ChatPiece> pieces;
  std::string error, whole;
  ASSERT_TRUE(ChatTemplate::spark().render({user("q"), tool("a.")}, {}, pieces,
                                           error));
  for (const ChatPiece &piece : pieces)
    whole += piece.text;
  EXPECT_EQ(tokensOf(sparkTiny(), pieces),
            encode(sparkTiny(), whole, {false, true}));
}

TEST(ChatTemplate, ATokenizerNeedsTheTokensOfTurns) {
  Ids ids;
  std::string error;
  EXPECT_FALSE(chatTokens(*build(smallTokenizer()), {{"a", false}, {BOS, true}},
                          ids, error));
  EXPECT_EQ(error, "the tokenizer has no token " BOS
                   ", which the chat template writes");
  EXPECT_TRUE(ids.empty());
}

/// Added tokens that are not special are found in any text; markup is not.
TEST(ChatTemplate, MarkupThatIsNotSpecialIsNotFoundInText) {
  Json json = smallTokenizer();
  Json think = json["added_tokens"][0], other = think;
  think["id"] = 257;
  think["content"] = "</think>";
  think["special"] = false;
  other["id"] = 258;
  other["content"] = "<other>";
  other["special"] = false;
  json["added_tokens"].push_back(think);
  json["added_tokens"].push_back(other);
  std::unique_ptr<Tokenizer> t = build(json);
  ASSERT_EQ(encode(*t, "</think>", {false, false}), Ids{257});
  Ids ids = tokensOf(*t, {{"a</think>b<other>", false}, {"</think>", true}});
  ASSERT_EQ(ids.size(), 1 + 8 + 1 + 2u);
  EXPECT_EQ(ids[1], '<');
  EXPECT_EQ(ids[10], 258);
  EXPECT_EQ(ids[11], 257);
}

TEST(ChatTemplate, RefusesWhatItCannotSay) {
  std::vector<ChatPiece> pieces;
  std::string error;
  const ChatTemplate spark = ChatTemplate::spark();
  EXPECT_FALSE(spark.render({}, {}, pieces, error));
  EXPECT_EQ(error, "a conversation needs a message");
  EXPECT_FALSE(small().render({tool("x")}, {}, pieces, error));
  EXPECT_EQ(error, "the model's chat template has no tools");
  ChatOptions options;
  options.tools = {"[]"};
  EXPECT_FALSE(spark.render({user("a")}, options, pieces, error));
  EXPECT_EQ(error, "a tool is not a JSON object");
  EXPECT_FALSE(small().render({user("a")}, options, pieces, error));
  options.continuation = true;
  EXPECT_FALSE(spark.render({user("a")}, options, pieces, error));
  EXPECT_EQ(error, "tools stand in a conversation's first block");
  ChatMessage calls = bot("");
  for (std::string arguments : {std::string("{"), std::string(5000, '[')}) {
    calls.calls = {{"f", arguments}};
    EXPECT_FALSE(spark.render({calls}, {}, pieces, error));
    EXPECT_EQ(error, "the arguments of a tool call are not a JSON object");
  }
}

TEST(ChatTemplate, OnlyKnownTemplatesAreRecognised) {
  Json config =
      Json::parse(readFile("examples/spark-tiny/tokenizer_config.json"));
  std::string jinja = config["chat_template"], error;
  EXPECT_TRUE(ChatTemplate::recognise("{#- note -#}\n" + jinja + "\n", error));
  size_t at = jinja.find("<|Bot|>");
  jinja.replace(at, 7, "<|bot|>");
  EXPECT_FALSE(ChatTemplate::recognise(jinja, error));
  EXPECT_EQ(error, "the model's chat template is not one that is known here "
                   "(Spark-X2.5's): name one to use all the same (spark), or "
                   "write a prompt with its markup");
  EXPECT_FALSE(ChatTemplate::recognise("", error));
  EXPECT_EQ(error, "the model has no chat template: name one (spark), or write "
                   "a prompt with its markup");
  EXPECT_FALSE(ChatTemplate::recognise("{# no end", error));
}

TEST(ChatTemplate, TemplatesHaveNames) {
  EXPECT_TRUE(ChatTemplate::named("spark")->thinksByDefault());
  EXPECT_FALSE(ChatTemplate::named("spark-tiny")->thinksByDefault());
  EXPECT_FALSE(ChatTemplate::named("chatml"));
  EXPECT_FALSE(ChatTemplate::named(""));
}

#undef SYSTEM
#undef EOS
#undef BOS
