//===- SessionCheck.cpp - Sessions on a compiled model --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//     session-check model.so SCRATCH-FILE
//
// What the unit tests require of a hand-written model, of one that sparkc
// compiled: whatever way a state was reached, it gives the same bits.
//===----------------------------------------------------------------------===//
#include "runtime/include/sparkc.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

sparkc_model *model;
sparkc_model_info info;
std::vector<int32_t> tokens;
std::vector<float> expected; ///< [tokens, vocab], by decode on one thread
int failures, checks;

void check(bool holds, const std::string &what) {
  ++checks;
  failures += !holds;
  if (!holds)
    std::printf("FAILED %s\n", what.c_str());
}

struct Session {
  explicit Session(uint32_t threads, uint32_t chunk = 0) {
    sparkc_session_options options = {};
    options.struct_size = sizeof options;
    options.threads = threads;
    options.prefill_chunk = chunk;
    sparkc_error why;
    if (sparkc_session_create(model, &options, &raw, &why) != SPARKC_OK) {
      std::printf("FAILED session: %s\n", why.message);
      std::exit(1);
    }
  }
  ~Session() { sparkc_session_destroy(raw); }
  sparkc_session *raw;
};

bool isRow(const float *logits, size_t i) {
  return !memcmp(logits, &expected[i * info.vocab], info.vocab * sizeof(float));
}

/// Decodes tokens[from, to) and compares each row.
void continues(Session &s, size_t from, size_t to, const std::string &what) {
  std::vector<float> logits(info.vocab);
  size_t wrong = 0;
  for (size_t i = from; i < to; ++i)
    wrong += sparkc_decode(s.raw, tokens[i], logits.data()) != SPARKC_OK ||
             !isRow(logits.data(), i);
  check(wrong == 0, what + ": " + std::to_string(wrong) + " wrong rows");
}

void fill(Session &s, size_t n, uint32_t otherFrom = UINT32_MAX) {
  std::vector<int32_t> text(tokens.begin(), tokens.begin() + n);
  for (size_t i = otherFrom; i < n; ++i) // another text from there on
    text[i] = (text[i] + 1) % int32_t(info.vocab);
  check(sparkc_prefill(s.raw, text.data(), n, 0, nullptr) == SPARKC_OK,
        "prefill");
}

void prefillEqualsDecode() {
  const struct {
    uint32_t threads, chunk;
  } ways[] = {{1, 0}, {2, 0}, {3, 0}, {7, 0}, {2, 1}, {2, 7}};
  for (auto way : ways) {
    Session s(way.threads, way.chunk);
    std::vector<float> all(expected.size());
    check(sparkc_prefill(s.raw, tokens.data(), tokens.size(),
                         SPARKC_PREFILL_ALL_LOGITS, all.data()) == SPARKC_OK,
          "prefill of all");
    check(!memcmp(all.data(), expected.data(), all.size() * sizeof(float)),
          "prefill on " + std::to_string(way.threads) +
              " threads in chunks of " + std::to_string(way.chunk));
  }
}

void rewinds() {
  const size_t n = tokens.size() - 4, ring = info.ring_positions;
  std::vector<size_t> kept = {0, 1, n / 2, n - 1, n};
  if (ring) {
    size_t free = ring - info.window + 1; // see RingMap.h
    for (size_t back : {free - 1, free, free + 1, ring, ring + 1})
      if (back <= n)
        kept.push_back(n - back);
  }
  for (size_t to : kept) {
    Session s(2);
    fill(s, n, to);
    check(sparkc_rewind(s.raw, to) == SPARKC_OK, "rewind");
    continues(s, to, std::min(to + 4, tokens.size()),
              "rewound from " + std::to_string(n) + " to " +
                  std::to_string(to));
    // And a little further back, which what was just written may prevent.
    size_t again = to > 2 ? to - 2 : 0;
    check(sparkc_rewind(s.raw, again) == SPARKC_OK, "second rewind");
    continues(s, again, std::min(again + 4, tokens.size()),
              "then to " + std::to_string(again));
  }
}

/// A session that held another text, which parts from ours at `kept`.
void prompts() {
  const size_t n = tokens.size() - 4, ring = info.ring_positions;
  const size_t free = ring ? ring - info.window + 1 : SIZE_MAX;
  for (size_t parts : {size_t(0), n / 2, n - std::min(n, free + 1),
                       n - std::min(n, free), n - 1, n}) {
    Session s(2);
    fill(s, n, parts);
    std::vector<float> logits(info.vocab);
    size_t kept = SIZE_MAX;
    // Up to `parts` nothing is to be computed but what the ring has lost.
    const size_t want = n - parts <= free ? parts : 0;
    check(sparkc_prompt(s.raw, tokens.data(), parts + 1, logits.data(),
                        &kept) == SPARKC_OK &&
              kept == want && isRow(logits.data(), parts),
          "prompt that parts at " + std::to_string(parts) + ": " +
              std::to_string(kept) + " kept, not " + std::to_string(want));
    continues(s, parts + 1, std::min(parts + 4, tokens.size()),
              "after the prompt that parts at " + std::to_string(parts));
  }
}

void saveAndRestore(const char *path) {
  Session s(2);
  fill(s, tokens.size() / 2);
  sparkc_error why;
  check(sparkc_session_save(s.raw, path, &why) == SPARKC_OK,
        std::string("save: ") + why.message);
  Session other(2);
  check(sparkc_session_restore(other.raw, path, &why) == SPARKC_OK,
        std::string("restore: ") + why.message);
  continues(other, tokens.size() / 2, tokens.size(), "restored");
  std::remove(path);
}

void interleaved() {
  Session a(2), b(3);
  std::vector<float> logits(info.vocab);
  size_t wrong = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    wrong += sparkc_decode(a.raw, tokens[i], logits.data()) != SPARKC_OK ||
             !isRow(logits.data(), i);
    if (i >= 3)
      wrong +=
          sparkc_decode(b.raw, tokens[i - 3], logits.data()) != SPARKC_OK ||
          !isRow(logits.data(), i - 3);
  }
  check(wrong == 0, "interleaved sessions");
}

void onHostThreads() {
  for (uint32_t n : {1, 2, 3, 7}) {
    Session s(1);
    std::vector<float> logits(info.vocab);
    size_t wrong = 0;
    for (size_t i = 0; i < 20; ++i) {
      sparkc_spmd job;
      if (sparkc_spmd_begin(s.raw, &tokens[i], 1, 0, logits.data(), n, &job) !=
          SPARKC_OK) {
        ++wrong;
        break;
      }
      std::vector<std::thread> threads;
      for (uint32_t tid = 0; tid < n; ++tid)
        threads.emplace_back([&, tid] { job.entry(job.ctx, tid, n); });
      for (std::thread &thread : threads)
        thread.join();
      wrong +=
          sparkc_spmd_end(s.raw, &job) != SPARKC_OK || !isRow(logits.data(), i);
    }
    check(wrong == 0, "SPMD on " + std::to_string(n) + " threads");
  }
}

void barriers() {
  Session s(2);
  for (size_t i = 0; i < 3 && i < info.fold_threshold; ++i) {
    uint32_t before = sparkc_session_barriers(s.raw);
    std::vector<float> logits(info.vocab);
    sparkc_decode(s.raw, tokens[i], logits.data());
    uint32_t ran = sparkc_session_barriers(s.raw) - before;
    check(ran == info.barriers_per_step,
          "barriers of a step: " + std::to_string(ran) + ", promised " +
              std::to_string(info.barriers_per_step));
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return std::printf("usage: session-check model.so SCRATCH-FILE\n"), 2;
  sparkc_error why;
  sparkc_open_options options = {};
  options.struct_size = sizeof options;
  options.flags = SPARKC_OPEN_VERIFY;
  if (sparkc_open(argv[1], nullptr, &options, &model, &why) != SPARKC_OK)
    return std::printf("FAILED %s\n", why.message), 1;
  info.struct_size = sizeof info;
  sparkc_info(model, &info);

  // Past the ring's end, so that it wraps.
  size_t n = std::min<size_t>(info.default_context,
                              info.ring_positions + 2 * info.window + 40);
  uint32_t x = 1;
  for (size_t i = 0; i < n; ++i) {
    x = x * 1664525u + 1013904223u;
    tokens.push_back(int32_t((x >> 8) % info.vocab));
  }
  expected.resize(n * info.vocab);
  {
    Session s(1);
    for (size_t i = 0; i < n; ++i)
      check(sparkc_decode(s.raw, tokens[i], &expected[i * info.vocab]) ==
                SPARKC_OK,
            "decode");
  }
  check(memcmp(&expected[0], &expected[info.vocab],
               info.vocab * sizeof(float)) != 0,
        "rows differ");
  prefillEqualsDecode();
  rewinds();
  prompts();
  saveAndRestore(argv[2]);
  interleaved();
  onHostThreads();
  barriers();
  sparkc_close(model);
  std::printf("%d of %d hold (%zu tokens, ring of %u, window %u)\n",
              checks - failures, checks, n, info.ring_positions, info.window);
  return failures ? 1 : 0;
}
