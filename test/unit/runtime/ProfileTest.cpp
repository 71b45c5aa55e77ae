//===- ProfileTest.cpp - Timestamps of phases -----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/ToyFiles.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace sparkc::test;

namespace {

class ProfileTest : public testing::Test {
protected:
  void SetUp() override { SKIP_UNDER_TSAN(); }
  static constexpr size_t capacity = TOY_BARRIERS * TOY_BLOCK + 2;
  static constexpr uint32_t room = 3;
  std::vector<sparkc_profile_event> events{room * capacity};

  /// Events of a thread: those before the first without an end.
  size_t count(uint32_t thread) {
    size_t n = 0;
    while (n < capacity && events[thread * capacity + n].end)
      ++n;
    return n;
  }
  TempDir dir;
  ModelPtr model = openToy(dir, Toy::Profile);
  std::vector<int32_t> tokens = someTokens(40);
};

TEST_F(ProfileTest, Phases) {
  uint32_t n = 0;
  const sparkc_phase *phases = sparkc_phases(model.get(), &n);
  ASSERT_EQ(n, 3u);
  EXPECT_STREQ(phases[2].name, "head");
  EXPECT_EQ(phases[2].bytes, uint64_t(TOY_PAYLOAD));
  sparkc_model_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(sparkc_info(model.get(), &info), SPARKC_OK);
  EXPECT_EQ(info.has_step_profile, 1u);
  EXPECT_EQ(info.has_prefill_profile, 1u);
  ModelPtr plain = openToy(dir);
  EXPECT_EQ(sparkc_phases(plain.get(), &n), nullptr);
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(sparkc_phases(nullptr, &n), nullptr);
}

TEST_F(ProfileTest, SameBitsAndOrderedEvents) {
  std::vector<float> expected = reference(model, tokens);
  for (uint32_t threads = 1; threads <= room; ++threads) {
    SessionPtr s = newSession(model, 0, threads);
    ASSERT_EQ(
        sparkc_session_set_profile(s.get(), events.data(), capacity, room),
        SPARKC_OK);
    std::vector<float> logits(TOY_VOCAB);
    for (size_t i = 0; i < tokens.size(); ++i) {
      memset(events.data(), 0xff, events.size() * sizeof events[0]);
      ASSERT_EQ(sparkc_decode(s.get(), tokens[i], logits.data()), SPARKC_OK);
      ASSERT_EQ(memcmp(logits.data(), &expected[i * TOY_VOCAB],
                       TOY_VOCAB * sizeof(float)),
                0);
      ASSERT_EQ(count(0), size_t(TOY_BARRIERS));
      for (uint32_t t = 0; t < room; ++t) {
        size_t n = count(t);
        ASSERT_TRUE(n == TOY_BARRIERS || (n == 0 && t > 0)) << n;
        uint64_t clock = 1;
        for (size_t e = 0; e < n; ++e) {
          const sparkc_profile_event &event = events[t * capacity + e];
          EXPECT_EQ(event.phase, e);
          EXPECT_LE(clock, event.begin);
          EXPECT_LE(event.begin, event.end);
          EXPECT_LE(event.end, event.resumed);
          clock = event.resumed;
        }
      }
    }
  }
}

TEST_F(ProfileTest, PrefillBlocks) {
  SessionPtr s = newSession(model, 0, 1);
  ASSERT_EQ(sparkc_session_set_profile(s.get(), events.data(), capacity, room),
            SPARKC_OK);
  std::vector<float> logits(TOY_VOCAB), expected = reference(model, tokens);
  ASSERT_EQ(
      sparkc_prefill(s.get(), tokens.data(), TOY_BLOCK + 4, 0, logits.data()),
      SPARKC_OK);
  EXPECT_EQ(count(0), 4u * TOY_BARRIERS) << "those of the last block";
  EXPECT_EQ(memcmp(logits.data(), &expected[(TOY_BLOCK + 3) * TOY_VOCAB],
                   TOY_VOCAB * sizeof(float)),
            0);
  // Plain again: the room is left alone.
  ASSERT_EQ(sparkc_session_set_profile(s.get(), nullptr, 0, 0), SPARKC_OK);
  memset(events.data(), 0x55, events.size() * sizeof events[0]);
  std::vector<sparkc_profile_event> before = events;
  ASSERT_EQ(sparkc_decode(s.get(), 1, logits.data()), SPARKC_OK);
  EXPECT_EQ(
      memcmp(events.data(), before.data(), events.size() * sizeof events[0]),
      0);
}

TEST_F(ProfileTest, Refusals) {
  SessionPtr s = newSession(model, 0, 2);
  EXPECT_EQ(sparkc_session_set_profile(s.get(), events.data(), 0, 2),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_session_set_profile(s.get(), events.data(), 4, 0),
            SPARKC_INVALID_ARGUMENT);
  ASSERT_EQ(sparkc_session_set_profile(s.get(), events.data(), 4, 1),
            SPARKC_OK);
  float logits[TOY_VOCAB];
  EXPECT_EQ(sparkc_decode(s.get(), 1, logits), SPARKC_INVALID_ARGUMENT);
  EXPECT_STREQ(sparkc_session_message(s.get()),
               "2 threads; the profile has room for 1");
  EXPECT_EQ(sparkc_session_position(s.get()), 0u);
  ASSERT_EQ(sparkc_session_set_threads(s.get(), 1), SPARKC_OK);
  EXPECT_EQ(sparkc_decode(s.get(), 1, logits), SPARKC_OK);

  ModelPtr none = openToy(dir, Toy::Prefill); // a profile of its step alone
  SessionPtr t = newSession(none);
  ASSERT_EQ(sparkc_session_set_profile(t.get(), events.data(), capacity, room),
            SPARKC_OK);
  EXPECT_EQ(sparkc_prefill(t.get(), tokens.data(), 2, 0, logits),
            SPARKC_INVALID_ARGUMENT);
  // A rewind past the ring computes again, by the plain entries.
  ASSERT_EQ(sparkc_session_set_profile(t.get(), nullptr, 0, 0), SPARKC_OK);
  ASSERT_EQ(sparkc_prefill(t.get(), tokens.data(), 40, 0, logits), SPARKC_OK);
  ASSERT_EQ(sparkc_session_set_profile(t.get(), events.data(), capacity, room),
            SPARKC_OK);
  EXPECT_EQ(sparkc_rewind(t.get(), 10), SPARKC_OK);
  EXPECT_EQ(sparkc_session_position(t.get()), 10u);
}

} // namespace
