//===- AddedTokens.h - Tokens matched in the text itself --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_ADDEDTOKENS_H
#define SPARKC_RUNTIME_TEXT_ADDEDTOKENS_H

#include "runtime/text/TokenizerSpec.h"

#include <array>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

namespace sparkc {

/// A set of added tokens; finds the leftmost, and of those the longest.
class AddedTokens {
public:
  /// Adds a token; `token` must outlive this.
  void add(const AddedToken &token);

  /// A stretch of a text: an added token, or what lies between (null).
  struct Part {
    size_t begin, end;
    const AddedToken *token;
  };

  /// Splits text[begin, end) and appends its parts, none of them empty.
  /// Without `parseSpecial` special tokens are text like any other.
  void split(std::string_view text, size_t begin, size_t end, bool parseSpecial,
             std::vector<Part> &parts) const;

private:
  struct Node {
    std::map<unsigned char, uint32_t> next;
    const AddedToken *token = nullptr;
  };
  const AddedToken *longestAt(std::string_view text) const;

  std::vector<Node> nodes = std::vector<Node>(1);
  std::array<bool, 256> starts{}; ///< bytes that a token begins with
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_ADDEDTOKENS_H
