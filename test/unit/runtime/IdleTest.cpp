//===- IdleTest.cpp - No processor is kept busy after an answer -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/ToyFiles.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>

using namespace sparkc::test;

static double cpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](timeval t) { return double(t.tv_sec) + t.tv_usec / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(IdleTest, WorkersSleepSoonAfterAnAnswer) {
  SKIP_UNDER_TSAN();
  using namespace std::chrono_literals;
  TempDir dir;
  ModelPtr model = openToy(dir);
  // The workers of an OpenMP team poll for some milliseconds, then sleep. Each
  // number of threads makes a team of its own.
  for (uint32_t threads : {2, 4}) {
    SessionPtr session = newSession(model, 0, threads);
    for (int32_t token : someTokens(20))
      ASSERT_EQ(sparkc_decode(session.get(), token, nullptr), SPARKC_OK);
    double atEnd = cpuSeconds();
    std::this_thread::sleep_for(200ms);
    double quiet = cpuSeconds();
    std::this_thread::sleep_for(300ms);
    EXPECT_LT(cpuSeconds() - quiet, 0.03) << threads << " threads";
    RecordProperty("milliseconds_after_" + std::to_string(threads),
                   int((quiet - atEnd) * 1e3));
    std::printf("%u threads: %.1f ms of CPU after the last step\n", threads,
                (quiet - atEnd) * 1e3);
  }
}
