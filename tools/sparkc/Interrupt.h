//===- Interrupt.h - Stopping between two pieces of work --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_INTERRUPT_H
#define SPARKC_TOOLS_SPARKC_INTERRUPT_H

#include <csignal>

namespace sparkc {

/// While one lives, SIGINT and SIGTERM only set a flag. One at a time.
class InterruptGuard {
public:
  InterruptGuard() {
    flag() = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { flag() = 1; };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &interrupt);
    sigaction(SIGTERM, &action, &terminate);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &interrupt, nullptr);
    sigaction(SIGTERM, &terminate, nullptr);
  }
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  bool interrupted() const { return flag() != 0; }

private:
  static volatile std::sig_atomic_t &flag() {
    static volatile std::sig_atomic_t raised = 0;
    return raised;
  }
  struct sigaction interrupt, terminate;
};

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_INTERRUPT_H
