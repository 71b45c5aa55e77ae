//===- FuzzTokenizer.cpp - Fuzzes the readers of the text files -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is tokenizer.json, tokenizer_config.json, generation_config.json
// and a text, each but the last ended by a zero byte. Files that are accepted
// tokenize the text; without added
// tokens, text that is UTF-8 must come back as it was.
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Decoder.h"
#include "runtime/text/ModelText.h"
#include "runtime/text/Utf8.h"

#include <cstdlib>

using namespace sparkc;

static std::string_view takePart(std::string_view &rest) {
  size_t end = rest.find('\0');
  std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

static void require(bool holds) {
  if (!holds)
    abort();
}

static std::string decoded(const Tokenizer &tokenizer,
                           const std::vector<int32_t> &ids) {
  StreamDecoder decoder(tokenizer, /*showSpecial=*/true);
  std::string out;
  for (int32_t id : ids)
    decoder.add(id, out);
  decoder.finish(out);
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  TextFiles files;
  files.tokenizer = takePart(rest);
  files.tokenizerConfig = takePart(rest);
  files.generationConfig = takePart(rest);
  const std::string_view text = rest;

  std::string error;
  auto loaded = ModelText::load(files, 1u << 20, error);
  require(loaded ? error.empty() : !error.empty());
  if (!loaded)
    return 0;
  const Tokenizer &tokenizer = *loaded->tokenizer;
  TokenizerSpec spec;
  require(readTokenizerJson(files.tokenizer, spec, error));
  const bool hasAdded = !spec.added.empty();
  for (bool parseSpecial : {false, true}) {
    std::vector<int32_t> ids;
    EncodeOptions options;
    options.addSpecial = parseSpecial;
    options.parseSpecial = parseSpecial;
    if (!tokenizer.encode(text, options, ids, error)) {
      require(ids.empty() && !error.empty());
      continue;
    }
    for (int32_t id : ids)
      require(tokenizer.has(id));
    std::string out = decoded(tokenizer, ids);
    require(isUtf8(out));
    // Added tokens may strip white space, or have a name that spells bytes.
    if (!parseSpecial && !hasAdded && isUtf8(text))
      require(out == text);
  }
  return 0;
}
