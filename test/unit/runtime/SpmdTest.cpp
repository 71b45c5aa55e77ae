//===- SpmdTest.cpp - Hosts with threads of their own ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/ToyFiles.h"

#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace sparkc::test;

namespace {

/// Runs a job on n new threads.
void runOnThreads(const sparkc_spmd &job) {
  std::vector<std::thread> threads;
  for (uint32_t tid = 0; tid < job.n_threads; ++tid)
    threads.emplace_back(
        [&job, tid] { job.entry(job.ctx, tid, job.n_threads); });
  for (std::thread &thread : threads)
    thread.join();
}

class SpmdTest : public testing::Test {
protected:
  bool sameRow(const std::vector<float> &logits, size_t i) {
    return !memcmp(logits.data(), &expected[i * TOY_VOCAB],
                   TOY_VOCAB * sizeof(float));
  }
  TempDir dir;
  ModelPtr model = openToy(dir);
  std::vector<int32_t> tokens = someTokens(40);
  std::vector<float> expected = reference(model, tokens);
};

TEST_F(SpmdTest, SameBitsOnOneToSevenThreads) {
  for (uint32_t wait : {SPARKC_WAIT_FUTEX, SPARKC_WAIT_YIELD, SPARKC_WAIT_AUTO})
    for (uint32_t n = 1; n <= 7; ++n) {
      SessionPtr s = newSession(model, 0, 1, wait);
      std::vector<float> logits(TOY_VOCAB);
      for (size_t i = 0; i < tokens.size(); ++i) {
        sparkc_spmd job;
        ASSERT_EQ(sparkc_spmd_begin(s.get(), &tokens[i], 1, 0, logits.data(), n,
                                    &job),
                  SPARKC_OK);
        ASSERT_EQ(job.n_threads, n);
        runOnThreads(job);
        ASSERT_EQ(sparkc_spmd_end(s.get(), &job), SPARKC_OK);
        ASSERT_TRUE(sameRow(logits, i)) << n << " threads, token " << i;
      }
      EXPECT_EQ(sparkc_session_barriers(s.get()), 40u * TOY_BARRIERS);
    }
}

TEST_F(SpmdTest, EntriesBackToBackOnTheSameThreads) {
  // No joining between tokens: the entry's last barrier is enough for the
  // threads; the host hands over by a barrier of its own.
  SessionPtr s = newSession(model);
  constexpr uint32_t n = 3;
  std::vector<float> logits(TOY_VOCAB);
  sparkc_spmd job;
  sparkc_barrier handover = {};
  auto meet = [&] {
    uint32_t seen = __atomic_load_n(&handover.generation, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&handover.arrived, 1, __ATOMIC_ACQ_REL) == n) {
      handover.arrived = 0;
      __atomic_add_fetch(&handover.generation, 1, __ATOMIC_RELEASE);
      sparkc_futex_wake(&handover.generation);
    }
    while (__atomic_load_n(&handover.generation, __ATOMIC_ACQUIRE) == seen)
      sparkc_futex_wait(&handover.generation, seen);
  };
  int wrong = 0;
  std::vector<std::thread> threads;
  for (uint32_t tid = 0; tid < n; ++tid)
    threads.emplace_back([&, tid] {
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (tid == 0)
          wrong += sparkc_spmd_begin(s.get(), &tokens[i], 1, 0, logits.data(),
                                     n, &job) != SPARKC_OK;
        meet();
        job.entry(job.ctx, tid, n);
        if (tid == 0) {
          wrong += sparkc_spmd_end(s.get(), &job) != SPARKC_OK;
          wrong += !sameRow(logits, i);
        }
        meet();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(SpmdTest, PrefillBlocks) {
  SessionPtr s = newSession(model);
  sparkc_spmd job;
  std::vector<float> all(TOY_BLOCK * TOY_VOCAB), last(TOY_VOCAB);
  EXPECT_EQ(sparkc_spmd_begin(s.get(), tokens.data(), TOY_BLOCK + 1, 0,
                              last.data(), 2, &job),
            SPARKC_INVALID_ARGUMENT);
  ASSERT_EQ(sparkc_spmd_begin(s.get(), tokens.data(), TOY_BLOCK,
                              SPARKC_PREFILL_ALL_LOGITS, all.data(), 2, &job),
            SPARKC_OK);
  runOnThreads(job);
  ASSERT_EQ(sparkc_spmd_end(s.get(), &job), SPARKC_OK);
  EXPECT_EQ(memcmp(all.data(), expected.data(), all.size() * sizeof(float)), 0);
  ASSERT_EQ(sparkc_spmd_begin(s.get(), &tokens[TOY_BLOCK], 3, 0, last.data(), 2,
                              &job),
            SPARKC_OK);
  runOnThreads(job);
  ASSERT_EQ(sparkc_spmd_end(s.get(), &job), SPARKC_OK);
  EXPECT_TRUE(sameRow(last, TOY_BLOCK + 2));
  EXPECT_EQ(sparkc_session_position(s.get()), size_t(TOY_BLOCK + 3));
}

TEST_F(SpmdTest, OrderOfCallsIsChecked) {
  SessionPtr s = newSession(model);
  sparkc_spmd job = {};
  std::vector<float> logits(TOY_VOCAB);
  EXPECT_EQ(sparkc_spmd_end(s.get(), &job), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(
      sparkc_spmd_begin(s.get(), tokens.data(), 1, 0, logits.data(), 0, &job),
      SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(
      sparkc_spmd_begin(s.get(), tokens.data(), 0, 0, logits.data(), 1, &job),
      SPARKC_EMPTY_PROMPT);
  ASSERT_EQ(
      sparkc_spmd_begin(s.get(), tokens.data(), 1, 0, logits.data(), 2, &job),
      SPARKC_OK);
  // Nothing else until it ends.
  sparkc_spmd second;
  EXPECT_EQ(
      sparkc_spmd_begin(s.get(), tokens.data(), 1, 0, nullptr, 1, &second),
      SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_decode(s.get(), 1, nullptr), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_reset(s.get()), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_rewind(s.get(), 0), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_session_save(s.get(), (dir / "s").c_str(), nullptr),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_session_position(s.get()), 0u);
  // Dropped without having run: as if never begun.
  EXPECT_EQ(sparkc_spmd_end(s.get(), &job), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_session_position(s.get()), 0u);
  ASSERT_EQ(sparkc_decode(s.get(), tokens[0], logits.data()), SPARKC_OK);
  EXPECT_TRUE(sameRow(logits, 0));
}

TEST_F(SpmdTest, ProfileEntry) {
  SessionPtr s = newSession(model);
  sparkc_spmd job;
  ASSERT_EQ(sparkc_spmd_begin(s.get(), tokens.data(), 1, SPARKC_SPMD_PROFILE,
                              nullptr, 2, &job),
            SPARKC_OK);
  std::vector<sparkc_profile_event> events(8);
  job.ctx->profile = events.data();
  job.ctx->profile_capacity = 4;
  runOnThreads(job);
  ASSERT_EQ(sparkc_spmd_end(s.get(), &job), SPARKC_OK);
  EXPECT_EQ(events[0].phase, 1u);
  EXPECT_EQ(events[4].phase, 2u);
  // The toy has no profile of prefill.
  EXPECT_EQ(sparkc_spmd_begin(s.get(), tokens.data(), 2, SPARKC_SPMD_PROFILE,
                              nullptr, 2, &job),
            SPARKC_INVALID_ARGUMENT);
}

TEST(WaitTest, FutexReturnsWhenTheWordHasMoved) {
  uint32_t word = 5;
  sparkc_futex_wait(&word, 4); // returns at once
  std::thread waker([&] {
    __atomic_store_n(&word, 6, __ATOMIC_SEQ_CST);
    sparkc_futex_wake(&word);
  });
  while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 5)
    sparkc_futex_wait(&word, 5);
  waker.join();
  EXPECT_EQ(word, 6u);
}

} // namespace
