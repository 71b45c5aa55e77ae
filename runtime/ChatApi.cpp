//===- ChatApi.cpp - The C interface's chat section -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/TextOf.h"
#include "runtime/text/ChatTokens.h"

#include <cstring>

using namespace sparkc;

static Failure readOptions(const sparkc_chat_options *given,
                           sparkc_chat_options &options) {
  options = {};
  if (!given)
    return success();
  if (given->struct_size < sizeof(size_t))
    return fail(SPARKC_INVALID_ARGUMENT, "chat options: no struct_size");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  constexpr uint32_t known = SPARKC_CHAT_CONTINUE | SPARKC_CHAT_NO_ANSWER;
  if (options.flags & ~known)
    return fail(SPARKC_INVALID_ARGUMENT, "unknown flags 0x%x", options.flags);
  if (options.thinking > SPARKC_THINKING_OFF)
    return fail(SPARKC_INVALID_ARGUMENT, "unknown thinking %u",
                options.thinking);
  if (options.n_tools && !options.tools)
    return fail(SPARKC_INVALID_ARGUMENT, "tools is null");
  return success();
}

/// The template that the options name, or else the model's own.
static Failure chooseTemplate(const sparkc_chat_options &options,
                              const ModelText &text, const char *path,
                              std::optional<ChatTemplate> &chosen) {
  if (options.template_name) {
    chosen = ChatTemplate::named(options.template_name);
    return chosen ? success()
                  : fail(SPARKC_INVALID_ARGUMENT,
                         "no chat template is called '%s': spark, spark-tiny",
                         options.template_name);
  }
  std::string why;
  chosen = ChatTemplate::recognise(text.chatTemplate, why);
  return chosen ? success()
                : fail(SPARKC_NO_CHAT_TEMPLATE, "%s: %s", path, why.c_str());
}

static Failure readMessage(const sparkc_message &given, size_t index,
                           ChatMessage &message) {
  auto text = [](const char *s) { return std::string(s ? s : ""); };
  static constexpr ChatRole roles[] = {ChatRole::System, ChatRole::User,
                                       ChatRole::Assistant, ChatRole::Tool};
  if (given.role >= std::size(roles))
    return fail(SPARKC_INVALID_ARGUMENT, "message %zu: unknown role %u", index,
                given.role);
  message.role = roles[given.role];
  message.content = text(given.content);
  if (message.role != ChatRole::Assistant && (given.reasoning || given.n_calls))
    return fail(SPARKC_INVALID_ARGUMENT,
                "message %zu: only an assistant reasons and calls tools",
                index);
  message.reasoning = text(given.reasoning);
  if (given.n_calls && !given.calls)
    return fail(SPARKC_INVALID_ARGUMENT, "message %zu: calls is null", index);
  for (uint32_t i = 0; i < given.n_calls; ++i)
    message.calls.push_back(
        {text(given.calls[i].name),
         given.calls[i].arguments ? given.calls[i].arguments : "{}"});
  return success();
}

extern "C" sparkc_status sparkc_chat_tokenize(
    const sparkc_model *model, const sparkc_message *messages,
    size_t n_messages, const sparkc_chat_options *given, int32_t *tokens,
    size_t capacity, size_t *n_tokens, sparkc_error *error) {
  return report(
      guarded([&] {
        if (!n_tokens || (!messages && n_messages) || (!tokens && capacity))
          return fail(SPARKC_INVALID_ARGUMENT, "an argument is NULL");
        sparkc_chat_options options;
        if (Failure failure = readOptions(given, options))
          return failure;
        TextPtr text;
        if (Failure failure = textOf(model, text))
          return failure;
        const char *path = model->impl->weightsFile().path().c_str();
        std::optional<ChatTemplate> chat;
        if (Failure failure = chooseTemplate(options, *text, path, chat))
          return failure;

        std::vector<ChatMessage> turns(n_messages);
        for (size_t i = 0; i < n_messages; ++i)
          if (Failure failure = readMessage(messages[i], i, turns[i]))
            return failure;
        ChatOptions how;
        how.continuation = options.flags & SPARKC_CHAT_CONTINUE;
        how.generationPrompt = !(options.flags & SPARKC_CHAT_NO_ANSWER);
        if (options.thinking != SPARKC_THINKING_DEFAULT)
          how.thinking = options.thinking == SPARKC_THINKING_ON;
        for (size_t i = 0; i < options.n_tools; ++i)
          how.tools.emplace_back(options.tools[i] ? options.tools[i] : "");

        std::vector<ChatPiece> pieces;
        std::vector<int32_t> ids;
        std::string why;
        if (!chat->render(turns, how, pieces, why))
          return fail(SPARKC_INVALID_ARGUMENT, "%s", why.c_str());
        if (!chatTokens(*text->tokenizer, pieces, ids, why))
          return fail(SPARKC_FORMAT, "%s: %s", path, why.c_str());
        giveTokens(ids, tokens, capacity, n_tokens);
        return success();
      }),
      error);
}
