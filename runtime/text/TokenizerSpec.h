//===- TokenizerSpec.h - What a tokenizer file says -------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The contents of a tokenizer file, checked piece by piece but not yet against
/// each other, and the readers that fill it.
///
/// Only byte-level BPE is read. What this project does not implement is
/// refused by name rather than skipped: a tokenizer that is nearly right gives
/// fluent nonsense.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_TOKENIZERSPEC_H
#define SPARKC_RUNTIME_TEXT_TOKENIZERSPEC_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sparkc {

/// Largest token id (and number of merges) a tokenizer may have.
constexpr uint32_t kMaxTokenId = (1u << 22) - 1;

/// A token matched in the text itself, before BPE sees it.
struct AddedToken {
  std::string text;
  uint32_t id = 0;
  bool special = false;    ///< not part of the text: skipped when decoding
  bool normalized = false; ///< matched after those that are not
  bool lstrip = false;     ///< takes the white space before it
  bool rstrip = false;     ///< takes the white space after it
  bool singleWord = false; ///< not inside a word
};

/// One step of the pre-tokenizer: matches become pieces of their own.
struct SplitSpec {
  std::string pattern;
  bool literal = false; ///< a plain string, not a regular expression
};

/// A string inside TokenizerSpec::pool.
struct PoolString {
  uint32_t begin = 0;
  uint32_t size = 0;
};

struct TokenizerSpec {
  struct VocabEntry {
    PoolString spelling; ///< in the byte alphabet
    uint32_t id;
  };
  struct MergeEntry {
    PoolString left, right;
  };

  std::string pool;
  std::vector<VocabEntry> vocab;
  std::vector<MergeEntry> merges; ///< best first
  std::vector<AddedToken> added;
  std::vector<SplitSpec> splits;
  bool ignoreMerges = false; ///< a piece that is a token is not merged
  /// Ids the file's post-processor puts around a text.
  std::vector<uint32_t> prefix, suffix;

  std::string_view str(PoolString s) const {
    return std::string_view(pool).substr(s.begin, s.size);
  }
};

/// Reads a Hugging Face tokenizer.json. Returns false, and says why in `error`
/// (one line, without the file's name), if it is malformed or asks for
/// something that is not implemented.
bool readTokenizerJson(std::string_view json, TokenizerSpec &spec,
                       std::string &error);

/// What tokenizer_config.json adds.
struct TokenizerConfig {
  std::optional<bool> addBos, addEos; ///< if said, overrule the post-processor
  std::optional<std::string> bos, eos, pad;
  std::optional<std::string> chatTemplate;
};

/// Reads a tokenizer_config.json; an empty `json` says nothing.
bool readTokenizerConfig(std::string_view json, TokenizerConfig &config,
                         std::string &error);

/// What generation_config.json says.
struct GenerationConfig {
  std::optional<uint32_t> bos;
  std::vector<uint32_t> eos;
  std::optional<bool> doSample;
  std::optional<double> temperature, topP;
  std::optional<uint32_t> topK;
};

/// Reads a generation_config.json; an empty `json` says nothing. Keys that do
/// not concern it are skipped.
bool readGenerationConfig(std::string_view json, GenerationConfig &config,
                          std::string &error);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_TOKENIZERSPEC_H
