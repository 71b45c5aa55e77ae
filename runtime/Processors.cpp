//===- Processors.cpp - How many processors a process may use -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Processors.h"
#include "runtime/include/sparkc.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <vector>

using namespace sparkc;

unsigned sparkc::affinityProcessors() {
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set)
      break;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int count = sched_getaffinity(0, bytes, set) == 0
                    ? CPU_COUNT_S(bytes, set)
                    : 0; // the kernel knows more processors: try again
    CPU_FREE(set);
    if (count > 0)
      return count;
  }
  return 1;
}

/// Undoes mountinfo's \040-style escapes.
static std::string unescaped(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool octal = text[i] == '\\' && i + 3 < text.size() &&
                 text.find_first_not_of("01234567", i + 1) > i + 3;
    if (!octal) {
      out += text[i];
      continue;
    }
    out += char((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

static bool hasWord(const std::string &list, const char *word) {
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');)
    if (item == word)
      return true;
  return false;
}

namespace {
/// A mounted cgroup hierarchy that can hold a CPU quota.
struct Hierarchy {
  bool v2;
  std::string root;  ///< directory of the hierarchy that is mounted
  std::string mount; ///< where
};
} // namespace

static std::vector<Hierarchy> hierarchies(const std::string &root) {
  std::vector<Hierarchy> found;
  std::ifstream in(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    // id parent major:minor root mount options [optional]... - type source
    // superoptions
    size_t dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string id, parent, device, dir, mount, type, source, options;
    left >> id >> parent >> device >> dir >> mount;
    right >> type >> source >> options;
    if (type == "cgroup2")
      found.push_back({true, unescaped(dir), unescaped(mount)});
    else if (type == "cgroup" && hasWord(options, "cpu"))
      found.push_back({false, unescaped(dir), unescaped(mount)});
  }
  return found;
}

/// The quota that one cgroup directory sets, 0 if none.
static double quotaOf(const std::string &dir, bool v2) {
  double quota = 0, period = 0;
  if (v2) {
    std::ifstream in(dir + "/cpu.max");
    std::string first;
    if (!(in >> first >> period) || first == "max")
      return 0;
    std::istringstream number(first);
    if (!(number >> quota))
      return 0;
  } else {
    std::ifstream q(dir + "/cpu.cfs_quota_us"), p(dir + "/cpu.cfs_period_us");
    if (!(q >> quota) || !(p >> period))
      return 0;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

/// The path of a process's cgroup below a hierarchy's mount point: "" or
/// "/a/b". A process outside the mounted part is taken to be at its top.
static std::string below(const std::string &path, const std::string &root) {
  if (path.find("..") != std::string::npos)
    return "";
  if (root == "/")
    return path == "/" ? "" : path;
  if (path.compare(0, root.size(), root) == 0 &&
      (path.size() == root.size() || path[root.size()] == '/'))
    return path.substr(root.size());
  return "";
}

double sparkc::cgroupQuota(const std::string &root) {
  double least = 0;
  std::vector<Hierarchy> mounted = hierarchies(root);
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    // hierarchy:controllers:path, where version 2 is "0::path"
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    bool v2 = controllers.empty();
    if (!v2 && !hasWord(controllers, "cpu"))
      continue;
    for (const Hierarchy &h : mounted) {
      if (h.v2 != v2)
        continue;
      for (std::string rest = below(line.substr(second + 1), h.root);;) {
        double quota = quotaOf(root + h.mount + rest, v2);
        if (quota > 0 && (least == 0 || quota < least))
          least = quota;
        if (rest.empty())
          break;
        rest.resize(rest.rfind('/') == std::string::npos ? 0 : rest.rfind('/'));
      }
    }
  }
  return least;
}

unsigned sparkc::usableProcessors(unsigned affinity, double quota) {
  unsigned count = std::max(affinity, 1u);
  if (quota > 0 && std::ceil(quota) < count)
    count = std::max(1u, unsigned(std::ceil(quota)));
  return count;
}

extern "C" uint32_t sparkc_default_threads(void) {
  try {
    return usableProcessors(affinityProcessors(), cgroupQuota(""));
  } catch (...) {
    return 1;
  }
}
