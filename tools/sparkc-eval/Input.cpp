//===- Input.cpp - The tokens to evaluate on ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-eval/Input.h"

#include "tools/common/TokenFile.h"

using namespace sparkc;
using namespace sparkc::eval;

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
