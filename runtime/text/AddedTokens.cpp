//===- AddedTokens.cpp - Tokens matched in the text itself ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/AddedTokens.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace sparkc;

void AddedTokens::add(const AddedToken &token) {
  uint32_t at = 0;
  for (char c : token.text) {
    auto [it, isNew] = nodes[at].next.try_emplace(
        static_cast<unsigned char>(c), static_cast<uint32_t>(nodes.size()));
    at = it->second;
    if (isNew)
      nodes.emplace_back();
  }
  nodes[at].token = &token;
  starts[static_cast<unsigned char>(token.text[0])] = true;
}

const AddedToken *AddedTokens::longestAt(std::string_view text) const {
  const AddedToken *best = nullptr;
  uint32_t at = 0;
  for (char c : text) {
    auto it = nodes[at].next.find(static_cast<unsigned char>(c));
    if (it == nodes[at].next.end())
      break;
    at = it->second;
    if (nodes[at].token)
      best = nodes[at].token;
  }
  return best;
}

/// Bytes of white space that `text` ends with.
static size_t spaceAtEnd(std::string_view text) {
  size_t end = text.size();
  while (end) {
    size_t at = end - 1;
    while (at && (text[at] & 0xc0) == 0x80)
      --at;
    if (!isWhiteSpace(text.substr(at, end - at)))
      break;
    end = at;
  }
  return text.size() - end;
}

/// Bytes of white space that `text` starts with.
static size_t spaceAtStart(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    Utf8Step step = stepUtf8(text.substr(at));
    if (!isWhiteSpace(text.substr(at, step.bytes)))
      break;
    at += step.bytes;
  }
  return at;
}

void AddedTokens::split(std::string_view text, size_t begin, size_t end,
                        bool parseSpecial, std::vector<Part> &parts) const {
  size_t done = begin;
  for (size_t at = begin; at < end;) {
    if (!starts[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const AddedToken *token = longestAt(text.substr(at, end - at));
    if (!token) {
      ++at;
      continue;
    }
    size_t from = at, to = at + token->text.size();
    at = to;
    if (token->special && !parseSpecial)
      continue;
    if (token->lstrip)
      from -= spaceAtEnd(text.substr(done, from - done));
    if (token->rstrip)
      to += spaceAtStart(text.substr(to, end - to));
    if (done < from)
      parts.push_back({done, from, nullptr});
    parts.push_back({from, to, token});
    done = to;
    at = std::max(at, to);
  }
  if (done < end)
    parts.push_back({done, end, nullptr});
}
