//===- MergeTest.cpp - Byte-pair merging ----------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/Fixtures.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

using namespace sparkc;
using namespace sparkc::test;

/// The definition of BPE, by the letter: while there is a pair with a rank,
/// merge the leftmost of the lowest rank.
static Ids mergeSlowly(const Json &tokenizer, const std::string &text) {
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (const Json &merge : tokenizer["model"]["merges"])
    ranks[{merge[0], merge[1]}] = ranks.size();
  std::vector<std::string> parts;
  for (char c : text)
    parts.emplace_back(1, c);
  while (true) {
    size_t best = SIZE_MAX, at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      auto it = ranks.find({parts[i], parts[i + 1]});
      if (it != ranks.end() && it->second < best) {
        best = it->second;
        at = i;
      }
    }
    if (best == SIZE_MAX)
      break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<long>(at) + 1);
  }
  Ids ids;
  for (const std::string &part : parts)
    ids.push_back(tokenizer["model"]["vocab"][part]);
  return ids;
}

static uint64_t next(uint64_t &state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

TEST(Merge, DoesWhatTheDefinitionSays) {
  uint64_t state = 3;
  for (int round = 0; round < 60; ++round) {
    // Random merges over three letters: many overlap and compete.
    Json json = smallTokenizer();
    std::vector<std::string> words = {"a", "b", "c"};
    std::map<std::string, bool> seen;
    for (int i = 0; i < 25; ++i) {
      std::string left = words[next(state) % words.size()];
      std::string right = words[next(state) % words.size()];
      if (left.size() + right.size() > 9 || seen[left + " " + right])
        continue;
      seen[left + " " + right] = true;
      addMerge(json, left, right);
      words.push_back(left + right);
    }
    std::unique_ptr<Tokenizer> tokenizer = build(json);
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (uint64_t n = next(state) % 40; n; --n)
        text.push_back(static_cast<char>('a' + next(state) % 3));
      ASSERT_EQ(encode(*tokenizer, text), mergeSlowly(json, text)) << text;
    }
  }
}

TEST(Merge, ALongRunTakesNoQuadraticTime) {
  Json json = smallTokenizer();
  for (std::string run = "a"; run.size() <= 64; run += run)
    addMerge(json, run, run);
  std::unique_ptr<Tokenizer> tokenizer = build(json);
  auto begin = std::chrono::steady_clock::now();
  Ids ids = encode(*tokenizer, std::string(1 << 20, 'a'));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(ids.size(), (1u << 20) / 128);
  EXPECT_LT(took.count(), 15); // 0.2 s; with sanitizers on a busy machine more
}

TEST(Merge, IgnoreMergesTakesWholePieces) {
  Json json = smallTokenizer();
  addMerge(json, "b", "c");
  json["model"]["vocab"]["abc"] = 258; // no merge leads there
  EXPECT_EQ(encode(*build(json), "abc"), (Ids{'a', 257}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(encode(*build(json), "abc"), (Ids{258}));
  EXPECT_EQ(encode(*build(json), "abcd"), (Ids{'a', 257, 'd'}));
}

TEST(Merge, MergesMayBeStrings) {
  Json json = smallTokenizer();
  addMerge(json, "a", "b");
  json["model"]["merges"] = {"a b"};
  EXPECT_EQ(encode(*build(json), "ab"), (Ids{257}));
}
