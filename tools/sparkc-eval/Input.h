//===- Input.h - The tokens to evaluate on ----------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_EVAL_INPUT_H
#define SPARKC_TOOLS_EVAL_INPUT_H

#include "runtime/include/sparkc.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sparkc::eval {

/// Tokenizes a file with the model's tokenizer. Markup in it is text, and no
/// special token is added; `bos` is the token that the tokenizer's config asks
/// for at the start of a sequence, or -1. On failure false, and `why` is one line
/// that starts with the file.
bool readText(const std::string &path, const sparkc_model *model,
              std::vector<int32_t> &tokens, int32_t &bos, std::string &why);

} // namespace sparkc::eval

#endif // SPARKC_TOOLS_EVAL_INPUT_H
