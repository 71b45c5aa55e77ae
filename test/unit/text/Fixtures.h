//===- Fixtures.h - Tokenizers for tests ------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_TEXT_FIXTURES_H
#define SPARKC_TEST_UNIT_TEXT_FIXTURES_H

#include "runtime/text/Decoder.h"
#include "runtime/text/Tokenizer.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sparkc::test {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

/// A file of the source tree; fails the test if it cannot be read.
std::string readFile(const std::string &path);

/// The tokenizer of examples/spark-tiny.
const Tokenizer &sparkTiny();

/// A tokenizer.json with the 256 bytes as tokens 0..255, an added special
/// token "<s>" 256, and no merges.
Json smallTokenizer();

/// Adds a token spelled `left` + `right` and its merge.
void addMerge(Json &tokenizer, const std::string &left,
              const std::string &right);

/// Builds a tokenizer; null and the reason in `error`.
std::unique_ptr<Tokenizer> build(const Json &tokenizer, const Json &config,
                                 std::string &error);

/// Builds a tokenizer that must be good.
std::unique_ptr<Tokenizer> build(const Json &tokenizer,
                                 const Json &config = Json::object());

Ids encode(const Tokenizer &tokenizer, std::string_view text,
           EncodeOptions options = {});

std::string decode(const Tokenizer &tokenizer, const Ids &ids,
                   bool showSpecial = true);

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_TEXT_FIXTURES_H
