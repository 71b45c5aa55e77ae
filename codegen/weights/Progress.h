//===- Progress.h - A progress bar on a terminal ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_PROGRESS_H
#define SPARKC_CODEGEN_WEIGHTS_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <cstdint>
#include <string>

namespace sparkc {

/// One line on stderr that is redrawn at most ten times a second and erased at
/// the end, so that nothing of it stays in a log. Silent when `quiet` or when
/// stderr is not a terminal. Use from one thread.
class Progress {
public:
  Progress(llvm::StringRef label, uint64_t totalBytes, bool quiet = false);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Bytes done so far, of the total.
  void update(uint64_t doneBytes);
  void advance(uint64_t bytes) { update(done + bytes); }
  /// Shown behind the label: what is being worked on.
  void setItem(llvm::StringRef name) { item = name.str(); }
  /// Erases the line; further updates draw nothing.
  void finish();

  /// The line's text, `width` columns at most, without the carriage return.
  static std::string render(llvm::StringRef label, llvm::StringRef item,
                            uint64_t done, uint64_t total, double seconds,
                            unsigned width);

private:
  std::string label, item;
  uint64_t total, done = 0;
  bool active, drawn = false;
  std::chrono::steady_clock::time_point start, lastDraw;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_PROGRESS_H
