//===- Team.cpp - The OpenMP driver ---------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Session.h"

#include <omp.h>

void sparkc::runTeam(sparkc_entry_fn entry, sparkc_ctx *ctx, uint32_t n) {
  if (n == 1)
    return entry(ctx, 0, 1);
#pragma omp parallel num_threads(n)
  entry(ctx, omp_get_thread_num(), omp_get_num_threads());
}
