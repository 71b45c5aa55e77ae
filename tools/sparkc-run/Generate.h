//===- Generate.h - sparkc-run -p TEXT --------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_GENERATE_H
#define SPARKC_TOOLS_GENERATE_H

#include "tools/sparkc-run/Run.h"

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace sparkc::run {

/// What the command line says about writing text.
struct GenerateOptions {
  std::optional<std::string> prompt;
  std::string promptFile; ///< "-": standard input; empty: see `prompt`
  int64_t tokens = 128;   ///< at most; -1: to the end of the context
  /// Sampling; not given: what the model advises.
  std::optional<double> temperature, topP;
  std::optional<uint32_t> topK;
  std::optional<uint64_t> seed; ///< not given: another one each time
  bool ignoreEos = false;
  bool noBos = false;
  bool plain = false;  ///< special tokens in the prompt are text
  bool noEcho = false; ///< do not print the prompt
};

/// Adds the options to the command line.
void addGenerateOptions(CLI::App &app, GenerateOptions &options);

/// Streams the prompt and what the model makes of it to standard output, then
/// a line of figures to standard error. Returns the exit code.
int runGenerate(const Options &options, const GenerateOptions &generate);

} // namespace sparkc::run

#endif // SPARKC_TOOLS_GENERATE_H
