//===- ChatTokens.cpp - Tokens of a rendered conversation -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/ChatTokens.h"

#include <algorithm>

using namespace sparkc;

/// Tokens without which a conversation has no turns.
static constexpr std::string_view kTurnTokens[] = {
    "<｜start▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<|System|>",
    "<|User|>",                "<|Bot|>",              "<|Tool|>",
    "<think>",                 "</think>"};
static constexpr std::string_view kToolTokens[] = {
    "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    "<arg_key>",   "</arg_key>",   "<arg_value>",     "</arg_value>"};

/// Markup that a tokenizer finds in any text: added tokens, not special ones.
static std::vector<std::string_view> foundInText(const Tokenizer &tokenizer) {
  std::vector<std::string_view> names;
  auto look = [&](std::string_view name) {
    const int32_t id = tokenizer.addedToken(name);
    if (id >= 0 && !tokenizer.isSpecial(id))
      names.push_back(name);
  };
  std::for_each(std::begin(kTurnTokens), std::end(kTurnTokens), look);
  std::for_each(std::begin(kToolTokens), std::end(kToolTokens), look);
  return names;
}

bool sparkc::chatTokens(const Tokenizer &tokenizer,
                        const std::vector<ChatPiece> &pieces,
                        std::vector<int32_t> &ids, std::string &error) {
  const EncodeOptions asText = {/*addSpecial=*/false, /*parseSpecial=*/false};
  std::vector<int32_t> out;
  std::string text; // what lies between two tokens is tokenized as one
  std::vector<size_t> cuts;
  const std::vector<std::string_view> names = foundInText(tokenizer);
  auto flush = [&] {
    size_t begin = 0;
    cuts.push_back(text.size());
    for (size_t end : cuts) {
      if (end > begin &&
          !tokenizer.encode(std::string_view(text).substr(begin, end - begin),
                            asText, out, error))
        return false;
      begin = end;
    }
    text.clear();
    cuts.clear();
    return true;
  };
  for (const ChatPiece &piece : pieces) {
    if (!piece.markup) {
      const std::string_view said = piece.text;
      for (size_t at = said.find('<'); !names.empty() && at != said.npos;
           at = said.find('<', at + 1))
        for (std::string_view name : names)
          if (said.substr(at, name.size()) == name) {
            cuts.push_back(text.size() + at + 1); // between '<' and the rest
            break;
          }
      text += said;
      continue;
    }
    const int32_t id = tokenizer.addedToken(piece.text);
    if (id < 0) {
      if (std::find(std::begin(kTurnTokens), std::end(kTurnTokens),
                    piece.text) != std::end(kTurnTokens)) {
        error = "the tokenizer has no token " + piece.text +
                ", which the chat template writes";
        return false;
      }
      text += piece.text;
      continue;
    }
    if (!flush())
      return false;
    out.push_back(id);
  }
  if (!flush())
    return false;
  ids.insert(ids.end(), out.begin(), out.end());
  return true;
}
