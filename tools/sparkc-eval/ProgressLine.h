//===- ProgressLine.h - How far an evaluation is ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_EVAL_PROGRESSLINE_H
#define SPARKC_TOOLS_EVAL_PROGRESSLINE_H

#include <chrono>
#include <cstddef>
#include <string>

namespace sparkc::eval {

/// A line on stderr that is redrawn, and erased in the end. Silent when
/// `quiet` or where stderr is no terminal.
class ProgressLine {
public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  /// `done` windows of `total`; their perplexity so far, or 0.
  void show(size_t done, size_t total, double perplexity);
  /// The line's text: at most 79 columns.
  static std::string text(size_t done, size_t total, double perplexity,
                          double seconds);

private:
  using Clock = std::chrono::steady_clock;
  bool active;
  Clock::time_point begin = Clock::now();
};

} // namespace sparkc::eval

#endif // SPARKC_TOOLS_EVAL_PROGRESSLINE_H
