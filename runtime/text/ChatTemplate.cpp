//===- ChatTemplate.cpp - Conversations as a model reads them -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/ChatTemplate.h"

#include <nlohmann/json.hpp>

#include <cstdint>

using namespace sparkc;
using OrderedJson = nlohmann::ordered_json;

// Fingerprints of the templates written out below.
static constexpr uint64_t kSparkFingerprint = 0xfa6ac4b5c58c97d5u;
static constexpr uint64_t kSmallFingerprint = 0xae9e34e81096246eu;

/// FNV-1a (64 bits) of a template without its comments and white space.
static uint64_t fingerprint(std::string_view jinja) {
  uint64_t hash = 0xcbf29ce484222325u;
  while (!jinja.empty()) {
    if (jinja.substr(0, 2) == "{#") {
      size_t end = jinja.find("#}");
      jinja.remove_prefix(end == jinja.npos ? jinja.size() : end + 2);
      continue;
    }
    auto c = static_cast<unsigned char>(jinja[0]);
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
      hash = (hash ^ c) * 0x100000001b3u;
    jinja.remove_prefix(1);
  }
  return hash;
}

std::optional<ChatTemplate> ChatTemplate::recognise(std::string_view jinja,
                                                    std::string &error) {
  switch (fingerprint(jinja)) {
  case kSparkFingerprint:
    return ChatTemplate(Variant::Spark);
  case kSmallFingerprint:
    return ChatTemplate(Variant::Small);
  default:
    break;
  }
  error = jinja.empty()
              ? "the model has no chat template: give it a prompt (-p)"
              : "the model's chat template is not one that sparkc knows "
                "(Spark-X2.5's): write its markup into a prompt (-p)";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rendering
//===----------------------------------------------------------------------===//

/// JSON as Python's json.dumps(value, ensure_ascii=False) writes it.
static void appendJson(std::string &out, const OrderedJson &value) {
  const char *separator = "";
  if (value.is_object()) {
    out += '{';
    for (const auto &[key, member] : value.items()) {
      out += separator + OrderedJson(key).dump() + ": ";
      appendJson(out, member);
      separator = ", ";
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const OrderedJson &element : value) {
      out += separator;
      appendJson(out, element);
      separator = ", ";
    }
    out += ']';
  } else {
    out += value.dump();
  }
}

/// Parses a JSON object that does not nest too deeply for appendJson.
static bool parseObject(const std::string &text, OrderedJson &value) {
  bool tooDeep = false;
  value = OrderedJson::parse(
      text,
      [&](int depth, OrderedJson::parse_event_t, OrderedJson &) {
        tooDeep |= depth > 64;
        return !tooDeep;
      },
      /*allow_exceptions=*/false);
  return !tooDeep && value.is_object();
}

namespace {

class Writer {
public:
  Writer(std::vector<ChatPiece> &pieces, std::string &error)
      : pieces(pieces), error(error) {}

  void markup(std::string_view text) { put(text, true); }
  void content(std::string_view text) { put(text, false); }

  void beginTurn(const char *role) {
    markup("<｜start▁of▁sentence｜><|");
    markup(role);
    markup("|>");
  }
  void endTurn() { markup("<｜end▁of▁sentence｜>"); }

  bool tools(const std::vector<std::string> &functions) {
    if (functions.empty())
      return true;
    markup("## Tools\nYou have access to the following functions:\n<tools>");
    for (const std::string &text : functions) {
      OrderedJson function;
      if (!parseObject(text, function))
        return fail("a tool is not a JSON object");
      std::string out;
      appendJson(out, function);
      markup("\n");
      content(out);
    }
    markup("\n</tools>");
    return true;
  }

  bool calls(const std::vector<ChatToolCall> &list) {
    for (const ChatToolCall &call : list) {
      OrderedJson arguments;
      if (!parseObject(call.arguments, arguments))
        return fail("the arguments of a tool call are not a JSON object");
      markup("<tool_call>");
      content(call.name);
      for (const auto &[key, value] : arguments.items()) {
        std::string out;
        if (value.is_string())
          out = value.get<std::string>();
        else
          appendJson(out, value);
        markup("<arg_key>");
        content(key);
        markup("</arg_key><arg_value>");
        content(out);
        markup("</arg_value>");
      }
      markup("</tool_call>");
    }
    return true;
  }

  bool fail(const char *why) {
    error = why;
    return false;
  }

private:
  void put(std::string_view text, bool isMarkup) {
    if (text.empty())
      return;
    if (pieces.empty() || pieces.back().markup != isMarkup)
      pieces.push_back({std::string(), isMarkup});
    pieces.back().text += text;
  }

  std::vector<ChatPiece> &pieces;
  std::string &error;
};

} // namespace

bool ChatTemplate::render(const std::vector<ChatMessage> &messages,
                          const ChatOptions &options,
                          std::vector<ChatPiece> &pieces,
                          std::string &error) const {
  const bool small = variant == Variant::Small;
  pieces.clear();
  Writer out(pieces, error);
  if (messages.empty())
    return out.fail("a conversation needs a message");
  if (small && !options.tools.empty())
    return out.fail("the model's chat template has no tools");

  out.beginTurn("System");
  out.markup("\nyou are a helpful assistant.");
  if (!out.tools(options.tools))
    return false;
  const ChatMessage &first = messages[0];
  if (first.role == ChatRole::System && (small || !first.content.empty())) {
    out.markup("\n\n");
    out.content(first.content);
  }
  out.endTurn();

  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage &message = messages[i];
    auto isTool = [&](size_t at) {
      return at < messages.size() && messages[at].role == ChatRole::Tool;
    };
    switch (message.role) {
    case ChatRole::System:
      if (i == 0)
        continue; // stands in the first block
      out.beginTurn("System");
      out.markup("\n");
      out.content(message.content);
      break;
    case ChatRole::User:
      out.beginTurn("User");
      out.content(message.content);
      break;
    case ChatRole::Assistant:
      out.beginTurn("Bot");
      if (!small && !message.reasoning.empty()) {
        out.markup("<think>");
        out.content(message.reasoning);
      }
      out.markup("</think>");
      out.content(message.content);
      if (small && !message.calls.empty())
        return out.fail("the model's chat template has no tools");
      if (!out.calls(message.calls))
        return false;
      break;
    case ChatRole::Tool:
      if (small)
        return out.fail("the model's chat template has no tools");
      // Results that follow each other share a turn.
      if (i == 0 || !isTool(i - 1))
        out.beginTurn("Tool");
      out.markup("<tool_response>");
      out.content(message.content);
      out.markup("</tool_response>");
      if (isTool(i + 1))
        continue;
      break;
    }
    out.endTurn();
  }
  if (options.generationPrompt) {
    out.beginTurn("Bot");
    out.markup(options.thinking.value_or(thinksByDefault()) ? "<think>"
                                                            : "</think>");
  }
  return true;
}
