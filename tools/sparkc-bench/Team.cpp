//===- Team.cpp - Runs a function on the threads of a step ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// libgomp, as in the runtime; for clang, which would bring an OpenMP runtime of
// its own, the call that GCC makes of the pragma is written out.
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <vector>

#if defined(__clang__)
extern "C" int omp_get_thread_num(void);
extern "C" int omp_get_num_threads(void);
extern "C" void GOMP_parallel(void (*fn)(void *), void *data,
                              unsigned num_threads, unsigned flags);
#else
#include <omp.h>
#endif

using namespace sparkc::bench;
using Clock = std::chrono::steady_clock;

template <typename Fn> static void parallel(uint32_t n, Fn &fn) {
#if defined(__clang__)
  GOMP_parallel([](void *data) { (*static_cast<Fn *>(data))(); }, &fn, n, 0);
#else
#pragma omp parallel num_threads(n)
  fn();
#endif
}

double sparkc::bench::onTeam(uint32_t n,
                             const std::function<void(uint32_t)> &fn) {
  std::atomic<uint32_t> arrived{0};
  std::vector<Clock::time_point> begins(n), ends(n);
  auto body = [&] {
    uint32_t tid = omp_get_thread_num(), size = omp_get_num_threads();
    arrived.fetch_add(1);
    for (uint32_t spins = 0; arrived.load() < size; ++spins)
      if (spins > 1000)
        sched_yield(); // more threads than processors
    begins[tid] = Clock::now();
    fn(tid);
    ends[tid] = Clock::now();
    // A smaller team than asked for does the work of the others too.
    for (uint32_t other = tid + size; other < n; other += size) {
      begins[other] = begins[tid];
      fn(other);
      ends[other] = Clock::now();
    }
  };
  parallel(n, body);
  return std::chrono::duration<double>(
             *std::max_element(ends.begin(), ends.end()) -
             *std::min_element(begins.begin(), begins.end()))
      .count();
}

uint32_t sparkc::bench::teamSize(uint32_t n) {
  std::atomic<uint32_t> size{1};
  auto body = [&] { size = omp_get_num_threads(); };
  parallel(n, body);
  return size;
}
