//===- Evaluation.h - A model over the windows of a text --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_EVAL_EVALUATION_H
#define SPARKC_TOOLS_EVAL_EVALUATION_H

#include "tools/sparkc-eval/Scores.h"

#include <string>

namespace sparkc::eval {

/// What the command line says.
struct Options {
  std::string model, weights;
  std::string reference, referenceWeights; ///< empty: none
  std::string text, tokens;                ///< one of them is given
  size_t window = 512;
  size_t windows = 0; ///< at most so many; 0: all
  size_t greedy = 32; ///< tokens of a continuation; 0: none
  bool allPositions = false;
  uint32_t threads = 0; ///< 0: as many as the process has processors
  bool json = false;
  bool quiet = false;
};

struct Result {
  Summary scores;
  size_t windows = 0;
  bool hasReference = false;
  bool hasGreedy = false;
  Mean greedy = {}; ///< over windows
  std::string scheme, referenceScheme;
};

/// Runs the model, and the reference if there is one, over the text. On
/// failure false, and `why` is one line that starts with the file at fault.
bool evaluate(const Options &options, Result &result, std::string &why);

/// The result as a JSON object (the keys that `sparkc-eval --help` lists).
std::string jsonText(const Options &options, const Result &result);

/// Writes the result to stdout; false if that fails.
bool print(const Options &options, const Result &result);

} // namespace sparkc::eval

#endif // SPARKC_TOOLS_EVAL_EVALUATION_H
