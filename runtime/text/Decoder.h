//===- Decoder.h - Token ids to text, as they come --------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_DECODER_H
#define SPARKC_RUNTIME_TEXT_DECODER_H

#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <string>

namespace sparkc {

/// Turns tokens into text one by one. What it gives is always well-formed
/// UTF-8: bytes that may still become a character are held back (at most
/// three), bytes that cannot are replaced by U+FFFD as Python's
/// `bytes.decode("utf-8", "replace")` would do over the whole.
class StreamDecoder {
public:
  /// Special tokens give their names, or nothing.
  StreamDecoder(const Tokenizer &tokenizer, bool showSpecial)
      : tokenizer(tokenizer), showSpecial(showSpecial) {}

  /// Appends to `out` the text that is complete with this token. An id
  /// without a token gives nothing.
  void add(int32_t id, std::string &out);

  /// Appends what was held back, replaced, and starts anew.
  void finish(std::string &out);

private:
  void drain(std::string &out);

  const Tokenizer &tokenizer;
  bool showSpecial;
  std::string pending;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_DECODER_H
