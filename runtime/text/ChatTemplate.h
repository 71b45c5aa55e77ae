//===- ChatTemplate.h - Conversations as a model reads them -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Spark-X2.5's chat template, written out. A checkpoint's template is a Jinja
/// program; it is not run but recognised, and one that is not known is refused:
/// a chat in another model's markup gives fluent nonsense.
///
///     <BOS><|System|>\nyou are a helpful assistant.[tools][\n\nsystem]<EOS>
///     <BOS><|User|>text<EOS>
///     <BOS><|Bot|>[<think>reasoning]</think>text[tool calls]<EOS>
///     <BOS><|Tool|><tool_response>text</tool_response>...<EOS>
///     <BOS><|Bot|><think>                     (or </think>: without thinking)
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_CHATTEMPLATE_H
#define SPARKC_RUNTIME_TEXT_CHATTEMPLATE_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sparkc {

enum class ChatRole { System, User, Assistant, Tool };

struct ChatToolCall {
  std::string name;
  std::string arguments; ///< a JSON object
};

struct ChatMessage {
  ChatRole role;
  std::string content;
  std::string reasoning;           ///< of an assistant
  std::vector<ChatToolCall> calls; ///< of an assistant
};

struct ChatOptions {
  /// The messages follow an answer: end its turn, in place of a first block.
  bool continuation = false;
  bool generationPrompt = true;   ///< end where the assistant begins
  std::optional<bool> thinking;   ///< not given: the template's default
  /// JSON objects: name, description, parameters; or one with such a one as
  /// its "function".
  std::vector<std::string> tools;
};

/// A stretch of a prompt: the name of one token, which is markup, or text. What
/// a user or a tool wrote is text, even if it looks like markup.
struct ChatPiece {
  std::string text;
  bool markup;
};

class ChatTemplate {
public:
  /// Finds out which template `jinja` is; nothing, with one line in `error`,
  /// if it is not known. Its comments and white space do not matter.
  static std::optional<ChatTemplate> recognise(std::string_view jinja,
                                               std::string &error);

  /// The template that has this name: "spark", "spark-tiny".
  static std::optional<ChatTemplate> named(std::string_view name);

  /// The template of the published models.
  static ChatTemplate spark() { return ChatTemplate(Variant::Spark); }

  /// Whether it thinks unless told otherwise.
  bool thinksByDefault() const { return variant == Variant::Spark; }

  /// Writes a conversation; false, with one line in `error`, if the template
  /// cannot say it. The pieces joined are what Jinja makes of the template,
  /// byte for byte.
  bool render(const std::vector<ChatMessage> &messages,
              const ChatOptions &options, std::vector<ChatPiece> &pieces,
              std::string &error) const;

private:
  enum class Variant {
    Spark, ///< of the published models
    Small  ///< of spark-tiny: no tools, no reasoning in what was said before
  };
  explicit ChatTemplate(Variant variant) : variant(variant) {}

  Variant variant;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_CHATTEMPLATE_H
