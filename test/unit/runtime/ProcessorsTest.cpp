//===- ProcessorsTest.cpp - Processors under affinity and quotas ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Processors.h"
#include "runtime/include/sparkc.h"
#include "test/unit/runtime/ToyFiles.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

using namespace sparkc;
using namespace sparkc::test;

namespace {

/// A folder that looks like / to cgroupQuota.
class CgroupTest : public testing::Test {
protected:
  void put(const std::string &path, const std::string &text) {
    std::filesystem::path full = root.path + path;
    std::filesystem::create_directories(full.parent_path());
    writeFile(full, text);
  }
  void mounts(const std::string &text) { put("/proc/self/mountinfo", text); }
  void cgroup(const std::string &text) { put("/proc/self/cgroup", text); }
  double quota() { return cgroupQuota(root.path); }
  TempDir root;
};

const char *v2Mount =
    "22 28 0:20 / /proc rw,nosuid - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 "
    "rw,nsdelegate\n";

TEST_F(CgroupTest, NothingThere) { EXPECT_EQ(quota(), 0); }

TEST_F(CgroupTest, V2Unlimited) {
  mounts(v2Mount);
  cgroup("0::/user.slice\n");
  put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(CgroupTest, V2Own) {
  mounts(v2Mount);
  cgroup("0::/user.slice/job.scope\n");
  put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
}

TEST_F(CgroupTest, V2SmallestOfAncestorsHolds) {
  mounts(v2Mount);
  cgroup("0::/a/b/c\n");
  put("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  put("/sys/fs/cgroup/a/cpu.max", "50000 25000\n");
  EXPECT_DOUBLE_EQ(quota(), 2);
}

TEST_F(CgroupTest, V2NamespaceRoot) {
  // In a container with its own cgroup namespace the path is "/".
  mounts(v2Mount);
  cgroup("0::/\n");
  put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 3);
}

TEST_F(CgroupTest, V2OutsideTheNamespace) {
  mounts(v2Mount);
  cgroup("0::/../../other\n");
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2);
}

const char *v1Mount =
    "33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
    "rw,cpu,cpuacct\n"
    "34 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";

TEST_F(CgroupTest, V1) {
  mounts(v1Mount);
  cgroup("5:cpuset:/\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n");
  put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2.5);
}

TEST_F(CgroupTest, V1ContainerSeesOnlyItsPart) {
  // The mount shows a part of the hierarchy; the path names the whole.
  mounts("33 30 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup "
         "rw,cpu\n");
  cgroup("4:cpu,cpuacct:/docker/abc/inner\n");
  put("/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "-1");
  put("/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(quota(), 0.5);
}

TEST_F(CgroupTest, HybridTakesTheSmaller) {
  mounts("31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
         std::string(v1Mount));
  cgroup("4:cpu,cpuacct:/job\n0::/job\n");
  put("/sys/fs/cgroup/unified/job/cpu.max", "400000 100000");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "600000");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(quota(), 4);
}

TEST_F(CgroupTest, EscapedMountPoint) {
  mounts("30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  cgroup("0::/a\n");
  put("/my groups/a/cpu.max", "100000 100000");
  EXPECT_DOUBLE_EQ(quota(), 1);
}

TEST_F(CgroupTest, Garbage) {
  mounts("\n - \nx y - cgroup2\n" + std::string(v2Mount));
  cgroup("\n:\n0::\n7\n0::/a\n");
  for (const char *text : {"", "x", "max", "100000", "-1 100000", "0 100000",
                           "100000 0", "1e999 x"}) {
    put("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(quota(), 0) << text;
  }
}

TEST(ProcessorsTest, QuotaIsRoundedUpAndNeverRaises) {
  EXPECT_EQ(usableProcessors(8, 0), 8u);
  EXPECT_EQ(usableProcessors(8, 1.5), 2u);
  EXPECT_EQ(usableProcessors(8, 0.1), 1u);
  EXPECT_EQ(usableProcessors(8, 2), 2u);
  EXPECT_EQ(usableProcessors(2, 16), 2u);
  EXPECT_EQ(usableProcessors(2, 1e300), 2u);
  EXPECT_EQ(usableProcessors(0, 0), 1u);
}

TEST(ProcessorsTest, FollowsAffinity) {
  unsigned all = affinityProcessors();
  EXPECT_GE(all, 1u);
  EXPECT_GE(sparkc_default_threads(), 1u);
  EXPECT_LE(sparkc_default_threads(), all);
  unsigned pinned = 0, threads = 0;
  std::thread([&] {
    cpu_set_t have, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof have, &have), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &have)) {
        CPU_SET(cpu, &one);
        break;
      }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    pinned = affinityProcessors();
    threads = sparkc_default_threads();
  }).join();
  EXPECT_EQ(pinned, 1u);
  EXPECT_EQ(threads, 1u);
}

} // namespace
