//===- RegexSyntax.h - Tokenizer patterns for PCRE2 -------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The patterns of a tokenizer.json are written for Oniguruma (Ruby's syntax),
/// which Hugging Face's `tokenizers` uses. Nearly all they use means the same
/// to PCRE2; the rest is rewritten or refused here:
///
///   \s \S      Unicode White_Space; PCRE2's \s also has U+180E
///   \w \d      by Unicode properties, as Oniguruma defines them
///   \v \uXXXX  a vertical tab, a character; to PCRE2 a class, nothing
///   [a[b]] &&  nested and intersected classes: refused
///   {,n} {n}?  read differently: refused, as are {n,m}+ and all other escapes
///
/// Characters newer than the library's tables are PatternView.h's business.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_REGEXSYNTAX_H
#define SPARKC_RUNTIME_TEXT_REGEXSYNTAX_H

#include <string>
#include <string_view>

namespace sparkc {

/// Rewrites `pattern` for PCRE2 (with UTF, UCP and MULTILINE, newline LF).
/// Returns false, and says why in `error`, if it cannot be.
bool translateRegex(std::string_view pattern, std::string &out,
                    std::string &error);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_REGEXSYNTAX_H
