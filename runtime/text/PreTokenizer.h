//===- PreTokenizer.h - Splitting text before merging -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_PRETOKENIZER_H
#define SPARKC_RUNTIME_TEXT_PRETOKENIZER_H

#include "runtime/text/TokenizerSpec.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sparkc {

/// Patterns applied one after the other, each to the pieces that the one
/// before has left; its matches, and what lies between them, become pieces.
/// They are matched by PCRE2, compiled just in time where that is possible.
/// Immutable once compiled: any number of threads may split with it.
class PreTokenizer {
public:
  PreTokenizer();
  ~PreTokenizer();

  /// Compiles the patterns; false, with the reason, if one cannot be.
  bool compile(const std::vector<SplitSpec> &splits, std::string &error);

  /// Sets `ends` to the ends of the pieces of `text`, which must be
  /// well-formed UTF-8. A pattern sees nothing outside the piece it splits.
  /// False, with the reason, if PCRE2 gives up.
  bool split(std::string_view text, std::vector<size_t> &ends,
             std::string &error) const;

private:
  struct Patterns;
  std::unique_ptr<Patterns> patterns;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_PRETOKENIZER_H
