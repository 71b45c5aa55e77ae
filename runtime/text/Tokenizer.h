//===- Tokenizer.h - Text to token ids --------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Byte-level BPE as Hugging Face's `tokenizers` does it, to the id:
///
///  1. added tokens are found in the text, leftmost and longest first, those
///     that are not "normalized" before the others;
///  2. what lies between is split by the pre-tokenizer's patterns;
///  3. the bytes of each piece are merged into tokens by rank.
///
/// Bytes that are not UTF-8 become text first (see repairUtf8), so any input
/// has tokens; decoding gives valid UTF-8 text back unchanged.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_TOKENIZER_H
#define SPARKC_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/text/AddedTokens.h"
#include "runtime/text/BytePairs.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/SpellingTable.h"
#include "runtime/text/TokenizerSpec.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sparkc {

struct EncodeOptions {
  /// Put the tokens around the text that the model's config asks for (BOS,
  /// EOS). A BOS that the text itself starts with is not doubled.
  bool addSpecial = true;
  /// Special tokens written in the text are those tokens; else mere text.
  bool parseSpecial = true;
};

/// Immutable once built: any number of threads may use one.
class Tokenizer {
public:
  /// Builds a tokenizer; null, with one line in `error`, if the parts of
  /// `spec` do not fit each other.
  static std::unique_ptr<Tokenizer> build(TokenizerSpec spec,
                                          const TokenizerConfig &config,
                                          const GenerationConfig &generation,
                                          std::string &error);

  /// Appends the tokens of `text` (any bytes, less than 1 GiB). False, with
  /// one line in `error`, if the text cannot be split; `ids` is then as before.
  bool encode(std::string_view text, EncodeOptions options,
              std::vector<int32_t> &ids, std::string &error) const;

  /// The bytes a token stands for: part of a character, at times. Of an added
  /// token, its name. Empty for an id without a token.
  std::string_view bytesOf(int32_t id) const;

  /// Whether there is a token with this id.
  bool has(int32_t id) const;

  /// Whether a token is markup rather than text.
  bool isSpecial(int32_t id) const;

  /// The id of an added token, or -1.
  int32_t addedToken(std::string_view name) const;

  /// One more than the largest id.
  size_t size() const { return tokens.size(); }

  /// The token that starts a sequence, or -1.
  int32_t bos() const { return bosId; }
  /// Whether encode puts it before a text.
  bool addsBos() const {
    return bosId >= 0 && !prefix.empty() && prefix[0] == bosId;
  }
  /// The tokens that end one: the first is the usual one.
  const std::vector<int32_t> &eos() const { return eosIds; }
  bool isEos(int32_t id) const;

private:
  struct Token {
    uint32_t begin = 0, size = 0; ///< in `bytes`
    bool present = false, special = false;
  };

  bool addVocab(std::string &error);
  bool addAdded(std::string &error);
  bool addMerges(std::string &error);
  bool addConfig(const TokenizerConfig &config,
                 const GenerationConfig &generation, std::string &error);
  Token *place(uint32_t id, std::string_view what, std::string &error);
  bool encodeText(std::string_view text, std::vector<int32_t> &ids,
                  MergeScratch &scratch, std::string &error) const;

  TokenizerSpec spec; ///< without vocabulary and merges once built
  std::string bytes;  ///< of all tokens, one after the other
  std::vector<Token> tokens;
  /// From a token's spelling to its id, while building.
  SpellingTable bySpelling;
  /// From bytes to id: of pieces that are tokens (ignore_merges only).
  SpellingTable byBytes;
  std::array<uint32_t, 256> byteTokens{};
  MergeTable merges;
  PreTokenizer preTokenizer;
  AddedTokens plainAdded, normalizedAdded;
  std::vector<int32_t> prefix, suffix;
  int32_t bosId = -1;
  std::vector<int32_t> eosIds;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_TOKENIZER_H
