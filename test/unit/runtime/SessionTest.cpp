//===- SessionTest.cpp - Sessions: results, statuses, rewinds -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/RingMap.h"
#include "test/unit/runtime/ToyFiles.h"

#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace sparkc;
using namespace sparkc::test;

namespace {

using Row = std::vector<float>;

class SessionTest : public testing::Test {
protected:
  void SetUp() override { SKIP_UNDER_TSAN(); }
  /// Row i of the logits of `tokens`.
  Row row(const std::vector<float> &all, size_t i) {
    return Row(all.begin() + i * TOY_VOCAB, all.begin() + (i + 1) * TOY_VOCAB);
  }
  /// Decodes one token.
  Row decode(const SessionPtr &s, int32_t token) {
    Row logits(TOY_VOCAB);
    EXPECT_EQ(sparkc_decode(s.get(), token, logits.data()), SPARKC_OK);
    return logits;
  }
  sparkc_status prefill(const SessionPtr &s, const std::vector<int32_t> &tokens,
                        Row *logits = nullptr) {
    if (logits)
      logits->assign(TOY_VOCAB, 0);
    return sparkc_prefill(s.get(), tokens.data(), tokens.size(), 0,
                          logits ? logits->data() : nullptr);
  }
  /// The tokens of a session.
  std::vector<int32_t> held(const SessionPtr &s) {
    const int32_t *t = sparkc_session_tokens(s.get());
    return std::vector<int32_t>(t, t + sparkc_session_position(s.get()));
  }

  TempDir dir;
  ModelPtr model = openToy(dir);
  std::vector<int32_t> tokens = someTokens(60);
  std::vector<float> expected = reference(model, tokens);
};

TEST_F(SessionTest, ToyTellsPositionsApart) {
  // The tests below rest on logits that no two states share.
  for (size_t i = 0; i < tokens.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      ASSERT_NE(row(expected, i), row(expected, j)) << i << " " << j;
}

TEST_F(SessionTest, PrefillEqualsDecodeInAnyChunks) {
  for (uint32_t chunk : {0, 1, 2, 5, 6, 100})
    for (uint32_t threads : {1, 2, 3, 7}) {
      SessionPtr s = newSession(model, 0, threads, 0, chunk);
      std::vector<float> all(expected.size());
      ASSERT_EQ(sparkc_prefill(s.get(), tokens.data(), tokens.size(),
                               SPARKC_PREFILL_ALL_LOGITS, all.data()),
                SPARKC_OK);
      EXPECT_EQ(all, expected);
      ASSERT_EQ(sparkc_reset(s.get()), SPARKC_OK);
      Row last;
      ASSERT_EQ(prefill(s, tokens, &last), SPARKC_OK);
      EXPECT_EQ(last, row(expected, tokens.size() - 1));
      EXPECT_EQ(held(s), tokens);
    }
}

TEST_F(SessionTest, PrefillInterleavedWithDecode) {
  SessionPtr s = newSession(model, 0, 2);
  Row logits(TOY_VOCAB);
  size_t at = 0;
  for (size_t n : {7, 1, 13, 1, 1, 6, 12, 2, 17}) {
    if (n == 1)
      logits = decode(s, tokens[at]);
    else
      ASSERT_EQ(sparkc_prefill(s.get(), &tokens[at], n, 0, logits.data()),
                SPARKC_OK);
    at += n;
    EXPECT_EQ(logits, row(expected, at - 1)) << at;
    EXPECT_EQ(sparkc_session_position(s.get()), at);
  }
}

TEST_F(SessionTest, ModelWithoutPrefillEntry) {
  ModelPtr steps = openToy(dir, Toy::StepOnly);
  SessionPtr s = newSession(steps, 0, 2);
  std::vector<float> all(expected.size());
  ASSERT_EQ(sparkc_prefill(s.get(), tokens.data(), tokens.size(),
                           SPARKC_PREFILL_ALL_LOGITS, all.data()),
            SPARKC_OK);
  EXPECT_EQ(all, expected);
}

TEST_F(SessionTest, OneLogitsRowIsWritten) {
  SessionPtr s = newSession(model);
  Row guarded(TOY_VOCAB + 1, -7);
  ASSERT_EQ(sparkc_prefill(s.get(), tokens.data(), 20, 0, guarded.data()),
            SPARKC_OK);
  EXPECT_EQ(guarded.back(), -7);
}

TEST_F(SessionTest, BarriersAreCounted) {
  SessionPtr s = newSession(model, 0, 2);
  uint32_t before = sparkc_session_barriers(s.get());
  decode(s, 1);
  EXPECT_EQ(sparkc_session_barriers(s.get()) - before, uint32_t(TOY_BARRIERS));
}

TEST_F(SessionTest, BadCallsLeaveTheStateUnharmed) {
  SessionPtr s = newSession(model, 30, 2);
  ASSERT_EQ(prefill(s, {tokens.begin(), tokens.begin() + 20}), SPARKC_OK);
  Row untouched(TOY_VOCAB, -1), logits = untouched;
  uint32_t barriers = sparkc_session_barriers(s.get());
  auto refused = [&](sparkc_status status, sparkc_status expectedStatus) {
    EXPECT_EQ(status, expectedStatus);
    EXPECT_EQ(logits, untouched);
    EXPECT_EQ(sparkc_session_position(s.get()), 20u);
    EXPECT_EQ(sparkc_session_barriers(s.get()), barriers);
    EXPECT_STRNE(sparkc_session_message(s.get()), "");
  };
  sparkc_session *raw = s.get();
  float *out = logits.data();
  int32_t token = 0;
  refused(sparkc_prefill(raw, &token, 0, 0, out), SPARKC_EMPTY_PROMPT);
  refused(sparkc_prefill(raw, nullptr, 0, 0, out), SPARKC_EMPTY_PROMPT);
  refused(sparkc_prefill(raw, nullptr, 2, 0, out), SPARKC_INVALID_ARGUMENT);
  refused(sparkc_decode(raw, -1, out), SPARKC_TOKEN_OUT_OF_RANGE);
  refused(sparkc_decode(raw, TOY_VOCAB, out), SPARKC_TOKEN_OUT_OF_RANGE);
  refused(sparkc_decode(raw, INT32_MIN, out), SPARKC_TOKEN_OUT_OF_RANGE);
  std::vector<int32_t> lastBad(10, 3);
  lastBad.back() = TOY_VOCAB;
  refused(sparkc_prefill(raw, lastBad.data(), 10, 0, out),
          SPARKC_TOKEN_OUT_OF_RANGE);
  EXPECT_NE(strstr(sparkc_session_message(raw), "37"), nullptr);
  std::vector<int32_t> many(11, 3);
  refused(sparkc_prefill(raw, many.data(), 11, 0, out), SPARKC_CONTEXT_FULL);
  refused(sparkc_prefill(raw, many.data(), SIZE_MAX, 0, out),
          SPARKC_CONTEXT_FULL);
  refused(sparkc_prefill(raw, many.data(), 1, 1u << 20, out),
          SPARKC_INVALID_ARGUMENT);
  refused(
      sparkc_prefill(raw, many.data(), 1, SPARKC_PREFILL_ALL_LOGITS, nullptr),
      SPARKC_INVALID_ARGUMENT);
  refused(sparkc_rewind(raw, 21), SPARKC_INVALID_ARGUMENT);
  refused(sparkc_session_set_threads(raw, 1u << 20), SPARKC_INVALID_ARGUMENT);
  // And it goes on as if nothing had happened, to the last place.
  for (size_t i = 20; i < 30; ++i)
    EXPECT_EQ(decode(s, tokens[i]), row(expected, i));
  EXPECT_EQ(sparkc_decode(raw, 1, out), SPARKC_CONTEXT_FULL);
  EXPECT_EQ(sparkc_session_position(raw), 30u);
}

TEST_F(SessionTest, Options) {
  auto create = [&](uint64_t context, uint32_t threads, uint32_t wait) {
    sparkc_session_options options = {};
    options.struct_size = sizeof options;
    options.context = context;
    options.threads = threads;
    options.wait = wait;
    sparkc_session *s;
    sparkc_error why;
    sparkc_status status =
        sparkc_session_create(model.get(), &options, &s, &why);
    EXPECT_EQ(status == SPARKC_OK, s != nullptr);
    EXPECT_EQ(status, why.status);
    sparkc_session_destroy(s);
    return status;
  };
  EXPECT_EQ(create(0, 0, 0), SPARKC_OK);
  EXPECT_EQ(create(1u << 20, 1, 0), SPARKC_OK);
  EXPECT_EQ(create((1u << 20) + 1, 1, 0), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(create(UINT64_MAX, 1, 0), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(create(0, 100000, 0), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(create(0, 1, 4), SPARKC_INVALID_ARGUMENT);
  SessionPtr standard = newSession(model);
  EXPECT_EQ(sparkc_session_context(standard.get()), 100u);
  SessionPtr odd = newSession(model, 33);
  EXPECT_EQ(sparkc_session_context(odd.get()), 33u);
  sparkc_session *none;
  EXPECT_EQ(sparkc_session_create(nullptr, nullptr, &none, nullptr),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_decode(nullptr, 1, nullptr), SPARKC_INVALID_ARGUMENT);
}

TEST_F(SessionTest, TooLargeIsAStatus) {
  // No machine has that; and a size that overflows is no size.
  for (uint64_t b : {uint64_t(1) << 40, UINT64_MAX / 2}) {
    TempDir other;
    std::string so = writePair(other, objectImage([&](auto &d) {
                                 d.kv_bytes.b = b;
                                 d.max_context = uint64_t(1) << 40;
                               }),
                               weightsImage());
    sparkc_model *large;
    sparkc_error why;
    ASSERT_EQ(sparkc_open(so.c_str(), nullptr, nullptr, &large, &why),
              SPARKC_OK)
        << why.message;
    ModelPtr owner(large);
    sparkc_session_options options = {};
    options.struct_size = sizeof options;
    options.context = 1 << 20;
    sparkc_session *s;
    EXPECT_EQ(sparkc_session_create(large, &options, &s, &why),
              SPARKC_OUT_OF_MEMORY);
    EXPECT_EQ(s, nullptr);
    EXPECT_STRNE(why.message, "");
  }
}

TEST_F(SessionTest, SessionOutlivesItsModel) {
  ModelPtr own = openToy(dir);
  SessionPtr s = newSession(own, 0, 2);
  own.reset();
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(decode(s, tokens[i]), row(expected, i));
}

TEST_F(SessionTest, ResetStartsOver) {
  SessionPtr s = newSession(model);
  for (int32_t other : someTokens(50, 9))
    decode(s, other);
  ASSERT_EQ(sparkc_reset(s.get()), SPARKC_OK);
  EXPECT_EQ(sparkc_session_position(s.get()), 0u);
  for (size_t i = 0; i < tokens.size(); ++i)
    ASSERT_EQ(decode(s, tokens[i]), row(expected, i)) << i;
}

TEST_F(SessionTest, RewindFromAnywhereToAnywhere) {
  // After `end` tokens of another text, back to where the texts part, then on.
  for (size_t end = 1; end <= 40; ++end)
    for (size_t kept = 0; kept <= end; ++kept) {
      SessionPtr s = newSession(model);
      std::vector<int32_t> other(tokens.begin(), tokens.begin() + kept);
      for (int32_t t : someTokens(end - kept, 5))
        other.push_back(t);
      ASSERT_EQ(prefill(s, other), SPARKC_OK);
      ASSERT_EQ(sparkc_rewind(s.get(), kept), SPARKC_OK);
      ASSERT_EQ(sparkc_session_position(s.get()), kept);
      for (size_t i = kept; i < kept + 3; ++i)
        ASSERT_EQ(decode(s, tokens[i]), row(expected, i))
            << end << " -> " << kept << " at " << i;
    }
}

TEST_F(SessionTest, RewindIsFreeExactlyWhileTheRingServes) {
  // One pass over P tokens, back to p: the keys p-W+1 .. p-1 are there if
  // p - W + 1 + R >= P, that is while P - p <= R - W + 1.
  for (size_t back = 0; back <= TOY_RING; ++back) {
    SessionPtr s = newSession(model);
    ASSERT_EQ(prefill(s, {tokens.begin(), tokens.begin() + 40}), SPARKC_OK);
    uint32_t before = sparkc_session_barriers(s.get());
    ASSERT_EQ(sparkc_rewind(s.get(), 40 - back), SPARKC_OK);
    bool computed = sparkc_session_barriers(s.get()) != before;
    EXPECT_EQ(computed, back > TOY_RING - TOY_WINDOW + 1) << back;
  }
}

TEST_F(SessionTest, SecondRewindSeesWhatTheFirstLost) {
  // 40 tokens, back by 7 (free), one new token, back by another 2: by length
  // alone the ring would serve (34 - 32 is little), but position 28's slot
  // still holds the forgotten position 40's.
  SessionPtr s = newSession(model);
  ASSERT_EQ(prefill(s, {tokens.begin(), tokens.begin() + 40}), SPARKC_OK);
  ASSERT_EQ(sparkc_rewind(s.get(), 33), SPARKC_OK);
  decode(s, tokens[33]);
  uint32_t before = sparkc_session_barriers(s.get());
  ASSERT_EQ(sparkc_rewind(s.get(), 31), SPARKC_OK);
  EXPECT_NE(sparkc_session_barriers(s.get()), before);
  for (size_t i = 31; i < 45; ++i)
    ASSERT_EQ(decode(s, tokens[i]), row(expected, i)) << i;
}

TEST_F(SessionTest, RandomWalkOfRewinds) {
  uint32_t x = 7;
  auto random = [&](uint32_t n) {
    x = x * 1664525u + 1013904223u;
    return (x >> 10) % n;
  };
  SessionPtr s = newSession(model, 0, 1);
  for (int round = 0; round < 300; ++round) {
    size_t pos = sparkc_session_position(s.get());
    if (random(3) == 0) {
      size_t kept = random(2) ? random(pos + 1) : pos - random(pos < 9 ? 1 : 9);
      ASSERT_EQ(sparkc_rewind(s.get(), kept), SPARKC_OK);
      continue;
    }
    size_t n = 1 + random(10);
    if (pos + n > tokens.size())
      continue;
    Row logits;
    ASSERT_EQ(
        prefill(s, {tokens.begin() + pos, tokens.begin() + pos + n}, &logits),
        SPARKC_OK);
    ASSERT_EQ(logits, row(expected, pos + n - 1)) << round;
  }
}

TEST_F(SessionTest, PromptComputesWhatFollowsTheCommonPrefix) {
  SessionPtr s = newSession(model);
  auto prompt = [&](const std::vector<int32_t> &text, Row *logits) {
    size_t kept = SIZE_MAX;
    if (logits)
      logits->assign(TOY_VOCAB, 0);
    EXPECT_EQ(sparkc_prompt(s.get(), text.data(), text.size(),
                            logits ? logits->data() : nullptr, &kept),
              SPARKC_OK);
    EXPECT_EQ(held(s), text);
    return kept;
  };
  const std::vector<int32_t> ten(tokens.begin(), tokens.begin() + 10);
  const std::vector<int32_t> twelve(tokens.begin(), tokens.begin() + 12);
  Row logits;
  EXPECT_EQ(prompt(ten, &logits), 0u);
  EXPECT_EQ(logits, row(expected, 9));
  EXPECT_EQ(prompt(twelve, &logits), 10u); // longer
  EXPECT_EQ(logits, row(expected, 11));
  EXPECT_EQ(prompt(twelve, &logits), 11u); // the same: only its logits
  EXPECT_EQ(logits, row(expected, 11));
  EXPECT_EQ(prompt(ten, &logits), 9u); // shorter
  EXPECT_EQ(logits, row(expected, 9));
  uint32_t before = sparkc_session_barriers(s.get());
  EXPECT_EQ(prompt(ten, nullptr), 10u); // nothing to do
  EXPECT_EQ(sparkc_session_barriers(s.get()), before);
  std::vector<int32_t> other = twelve;
  other[8] = (other[8] + 1) % TOY_VOCAB; // parts from what is held
  EXPECT_EQ(prompt(other, nullptr), 8u);
  EXPECT_EQ(prompt(twelve, &logits), 8u);
  EXPECT_EQ(logits, row(expected, 11));
  // Its own tokens, and no wish to know what was kept.
  EXPECT_EQ(sparkc_prompt(s.get(), sparkc_session_tokens(s.get()), 11,
                          logits.data(), nullptr),
            SPARKC_OK);
  EXPECT_EQ(logits, row(expected, 10));
}

TEST_F(SessionTest, PromptKeepsExactlyWhatItsRingServes) {
  for (size_t back = 0; back <= TOY_RING; ++back) {
    SessionPtr s = newSession(model);
    ASSERT_EQ(prefill(s, {tokens.begin(), tokens.begin() + 40}), SPARKC_OK);
    std::vector<int32_t> text(tokens.begin(), tokens.begin() + 40 - back);
    text.push_back((tokens[40 - back] + 1) % TOY_VOCAB);
    size_t kept = SIZE_MAX;
    Row logits(TOY_VOCAB);
    ASSERT_EQ(sparkc_prompt(s.get(), text.data(), text.size(), logits.data(),
                            &kept),
              SPARKC_OK);
    EXPECT_EQ(kept, back > TOY_RING - TOY_WINDOW + 1 ? 0 : 40 - back) << back;
    EXPECT_EQ(logits, row(reference(model, text), text.size() - 1)) << back;
  }
}

TEST_F(SessionTest, RandomWalkOfPrompts) {
  uint32_t x = 3;
  auto random = [&](uint32_t n) {
    x = x * 1664525u + 1013904223u;
    return (x >> 10) % n;
  };
  SessionPtr s = newSession(model);
  size_t reused = 0, recomputed = 0;
  for (int round = 0; round < 300; ++round) {
    // A prefix of what is held, most often most of it, and something new.
    std::vector<int32_t> text = held(s);
    if (!text.empty())
      text.resize(text.size() - random(std::min<uint32_t>(
                                    random(4) ? 9 : 60, text.size() + 1)));
    for (int32_t t : someTokens(1 + random(9), round + 1))
      text.push_back(t);
    const size_t before = sparkc_session_position(s.get());
    size_t kept = SIZE_MAX;
    Row logits(TOY_VOCAB);
    ASSERT_EQ(sparkc_prompt(s.get(), text.data(), text.size(), logits.data(),
                            &kept),
              SPARKC_OK);
    ASSERT_EQ(logits, row(reference(model, text), text.size() - 1)) << round;
    ASSERT_EQ(held(s), text);
    reused += kept != 0;
    recomputed += kept == 0 && before != 0;
    if (text.size() > 80) {
      ASSERT_EQ(sparkc_reset(s.get()), SPARKC_OK);
    }
  }
  EXPECT_GT(reused, 50u);
  EXPECT_GT(recomputed, 20u);
}

TEST_F(SessionTest, PromptThatFailsChangesNothing) {
  SessionPtr s = newSession(model, 20);
  ASSERT_EQ(prefill(s, {tokens.begin(), tokens.begin() + 8}), SPARKC_OK);
  std::vector<int32_t> bad(tokens.begin(), tokens.begin() + 6);
  bad.push_back(TOY_VOCAB);
  Row logits(TOY_VOCAB);
  auto prompt = [&](const int32_t *text, size_t n) {
    return sparkc_prompt(s.get(), text, n, logits.data(), nullptr);
  };
  EXPECT_EQ(prompt(bad.data(), bad.size()), SPARKC_TOKEN_OUT_OF_RANGE);
  EXPECT_EQ(prompt(tokens.data(), 0), SPARKC_EMPTY_PROMPT);
  EXPECT_EQ(prompt(tokens.data(), 21), SPARKC_CONTEXT_FULL);
  EXPECT_EQ(prompt(nullptr, 3), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_prompt(nullptr, tokens.data(), 1, nullptr, nullptr),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(decode(s, tokens[8]), row(expected, 8));
  EXPECT_EQ(prompt(tokens.data(), 20), SPARKC_OK); // the context itself fits
  EXPECT_EQ(logits, row(expected, 19));
}

struct Progress {
  size_t cancelAt = SIZE_MAX;
  std::vector<size_t> seen;
  size_t total = 0;
  static int call(void *user, size_t done, size_t total) {
    Progress &p = *static_cast<Progress *>(user);
    p.seen.push_back(done);
    p.total = total;
    return done >= p.cancelAt;
  }
};

TEST_F(SessionTest, ProgressAndCancel) {
  SessionPtr s = newSession(model, 0, 2, 0, 4);
  Progress p;
  sparkc_session_set_progress(s.get(), Progress::call, &p);
  ASSERT_EQ(prefill(s, {tokens.begin(), tokens.begin() + 10}), SPARKC_OK);
  EXPECT_EQ(p.seen, (std::vector<size_t>{4, 8, 10}));
  EXPECT_EQ(p.total, 10u);
  p.seen.clear();
  p.cancelAt = 8;
  Row logits;
  EXPECT_EQ(prefill(s, {tokens.begin() + 10, tokens.begin() + 30}, &logits),
            SPARKC_CANCELLED);
  EXPECT_EQ(p.seen, (std::vector<size_t>{4, 8}));
  EXPECT_EQ(sparkc_session_position(s.get()), 18u);
  EXPECT_EQ(held(s), std::vector<int32_t>(tokens.begin(), tokens.begin() + 18));
  sparkc_session_set_progress(s.get(), nullptr, nullptr);
  EXPECT_EQ(decode(s, tokens[18]), row(expected, 18));
  // A cancel after the last block is too late to cancel anything.
  p.cancelAt = 0;
  sparkc_session_set_progress(s.get(), Progress::call, &p);
  EXPECT_EQ(prefill(s, {tokens.begin() + 19, tokens.begin() + 22}), SPARKC_OK);
}

TEST_F(SessionTest, ACancelledPromptGoesOnWhereItWas) {
  SessionPtr s = newSession(model, 0, 1, 0, 4);
  Progress p;
  p.cancelAt = 8;
  sparkc_session_set_progress(s.get(), Progress::call, &p);
  Row logits(TOY_VOCAB);
  size_t kept = SIZE_MAX;
  auto prompt = [&] {
    return sparkc_prompt(s.get(), tokens.data(), 30, logits.data(), &kept);
  };
  EXPECT_EQ(prompt(), SPARKC_CANCELLED);
  EXPECT_EQ(kept, 0u);
  EXPECT_EQ(prompt(), SPARKC_CANCELLED);
  EXPECT_EQ(kept, 8u);
  p.cancelAt = SIZE_MAX;
  EXPECT_EQ(prompt(), SPARKC_OK);
  EXPECT_EQ(kept, 16u);
  EXPECT_EQ(logits, row(expected, 29));
}

TEST_F(SessionTest, TwoSessionsInterleaved) {
  std::vector<int32_t> others = someTokens(60, 2);
  std::vector<float> expectedOthers = reference(model, others);
  SessionPtr a = newSession(model, 0, 2), b = newSession(model, 64, 3);
  for (size_t i = 0; i < 60; ++i) {
    ASSERT_EQ(decode(a, tokens[i]), row(expected, i));
    ASSERT_EQ(decode(b, others[i]), row(expectedOthers, i));
  }
}

TEST_F(SessionTest, SessionsOnSeveralHostThreads) {
  std::vector<std::thread> hosts;
  std::vector<int> wrong(4, 0);
  for (int h = 0; h < 4; ++h)
    hosts.emplace_back([&, h] {
      SessionPtr s = newSession(model, 0, 2);
      for (int round = 0; round < 5; ++round) {
        for (size_t i = 0; i < tokens.size(); ++i)
          wrong[h] += decode(s, tokens[i]) != row(expected, i);
        sparkc_reset(s.get());
      }
    });
  for (std::thread &host : hosts)
    host.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(SessionTest, EveryWaitWithMoreThreadsThanProcessors) {
  for (uint32_t wait : {SPARKC_WAIT_AUTO, SPARKC_WAIT_FUTEX, SPARKC_WAIT_YIELD})
    for (uint32_t threads : {1, 2, 3, 4, 7}) {
      SessionPtr s = newSession(model, 0, threads, wait);
      for (size_t i = 0; i < tokens.size(); ++i)
        ASSERT_EQ(decode(s, tokens[i]), row(expected, i));
    }
  SessionPtr s = newSession(model, 0, 2, SPARKC_WAIT_SPIN);
  for (size_t i = 0; i < tokens.size(); ++i)
    ASSERT_EQ(decode(s, tokens[i]), row(expected, i));
}

TEST(RingMapTest, EmptyRingAlwaysServes) {
  RingMap ring;
  ring.init(0, 0);
  ring.wrote(0, 1000);
  EXPECT_TRUE(ring.serves(3));
}

TEST(RingMapTest, WindowIsExact) {
  RingMap ring;
  ring.init(8, 4);
  EXPECT_TRUE(ring.serves(0));
  EXPECT_FALSE(ring.serves(1)); // nothing was written
  ring.wrote(0, 10);            // slots hold 2..9
  EXPECT_TRUE(ring.serves(10));
  EXPECT_TRUE(ring.serves(5));  // needs 2, 3, 4
  EXPECT_FALSE(ring.serves(4)); // needs 1
  EXPECT_FALSE(ring.serves(2));
  EXPECT_TRUE(ring.serves(0));
  ring.wrote(5, 1); // 5 again: what was there is itself
  EXPECT_TRUE(ring.serves(6));
}

} // namespace
