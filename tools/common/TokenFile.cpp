//===- TokenFile.cpp - Files that tools read ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/TokenFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

bool sparkc::readFile(const std::string &path, std::string &text,
                      std::string &why) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> in(
      std::fopen(path.c_str(), "rb"), std::fclose);
  char buffer[1 << 16];
  if (in)
    while (size_t n = std::fread(buffer, 1, sizeof buffer, in.get()))
      text.append(buffer, n);
  if (in && !std::ferror(in.get()))
    return true;
  why = path + ": " + std::strerror(errno);
  return false;
}

/// The start of a word as it can stand in a message.
static std::string shown(const char *from, const char *to) {
  std::string text;
  for (const char *end = std::min(to, from + 40); from != end; ++from) {
    const unsigned char byte = *from;
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
    text += byte < 0x20 || byte == 0x7f ? escaped : std::string(1, *from);
  }
  return text;
}

bool sparkc::readTokens(const std::string &path, std::vector<int32_t> &tokens,
                        std::string &why) {
  std::string text;
  if (!readFile(path, text, why))
    return false;
  const char *white = " \t\r\n\v\f";
  for (size_t at = text.find_first_not_of(white); at != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(white, at), text.size());
    const char *from = text.data() + at, *to = text.data() + end;
    int32_t id = 0;
    auto [stop, code] = std::from_chars(from, to, id);
    if (code != std::errc() || stop != to) {
      why = path + ": not a token id: '" + shown(from, to) + "'";
      return false;
    }
    tokens.push_back(id);
    at = text.find_first_not_of(white, end);
  }
  return true;
}
