//===- Machine.h - What is known of this machine ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_BENCH_MACHINE_H
#define SPARKC_TOOLS_BENCH_MACHINE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sparkc::bench {

/// "model name" of /proc/cpuinfo, or "unknown".
std::string cpuModel();

/// Bytes of the largest cache of a processor; 32 MiB if the system is silent.
uint64_t largestCacheBytes();

/// Processors this process may run on.
std::vector<unsigned> allowedProcessors();

/// Share of the time between two texts of /proc/stat in which the processors
/// were not idle (stolen time counts as busy); nothing if no time has passed.
std::optional<double> busyFraction(const std::string &before,
                                   const std::string &after,
                                   const std::vector<unsigned> &processors);

/// Share of a mapping's resident memory that 2 MiB pages map, from a text of
/// /proc/self/smaps; nothing if no mapping holds the address.
std::optional<double> hugePageShare(const std::string &smaps, uintptr_t address);

/// The same for memory of this process as it is now.
std::optional<double> hugePageShare(const void *address);

/// Watches the processors of this process for a while, doing nothing.
std::optional<double> watchBusyFraction(double seconds);

} // namespace sparkc::bench

#endif // SPARKC_TOOLS_BENCH_MACHINE_H
