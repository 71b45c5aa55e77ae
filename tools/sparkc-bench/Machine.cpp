//===- Machine.cpp - What is known of this machine ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Machine.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <sched.h>
#include <cstdio>
#include <sstream>
#include <thread>

using namespace sparkc;

static std::string contents(const std::string &path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string bench::cpuModel() {
  std::istringstream in(contents("/proc/cpuinfo"));
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) {
      size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      if (value != std::string::npos)
        return line.substr(value);
    }
  return "unknown";
}

uint64_t bench::largestCacheBytes() {
  uint64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::istringstream in(contents("/sys/devices/system/cpu/cpu0/cache/index" +
                                   std::to_string(index) + "/size"));
    uint64_t size = 0;
    char unit = 0;
    if (!(in >> size))
      continue;
    in >> unit;
    largest = std::max(largest, size << (unit == 'K'   ? 10
                                         : unit == 'M' ? 20
                                                       : 0));
  }
  return largest ? largest : uint64_t(32) << 20;
}

std::vector<unsigned> bench::allowedProcessors() {
  std::vector<unsigned> found;
  for (int cpus = 1024; cpus <= 1 << 20 && found.empty(); cpus *= 4) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set)
      break;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes, set) == 0)
      for (int cpu = 0; cpu < cpus; ++cpu)
        if (CPU_ISSET_S(cpu, bytes, set))
          found.push_back(cpu);
    CPU_FREE(set);
  }
  return found;
}

namespace {
struct Ticks {
  uint64_t idle = 0, all = 0;
};
} // namespace

/// "cpu3 user nice system idle iowait irq softirq steal guest ..." by number.
static std::map<unsigned, Ticks> readTicks(const std::string &stat) {
  std::map<unsigned, Ticks> ticks;
  std::istringstream in(stat);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("cpu", 0) != 0 || line.size() < 4 || !isdigit(line[3]))
      continue;
    std::istringstream fields(line.substr(3));
    unsigned cpu;
    fields >> cpu;
    Ticks t;
    uint64_t value;
    // Guest time is counted in user time already.
    for (int i = 0; i < 8 && fields >> value; ++i) {
      t.all += value;
      if (i == 3 || i == 4)
        t.idle += value;
    }
    ticks[cpu] = t;
  }
  return ticks;
}

std::optional<double>
bench::busyFraction(const std::string &before, const std::string &after,
                    const std::vector<unsigned> &processors) {
  std::map<unsigned, Ticks> first = readTicks(before), last = readTicks(after);
  uint64_t idle = 0, all = 0;
  for (unsigned cpu : processors)
    if (first.count(cpu) && last.count(cpu)) {
      idle += last[cpu].idle - first[cpu].idle;
      all += last[cpu].all - first[cpu].all;
    }
  if (!all)
    return std::nullopt;
  return 1 - double(idle) / all;
}

std::optional<double> bench::hugePageShare(const std::string &smaps,
                                           uintptr_t address) {
  std::istringstream in(smaps);
  bool here = false;
  uint64_t resident = 0, huge = 0;
  for (std::string line; std::getline(in, line);) {
    unsigned long long begin, end, kilobytes;
    char name[32];
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      here = begin <= address && address < end;
    else if (here && std::sscanf(line.c_str(), "%31[A-Za-z]: %llu kB", name,
                                 &kilobytes) == 2) {
      const std::string field = name;
      if (field == "Rss")
        resident = kilobytes;
      else if (field == "FilePmdMapped" || field == "ShmemPmdMapped" ||
               field == "AnonHugePages")
        huge += kilobytes;
    }
  }
  if (!resident)
    return std::nullopt;
  return double(huge) / resident;
}

std::optional<double> bench::hugePageShare(const void *address) {
  return hugePageShare(contents("/proc/self/smaps"),
                       reinterpret_cast<uintptr_t>(address));
}

std::optional<double> bench::watchBusyFraction(double seconds) {
  std::string before = contents("/proc/stat");
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return busyFraction(before, contents("/proc/stat"), allowedProcessors());
}
