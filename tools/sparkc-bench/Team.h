//===- Team.h - Runs a function on the threads of a step --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_BENCH_TEAM_H
#define SPARKC_TOOLS_BENCH_TEAM_H

#include <cstdint>
#include <functional>

namespace sparkc::bench {

/// Runs fn(tid) for tid = 0 .. n - 1 at the same time, on the very OpenMP
/// threads that the runtime's steps run on: threads of our own would compete
/// with those, which poll for a while after a step. Returns the seconds from
/// the moment that all had started until the last was done.
/// fn must not throw.
double onTeam(uint32_t n, const std::function<void(uint32_t tid)> &fn);

/// Threads that OpenMP gives when asked for n.
uint32_t teamSize(uint32_t n);

} // namespace sparkc::bench

#endif // SPARKC_TOOLS_BENCH_TEAM_H
