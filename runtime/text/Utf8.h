//===- Utf8.h - Reading and repairing UTF-8 ---------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The little Unicode the text side needs: stepping through UTF-8, writing a
/// character, and turning bytes that are not UTF-8 into text before they are
/// tokenized.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_UTF8_H
#define SPARKC_RUNTIME_TEXT_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sparkc {

/// What stands at the start of some bytes.
struct Utf8Step {
  enum Kind {
    Character, ///< a well-formed character of `bytes` bytes
    Invalid,   ///< `bytes` bytes that can never become one (the maximal
               ///< subpart that Python and Rust replace by one U+FFFD)
    Incomplete ///< the bytes end inside what may become one
  };
  Kind kind;
  unsigned bytes; ///< 1..4
};

/// Looks at the start of `text`, which must not be empty.
Utf8Step stepUtf8(std::string_view text);

/// Appends `codePoint` (at most U+10FFFF) to `out`.
void appendUtf8(std::string &out, uint32_t codePoint);

/// Whether all of `text` is well-formed.
bool isUtf8(std::string_view text);

/// Whether `character` is one of Unicode's White_Space.
bool isWhiteSpace(std::string_view character);

/// Bytes made into text for the tokenizer.
struct RepairedUtf8 {
  /// What is tokenized.
  std::string text;
  /// What pre-tokenizer patterns look at: `text`, with each surrogate replaced
  /// by U+E000 (as long as it, and as little a letter), so that it is
  /// well-formed.
  std::string view;
};

/// Makes text of any bytes, as llama.cpp does, so that both give the same
/// tokens: a byte that starts no character becomes U+FFFD (one for each byte),
/// an overlong form becomes the character it spells, a surrogate stays.
RepairedUtf8 repairUtf8(std::string_view bytes);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_UTF8_H
