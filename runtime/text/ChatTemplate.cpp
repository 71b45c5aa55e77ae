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
              ? "the model has no chat template: name one (spark), or write "
                "a prompt with its markup"
              : "the model's chat template is not one that is known here "
                "(Spark-X2.5's): name one to use all the same (spark), or "
                "write a prompt with its markup";
  return std::nullopt;
}

std::optional<ChatTemplate> ChatTemplate::named(std::string_view name) {
  if (name == "spark")
    return ChatTemplate(Variant::Spark);
  if (name == "spark-tiny")
    return ChatTemplate(Variant::Small);
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

  /// One token.
  void markup(const char *name) { pieces.push_back({name, true}); }
  void text(std::string_view text) {
    if (text.empty())
      return;
    if (pieces.empty() || pieces.back().markup)
      pieces.push_back({std::string(), false});
    pieces.back().text += text;
  }

  void beginTurn(const char *role) {
    markup("<｜start▁of▁sentence｜>");
    markup(role);
  }
  void endTurn() { markup("<｜end▁of▁sentence｜>"); }

  bool tools(const std::vector<std::string> &functions) {
    if (functions.empty())
      return true;
    text("## Tools\nYou have access to the following functions:\n<tools>");
    for (const std::string &described : functions) {
      OrderedJson function;
      if (!parseObject(described, function))
        return fail("a tool is not a JSON object");
      auto inner = function.find("function");
      std::string out = "\n";
      appendJson(out, inner != function.end() && inner->is_object() ? *inner
                                                                   : function);
      text(out);
    }
    text("\n</tools>");
    return true;
  }

  bool calls(const std::vector<ChatToolCall> &list) {
    for (const ChatToolCall &call : list) {
      OrderedJson arguments;
      if (!parseObject(call.arguments, arguments))
        return fail("the arguments of a tool call are not a JSON object");
      markup("<tool_call>");
      text(call.name);
      for (const auto &[key, value] : arguments.items()) {
        std::string out;
        if (value.is_string())
          out = value.get<std::string>();
        else
          appendJson(out, value);
        markup("<arg_key>");
        text(key);
        markup("</arg_key>");
        markup("<arg_value>");
        text(out);
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

  if (options.continuation) {
    if (!options.tools.empty())
      return out.fail("tools stand in a conversation's first block");
    out.endTurn();
  } else {
    out.beginTurn("<|System|>");
    out.text("\nyou are a helpful assistant.");
    if (!out.tools(options.tools))
      return false;
    const ChatMessage &first = messages[0];
    if (first.role == ChatRole::System && (small || !first.content.empty()))
      out.text("\n\n" + first.content);
    out.endTurn();
  }

  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage &message = messages[i];
    auto isTool = [&](size_t at) {
      return at < messages.size() && messages[at].role == ChatRole::Tool;
    };
    switch (message.role) {
    case ChatRole::System:
      if (i == 0 && !options.continuation)
        continue; // stands in the first block
      out.beginTurn("<|System|>");
      out.text("\n" + message.content);
      break;
    case ChatRole::User:
      out.beginTurn("<|User|>");
      out.text(message.content);
      break;
    case ChatRole::Assistant:
      out.beginTurn("<|Bot|>");
      if (!small && !message.reasoning.empty()) {
        out.markup("<think>");
        out.text(message.reasoning);
      }
      out.markup("</think>");
      out.text(message.content);
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
        out.beginTurn("<|Tool|>");
      out.markup("<tool_response>");
      out.text(message.content);
      out.markup("</tool_response>");
      if (isTool(i + 1))
        continue;
      break;
    }
    out.endTurn();
  }
  if (options.generationPrompt) {
    out.beginTurn("<|Bot|>");
    out.markup(options.thinking.value_or(thinksByDefault()) ? "<think>"
                                                            : "</think>");
  }
  return true;
}
