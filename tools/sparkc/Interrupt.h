//===- Interrupt.h - Stopping between two pieces of work --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_INTERRUPT_H
#define SPARKC_TOOLS_SPARKC_INTERRUPT_H

#include "tools/common/EndingSignals.h"

namespace sparkc {

/// While one lives, signals that end the process only set a flag. One at a time.
class InterruptGuard {
public:
  bool interrupted() const { return flag() != 0; }

private:
  static volatile std::sig_atomic_t &flag() {
    static volatile std::sig_atomic_t raised = 0;
    return raised;
  }
  EndingSignals signals{(flag() = 0, [](int) { flag() = 1; })};
};

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_INTERRUPT_H
