//===- FiguresTest.cpp - Statistics and figures of a benchmark ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Bench.h"
#include "tools/sparkc-bench/Machine.h"
#include "tools/sparkc-bench/Stats.h"
#include "tools/sparkc-bench/Team.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace sparkc::bench;

namespace {

TEST(StatsTest, Median) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 9, 2}), 3);
}

TEST(StatsTest, Deviation) {
  EXPECT_EQ(deviation({}), 0);
  EXPECT_EQ(deviation({7}), 0);
  EXPECT_DOUBLE_EQ(deviation({2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
}

TEST(StatsTest, Moved) {
  EXPECT_EQ(moved(50, 50), 0);
  EXPECT_DOUBLE_EQ(moved(40, 50), 0.2);
  EXPECT_DOUBLE_EQ(moved(50, 40), 0.2);
  EXPECT_EQ(moved(0, 0), 0);
  EXPECT_EQ(moved(0, 1), 1);
}

TEST(StatsTest, Steadiest) {
  using Indices = std::vector<size_t>;
  // Enough within the limit: the first of them, whichever moved less.
  EXPECT_EQ(steadiest({0.3, 0.09, 0.01, 0.2, 0.0}, 2, 0.1), (Indices{1, 2}));
  // Too few: those, and what moved least of the rest, in order of time.
  EXPECT_EQ(steadiest({0.3, 0.15, 0.9, 0.05}, 3, 0.1), (Indices{0, 1, 3}));
  EXPECT_EQ(steadiest({0.3}, 3, 0.1), (Indices{0}));
}

TEST(MachineTest, BusyFraction) {
  const std::string before = "cpu  300 0 0 900 0 0 0 0 0 0\n"
                             "cpu0 100 0 0 300 0 0 0 0 0 0\n"
                             "cpu1 100 0 0 300 0 0 0 0 0 0\n"
                             "cpu12 100 0 0 300 0 0 0 0 0 0\nintr 5\n";
  const std::string after = "cpu  300 0 0 900 0 0 0 0 0 0\n"
                            "cpu0 110 0 0 390 0 0 0 0 10 0\n"
                            "cpu1 100 0 0 340 50 0 0 10 0 0\n"
                            "cpu12 200 0 0 300 0 0 0 0 0 0\nintr 9\n";
  // cpu0: 10 of 100; cpu1: 10 stolen of 100, waiting for a disk is idle.
  EXPECT_DOUBLE_EQ(*busyFraction(before, after, {0}), 0.1);
  EXPECT_DOUBLE_EQ(*busyFraction(before, after, {0, 1}), 0.1);
  EXPECT_DOUBLE_EQ(*busyFraction(before, after, {0, 1, 12}), 0.4);
  EXPECT_FALSE(busyFraction(before, before, {0}));
  EXPECT_FALSE(busyFraction(before, after, {7}));
}

TEST(MachineTest, HugePagesOfTheMappingThatHoldsAnAddress) {
  const std::string smaps =
      "7f00200000-7f00600000 r--s 00000000 fe:00 53  /x/model.weights\n"
      "Size:               4096 kB\nRss:                4096 kB\n"
      "AnonHugePages:         0 kB\nFilePmdMapped:      2048 kB\n"
      "VmFlags: rd sh mr mw me hg \n"
      "7f00600000-7f00a00000 rw-p 00000000 00:00 0 \n"
      "Rss:                2048 kB\nAnonHugePages:      2048 kB\n"
      "7f00a00000-7f00b00000 rw-p 00000000 00:00 0 \nRss:      0 kB\n";
  EXPECT_DOUBLE_EQ(*hugePageShare(smaps, 0x7f00200000), 0.5);
  EXPECT_DOUBLE_EQ(*hugePageShare(smaps, 0x7f005fffff), 0.5);
  EXPECT_DOUBLE_EQ(*hugePageShare(smaps, 0x7f00600000), 1);
  EXPECT_FALSE(hugePageShare(smaps, 0x7f00a00000)); // nothing resident
  EXPECT_FALSE(hugePageShare(smaps, 0x7f001fffff));
  int here = 0;
  EXPECT_TRUE(hugePageShare(&here));
}

TEST(MachineTest, ThisOne) {
  EXPECT_FALSE(allowedProcessors().empty());
  EXPECT_GE(largestCacheBytes(), 1u << 16);
  EXPECT_NE(cpuModel(), "");
}

TEST(TeamTest, EveryThreadOnce) {
  for (uint32_t n : {1, 2, 5}) {
    std::vector<std::atomic<int>> calls(n);
    EXPECT_GE(onTeam(n, [&](uint32_t tid) { ++calls[tid]; }), 0);
    for (auto &count : calls)
      EXPECT_EQ(count, 1);
  }
}

TEST(CeilingTest, EveryPatternReadsEverythingOnce) {
  ReadBuffer buffer;
  ASSERT_TRUE(buffer.allocate(1 << 20, false));
  uint64_t *words =
      reinterpret_cast<uint64_t *>(const_cast<uint8_t *>(buffer.data()));
  uint64_t expected = 0, state = 88172645463325252u;
  for (size_t i = 0; i < (1 << 20) / 8; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    words[i] = state;
    expected ^= state;
  }
  for (const ReadPattern &pattern : readPatterns())
    EXPECT_EQ(readOnce(buffer.data(), 1 << 20, pattern), expected)
        << pattern.name();
  EXPECT_GT(readCeiling(buffer.data(), buffer.bytes(), 2, 1).gbps, 0);
  EXPECT_EQ(readCeiling(buffer.data(), 16384, 2, 1).gbps, 0) << "too few bytes";
}

TEST(CeilingTest, MeansOfAllPatterns) {
  ReadBuffer buffer;
  ASSERT_TRUE(buffer.allocate(1 << 20, false));
  ReadRate rate = readCeiling(buffer.data(), buffer.bytes(), 2, 2);
  ASSERT_EQ(rate.meanSeconds.size(), readPatterns().size());
  for (double seconds : rate.meanSeconds)
    EXPECT_GE(seconds * rate.gbps, 1 - 1e-9) << "faster than the fastest";
  rate = readCeiling(buffer.data(), buffer.bytes(), 2, 1);
  double least = *std::min_element(rate.meanSeconds.begin(),
                                   rate.meanSeconds.end());
  EXPECT_NEAR(least * rate.gbps, 1, 1e-9) << "one pass is its mean";
  for (double seconds : readCeiling(buffer.data(), 16384, 2, 2).meanSeconds)
    EXPECT_TRUE(std::isinf(seconds)) << "too few bytes";
}

TEST(CeilingTest, WhatWasSustained) {
  Result result;
  result.tokens = 4;
  result.bytesPerToken = 5e9;
  EXPECT_FALSE(result.sustained()) << "nothing was kept";
  // The fastest pattern of each repetition, 100 GB/s, is not that of both:
  // 12.5, 20 and 40 GB/s.
  Attempt first, second;
  first.readSeconds = {0.01, 0.09, 0.02};
  second.readSeconds = {0.15, 0.01, 0.03};
  first.seconds = 0.4; // 50 GB/s
  second.seconds = 1.6;
  first.ceilings = second.ceilings = {110, 90};
  result.kept = {first, second};
  EXPECT_DOUBLE_EQ(*result.sustained(), 40);
  EXPECT_DOUBLE_EQ(*result.sustainedShare(), 0.5); // 40e9 bytes in 2 seconds
  EXPECT_DOUBLE_EQ(*result.ceilingShare(), (0.5 + 0.125) / 2);
  result.bytesPerToken = std::nullopt;
  EXPECT_FALSE(result.sustainedShare());
  result.kept[0].readSeconds = {INFINITY, INFINITY, INFINITY};
  EXPECT_FALSE(result.sustained()) << "memory too small to read";
}

TEST(PeakTest, IsOfAPlausibleSize) {
  Int8Peak peak = int8Peak(1);
  if (!strcmp(peak.instruction, "none"))
    GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_GT(peak.tops, 0.005);
  EXPECT_LT(peak.tops, 20) << "more than a core can do";
}

//===----------------------------------------------------------------------===//

sparkc_profile_event event(uint32_t phase, uint64_t begin, uint64_t end,
                           uint64_t resumed) {
  return {phase, UINT32_MAX, begin, end, resumed};
}

TEST(PhaseTest, SharesOfTime) {
  static const sparkc_phase phases[] = {{"a", SPARKC_PHASE_LINEAR, 0, 100},
                                        {"b", SPARKC_PHASE_ATTENTION, 0, 0},
                                        {"c", SPARKC_PHASE_OTHER, 0, 0}};
  PhaseTable table{phases, 3};
  std::vector<sparkc_profile_event> room(3 * 4);
  room[0] = event(0, 1000, 1060, 1070);
  room[1] = event(1, 1080, 1090, 1095); // ten cycles between phases: other
  room[2] = event(2, 1095, 1100, 1100);
  room[4] = event(0, 1000, 1050, 1070);
  room[5] = event(7, 1070, 1090, 1100); // no such phase: other
  bool full;
  CallEvents call = usedEvents(room, 4, full);
  EXPECT_FALSE(full);
  ASSERT_EQ(call.size(), 2u) << "the third thread did not run";
  EXPECT_EQ(call[0].size(), 3u);
  EXPECT_EQ(call[1].size(), 2u);
  PhaseTimes times;
  times.add(call, table);
  EXPECT_EQ(times.total, 200);
  EXPECT_EQ(times.linear, 140);
  EXPECT_EQ(times.attention, 15);
  EXPECT_EQ(times.other(), 45);
  EXPECT_EQ(times.waiting, 10 + 5 + 20 + 10);
  room[6] = room[7] = event(2, 1100, 1101, 1102);
  usedEvents(room, 4, full);
  EXPECT_TRUE(full);
}

TEST(FiguresTest, SharesOfCeilingAndPeak) {
  Result r;
  r.prompt = true;
  r.tokens = 100;
  r.operations = 4e11;
  Attempt a;
  a.seconds = 2; // 50 tokens, 0.2e12 operations a second
  a.ceilings = {40, 46, 50, 44};
  a.peak[0] = 0.39;
  a.peak[1] = 0.41;
  EXPECT_DOUBLE_EQ(a.movement(), 0.2);
  r.kept = {a, a, a};
  r.kept[1].seconds = 4;
  EXPECT_DOUBLE_EQ(r.speed(), 50);
  EXPECT_NEAR(r.speedDeviation(), 25 / std::sqrt(3), 1e-9);
  EXPECT_DOUBLE_EQ(r.ceiling(), 45);
  EXPECT_FALSE(r.ceilingShare());
  r.bytesPerToken = 0.45e9;
  EXPECT_DOUBLE_EQ(*r.ceilingShare(), 0.5);
  EXPECT_DOUBLE_EQ(*r.peakShare(), 0.5);
  EXPECT_FALSE(r.peakShareLinear());
  r.phases = PhaseTimes();
  r.phases->total = 10;
  r.phases->linear = 8;
  EXPECT_DOUBLE_EQ(*r.linearShare(), 0.8);
  EXPECT_DOUBLE_EQ(*r.peakShareLinear(), 0.625);
}

TEST(FiguresTest, LiveKeysAndValues) {
  sparkc_model_info info = {};
  info.layers = 28;
  info.full_layers = 7;
  info.kv_heads = 2;
  info.head_dim = 256;
  info.window = 512;
  info.kv_type = SPARKC_KV_F16;
  EXPECT_EQ(liveKvBytes(info, 0), 2u * 2 * 256 * 2 * 28);
  EXPECT_EQ(liveKvBytes(info, 511), 2u * 2 * 256 * 2 * 28 * 512);
  EXPECT_EQ(liveKvBytes(info, 1023), 2u * 2 * 256 * 2 * (7 * 1024 + 21 * 512));
  info.kv_type = SPARKC_KV_F32;
  EXPECT_EQ(liveKvBytes(info, 0), 2u * 2 * 256 * 4 * 28);
  info.kv_type = SPARKC_KV_Q8; // 16 scales of 2 bytes
  EXPECT_EQ(liveKvBytes(info, 0), 2u * 2 * (256 + 32) * 28);
  info.head_dim = 24;
  EXPECT_EQ(liveKvBytes(info, 0), 2u * 2 * (24 + 4) * 28);
}

TEST(FiguresTest, PromptOperations) {
  sparkc_model_info info = {};
  info.vocab = 100;
  info.hidden = 10;
  info.linear_weights = 5000; // 1000 of them the head's
  EXPECT_EQ(promptOperations(info, 1), 2.0 * 5000);
  EXPECT_EQ(promptOperations(info, 7), 2.0 * (4000 * 7 + 1000));
}

} // namespace
