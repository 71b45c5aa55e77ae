//===- EndingSignals.h - What ends a program from outside -------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_COMMON_ENDINGSIGNALS_H
#define SPARKC_TOOLS_COMMON_ENDINGSIGNALS_H

#include <csignal>
#include <cstddef>
#include <iterator>

namespace sparkc {

/// While one lives, a handler gets SIGINT, SIGTERM and SIGHUP; those that are
/// ignored (nohup) stay so.
class EndingSignals {
public:
  explicit EndingSignals(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(signals); ++i)
      if (sigaction(signals[i], nullptr, &before[i]) == 0 &&
          before[i].sa_handler != SIG_IGN)
        sigaction(signals[i], &action, nullptr);
  }
  ~EndingSignals() {
    for (size_t i = 0; i < std::size(signals); ++i)
      sigaction(signals[i], &before[i], nullptr);
  }
  EndingSignals(const EndingSignals &) = delete;
  EndingSignals &operator=(const EndingSignals &) = delete;

private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before[std::size(signals)];
};

} // namespace sparkc

#endif // SPARKC_TOOLS_COMMON_ENDINGSIGNALS_H
