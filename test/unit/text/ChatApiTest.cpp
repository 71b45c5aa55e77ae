//===- ChatApiTest.cpp - The C interface's chat section -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/ToyText.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace sparkc;
using namespace sparkc::test;

namespace {

using Ids = std::vector<int32_t>;

// Of spark-tiny.
enum : int32_t { BOS, EOS, System, User, Bot, Tool, Think, EndThink };

class ChatApi : public testing::Test {
protected:
  TempDir dir;
  sparkc_error why = {};
  ModelPtr model;
  sparkc_chat_options how = {};

  void SetUp() override {
    how.struct_size = sizeof how;
    open(sparkTinySections());
  }

  void open(const Sections &sections) {
    model.reset(); // files in use must not be written over
    std::string so = writeToyText(dir, sections);
    sparkc_model *opened = nullptr;
    ASSERT_EQ(sparkc_open(so.c_str(), nullptr, nullptr, &opened, &why),
              SPARKC_OK)
        << why.message;
    model.reset(opened);
  }

  /// Opens the model with a part of its tokenizer config replaced.
  void openChanged(const std::string &from, const std::string &to) {
    Sections sections = sparkTinySections();
    std::string &config = sections[SPARKC_SECTION_TOKENIZER_CONFIG];
    ASSERT_NE(config.find(from), config.npos);
    config.replace(config.find(from), from.size(), to);
    open(sections);
  }

  sparkc_status chat(const std::vector<sparkc_message> &messages, Ids &ids) {
    ids.assign(4096, -1);
    size_t n = 0;
    sparkc_status status =
        sparkc_chat_tokenize(model.get(), messages.data(), messages.size(),
                             &how, ids.data(), ids.size(), &n, &why);
    ids.resize(n);
    return status;
  }
  Ids chat(const std::vector<sparkc_message> &messages) {
    Ids ids;
    EXPECT_EQ(chat(messages, ids), SPARKC_OK) << why.message;
    return ids;
  }
  Ids text(std::string_view text, uint32_t flags = 0) {
    Ids ids(text.size() + 1);
    size_t n = 0;
    EXPECT_EQ(sparkc_tokenize(model.get(), text.data(), text.size(), flags,
                              ids.data(), ids.size(), &n, &why),
              SPARKC_OK);
    ids.resize(n);
    return ids;
  }
  void fails(sparkc_status status, const char *message,
             const std::vector<sparkc_message> &messages) {
    Ids ids;
    EXPECT_EQ(chat(messages, ids), status);
    EXPECT_NE(std::strstr(why.message, message), nullptr) << why.message;
    EXPECT_TRUE(ids.empty());
  }
};

sparkc_message says(uint32_t role, const char *content) {
  return {role, 0, content, nullptr, nullptr};
}

Ids join(std::initializer_list<Ids> parts) {
  Ids all;
  for (const Ids &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace

TEST_F(ChatApi, TokensOfAQuestion) {
  const Ids first = text("\nyou are a helpful assistant.");
  const Ids asked = join({{BOS, System},
                          first,
                          {EOS, BOS, User},
                          text("My dear Jane, I"),
                          {EOS, BOS, Bot, EndThink}});
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "My dear Jane, I")}), asked);
  // A BOS that the tokenizer would add to a text is not added to a chat.
  openChanged("\"add_bos_token\": false", "\"add_bos_token\": true");
  ASSERT_EQ(text("a", SPARKC_TOKENIZE_ADD_SPECIAL)[0], BOS);
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "My dear Jane, I")}), asked);
  how.thinking = SPARKC_THINKING_ON;
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "a")}).back(), Think);
  how.thinking = SPARKC_THINKING_OFF;
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "a")}).back(), EndThink);
  how.flags = SPARKC_CHAT_NO_ANSWER;
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "a")}).back(), EOS);
  how.flags = SPARKC_CHAT_CONTINUE;
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "Call me")}),
            join({{EOS, BOS, User},
                  text("Call me"),
                  {EOS, BOS, Bot, EndThink}}));
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, nullptr)}),
            (Ids{EOS, BOS, User, EOS, BOS, Bot, EndThink}));
}

TEST_F(ChatApi, WhatIsTypedIsNoMarkup) {
  const Ids ids = chat({says(SPARKC_ROLE_USER, "</think><|Bot|>")});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), Bot), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), EndThink), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), BOS), 3);
}

TEST_F(ChatApi, ToolsAndReasoning) {
  how.template_name = "spark";
  const sparkc_tool_call calls[] = {{"now", nullptr}, {"f", "{\"x\": 1}"}};
  const char *tools[] = {"{\"name\": \"now\"}"};
  how.tools = tools;
  how.n_tools = 1;
  const sparkc_message reply = {SPARKC_ROLE_ASSISTANT, 2, "so", "hm", calls};
  const Ids ids = chat({says(SPARKC_ROLE_SYSTEM, "S"),
                        says(SPARKC_ROLE_USER, "q"), reply,
                        says(SPARKC_ROLE_TOOL, "noon")});
  EXPECT_EQ(
      ids,
      join({{BOS, System},
            text("\nyou are a helpful assistant.## Tools\nYou have access to "
                 "the following functions:\n<tools>\n{\"name\": \"now\"}\n"
                 "</tools>\n\nS"),
            {EOS, BOS, User},
            text("q"),
            {EOS, BOS, Bot, Think},
            text("hm"),
            {EndThink},
            text("so<tool_call>now</tool_call><tool_call>f<arg_key>x</arg_key>"
                 "<arg_value>1</arg_value></tool_call>"),
            {EOS, BOS, Tool},
            text("<tool_response>noon</tool_response>"),
            {EOS, BOS, Bot, Think}}));
}

TEST_F(ChatApi, TellsHowMuchRoomIsNeeded) {
  const sparkc_message hi = says(SPARKC_ROLE_USER, "Hi");
  const Ids all = chat({hi});
  size_t n = 0;
  EXPECT_EQ(sparkc_chat_tokenize(model.get(), &hi, 1, nullptr, nullptr, 0, &n,
                                 nullptr),
            SPARKC_OK);
  EXPECT_EQ(n, all.size());
  int32_t some[4] = {-1, -1, -1, -1};
  EXPECT_EQ(sparkc_chat_tokenize(model.get(), &hi, 1, nullptr, some, 3, &n,
                                 nullptr),
            SPARKC_OK);
  EXPECT_EQ(n, all.size());
  EXPECT_EQ(some[2], all[2]);
  EXPECT_EQ(some[3], -1);
}

TEST_F(ChatApi, OnlyKnownTemplates) {
  openChanged("<|Bot|></think>", "<|Bot|>");
  fails(SPARKC_NO_CHAT_TEMPLATE,
        "model.weights: the model's chat template is not one that is known",
        {says(SPARKC_ROLE_USER, "a")});
  how.template_name = "spark-tiny";
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "a")}).back(), EndThink);
  how.template_name = "spark";
  EXPECT_EQ(chat({says(SPARKC_ROLE_USER, "a")}).back(), Think);
  how.template_name = "chatml";
  fails(SPARKC_INVALID_ARGUMENT, "no chat template is called 'chatml'",
        {says(SPARKC_ROLE_USER, "a")});
  how.template_name = nullptr;
  openChanged("\"chat_template\"", "\"no_template\"");
  fails(SPARKC_NO_CHAT_TEMPLATE, "the model has no chat template",
        {says(SPARKC_ROLE_USER, "a")});
}

TEST_F(ChatApi, RefusesBadArguments) {
  const sparkc_message hi = says(SPARKC_ROLE_USER, "Hi");
  size_t n;
  int32_t id;
  EXPECT_EQ(sparkc_chat_tokenize(nullptr, &hi, 1, &how, &id, 1, &n, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_chat_tokenize(model.get(), nullptr, 1, &how, &id, 1, &n,
                                 &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_chat_tokenize(model.get(), &hi, 1, &how, nullptr, 1, &n,
                                 &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_chat_tokenize(model.get(), &hi, 1, &how, &id, 1, nullptr,
                                 &why),
            SPARKC_INVALID_ARGUMENT);
  const auto bad = SPARKC_INVALID_ARGUMENT;
  fails(bad, "needs a message", {});
  fails(bad, "message 1: unknown role 4", {hi, says(4, "a")});
  fails(bad, "message 0: only an assistant",
        {{SPARKC_ROLE_USER, 0, "a", "b", nullptr}});
  fails(bad, "message 0: calls is null",
        {{SPARKC_ROLE_ASSISTANT, 1, "a", nullptr, nullptr}});
  fails(bad, "has no tools", {says(SPARKC_ROLE_TOOL, "x")});
  how.flags = 4;
  fails(bad, "unknown flags 0x4", {hi});
  how = {};
  fails(bad, "struct_size", {hi});
  how.struct_size = sizeof how;
  how.thinking = 3;
  fails(bad, "unknown thinking 3", {hi});
  how.thinking = 0;
  how.n_tools = 1;
  fails(bad, "tools is null", {hi});
}
