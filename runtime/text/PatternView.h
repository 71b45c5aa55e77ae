//===- PatternView.h - What patterns see of a text --------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Pre-tokenizer patterns ask for letters, marks, numbers, punctuation and
/// symbols. PCRE2 10.42 answers from Unicode 14, other tokenizers from newer
/// versions: an emoji of 2022 would be split from the space before it. So
/// patterns are shown another text, in which the characters of Unicode 15.1
/// are replaced by older ones of their kind that take as many bytes. (The
/// version is that of Oniguruma 6.9.9, which Hugging Face's tokenizers use, and
/// of llama.cpp.)
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_PATTERNVIEW_H
#define SPARKC_RUNTIME_TEXT_PATTERNVIEW_H

#include <string>
#include <string_view>

namespace sparkc {

/// Makes in `view` the text that patterns are to see, if it differs from
/// `text` (well-formed UTF-8); returns which of the two it is.
std::string_view patternView(std::string_view text, std::string &view);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_PATTERNVIEW_H
