//===- Input.cpp - The tokens to evaluate on ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-eval/Input.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

using namespace sparkc::eval;

static bool readFile(const std::string &path, std::string &text,
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

bool sparkc::eval::readTokens(const std::string &path,
                              std::vector<int32_t> &tokens, std::string &why) {
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
      why = path + ": not a token id: '" +
            text.substr(at, std::min<size_t>(end - at, 40)) + "'";
      return false;
    }
    tokens.push_back(id);
    at = text.find_first_not_of(white, end);
  }
  return true;
}

bool sparkc::eval::readText(const std::string &path, const sparkc_model *model,
                            std::vector<int32_t> &tokens, int32_t &bos,
                            std::string &why) {
  std::string text;
  if (!readFile(path, text, why))
    return false;
  sparkc_error error;
  sparkc_text_info info = {};
  info.struct_size = sizeof info;
  size_t count = 0;
  if (sparkc_text_info_get(model, &info, &error) == SPARKC_OK) {
    // No token is shorter than a byte.
    tokens.resize(text.size());
    sparkc_tokenize(model, text.data(), text.size(), 0, tokens.data(),
                    tokens.size(), &count, &error);
    if (error.status == SPARKC_OK && count > tokens.size()) {
      tokens.resize(count);
      sparkc_tokenize(model, text.data(), text.size(), 0, tokens.data(),
                      tokens.size(), &count, &error);
    }
  }
  if (error.status != SPARKC_OK) {
    why = path + ": " + error.message;
    return false;
  }
  tokens.resize(count);
  bos = info.adds_bos ? info.bos : -1;
  return true;
}
