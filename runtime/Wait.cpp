//===- Wait.cpp - What a thread does while a barrier is closed ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/include/sparkc.h"

#include <climits>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" void sparkc_futex_wait(uint32_t *word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

extern "C" void sparkc_futex_wake(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

extern "C" void sparkc_yield_wait(uint32_t *word, uint32_t seen) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == seen)
    sched_yield();
}

extern "C" void sparkc_yield_wake(uint32_t *) {}
