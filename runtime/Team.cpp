//===- Team.cpp - The OpenMP driver ---------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// One OpenMP runtime in a process: libgomp, which Debian's libraries use too.
// Clang would bring its own, so there the call that GCC makes of the pragma is
// written out.
//===----------------------------------------------------------------------===//

#include "runtime/Session.h"

#if defined(__clang__)
extern "C" int omp_get_thread_num(void);
extern "C" int omp_get_num_threads(void);
extern "C" void GOMP_parallel(void (*fn)(void *), void *data,
                              unsigned num_threads, unsigned flags);
#else
#include <omp.h>
#endif

namespace {
struct Call {
  sparkc_entry_fn entry;
  sparkc_ctx *ctx;
  // The team may be smaller than asked for: the entry is told its real size.
  void operator()() const {
    entry(ctx, omp_get_thread_num(), omp_get_num_threads());
  }
};
} // namespace

void sparkc::runTeam(sparkc_entry_fn entry, sparkc_ctx *ctx, uint32_t n) {
  if (n == 1)
    return entry(ctx, 0, 1);
  Call call{entry, ctx};
#if defined(__clang__)
  GOMP_parallel([](void *data) { (*static_cast<Call *>(data))(); }, &call, n,
                0);
#else
#pragma omp parallel num_threads(n)
  call();
#endif
}
