//===- Processors.h - How many processors a process may use -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_PROCESSORS_H
#define SPARKC_RUNTIME_PROCESSORS_H

#include <string>

namespace sparkc {

/// Processors in this thread's affinity mask, at least 1.
unsigned affinityProcessors();

/// The smallest CPU quota of this process's cgroups and their ancestors, in
/// processors (1.5 = 150 ms of CPU time each 100 ms), or 0 if there is none.
/// Reads <root>/proc/self/{cgroup,mountinfo} and, below <root>, the mounts
/// these name: version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us` over
/// `cpu.cfs_period_us`), hybrid machines and cgroup namespaces included.
/// Anything unreadable counts as no quota.
double cgroupQuota(const std::string &root);

/// min(affinity, quota rounded up), at least 1.
unsigned usableProcessors(unsigned affinity, double quota);

} // namespace sparkc

#endif // SPARKC_RUNTIME_PROCESSORS_H
