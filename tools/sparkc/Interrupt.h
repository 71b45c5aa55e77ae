//===- Interrupt.h - Stopping between two pieces of work --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_INTERRUPT_H
#define SPARKC_TOOLS_SPARKC_INTERRUPT_H

#include <csignal>
#include <iterator>

namespace sparkc {

/// While one lives, SIGINT, SIGTERM and SIGHUP only set a flag; those that are
/// ignored (nohup) stay so. One at a time.
class InterruptGuard {
public:
  InterruptGuard() {
    flag() = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { flag() = 1; };
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(signals); ++i)
      if (sigaction(signals[i], nullptr, &before[i]) == 0 &&
          before[i].sa_handler != SIG_IGN)
        sigaction(signals[i], &action, nullptr);
  }
  ~InterruptGuard() {
    for (size_t i = 0; i < std::size(signals); ++i)
      sigaction(signals[i], &before[i], nullptr);
  }
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  bool interrupted() const { return flag() != 0; }

private:
  static volatile std::sig_atomic_t &flag() {
    static volatile std::sig_atomic_t raised = 0;
    return raised;
  }
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before[std::size(signals)];
};

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_INTERRUPT_H
