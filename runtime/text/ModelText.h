//===- ModelText.h - The text side of one model -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_MODELTEXT_H
#define SPARKC_RUNTIME_TEXT_MODELTEXT_H

#include "runtime/text/Tokenizer.h"

#include <memory>
#include <string>
#include <string_view>

namespace sparkc {

/// The files of a checkpoint that concern text, as they travel in the weights
/// file. All but the tokenizer may be empty.
struct TextFiles {
  std::string_view tokenizer;        ///< tokenizer.json
  std::string_view tokenizerConfig;  ///< tokenizer_config.json
  std::string_view generationConfig; ///< generation_config.json
  std::string_view chatTemplate;     ///< the template's text
};

/// What all of them say together. Immutable.
struct ModelText {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string chatTemplate; ///< empty: none
  double temperature = 1.0; ///< 0: the likeliest token is advised
  double topP = 0.95;
  uint32_t topK = 0;

  /// Reads the files; null, with one line in `error` that names the file, if
  /// one is malformed or asks for what is not implemented. No token may be
  /// `vocab` or above.
  static std::shared_ptr<const ModelText>
  load(const TextFiles &files, uint32_t vocab, std::string &error);
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_MODELTEXT_H
