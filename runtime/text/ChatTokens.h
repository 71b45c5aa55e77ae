//===- ChatTokens.h - Tokens of a rendered conversation ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_CHATTOKENS_H
#define SPARKC_RUNTIME_TEXT_CHATTOKENS_H

#include "runtime/text/ChatTemplate.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sparkc {

/// Appends the tokens of a rendered conversation to `ids`: those of its pieces
/// joined, but for text that looks like markup and stays text. Nothing is added
/// around it. False, with one line in `error`, if the tokenizer lacks one of
/// the tokens that part turns; `ids` is then as before. What else is markup (of
/// tools) may be mere text to a tokenizer.
bool chatTokens(const Tokenizer &tokenizer,
                const std::vector<ChatPiece> &pieces, std::vector<int32_t> &ids,
                std::string &error);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_CHATTOKENS_H
