//===- Utf8Test.cpp - Reading and repairing UTF-8 -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Utf8.h"
#include "runtime/text/ByteAlphabet.h"

#include <gtest/gtest.h>

#include <set>

using namespace sparkc;

/// All code points that are characters, in and out.
TEST(Utf8, EveryCharacterIsOneStep) {
  for (uint32_t c = 0; c <= 0x10ffff; ++c) {
    std::string text;
    appendUtf8(text, c);
    Utf8Step step = stepUtf8(text);
    if (c >= 0xd800 && c <= 0xdfff) {
      ASSERT_EQ(step.kind, Utf8Step::Invalid) << c;
      continue;
    }
    ASSERT_EQ(step.kind, Utf8Step::Character) << c;
    ASSERT_EQ(step.bytes, text.size()) << c;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      Utf8Step part = stepUtf8(std::string_view(text).substr(0, cut));
      ASSERT_EQ(part.kind, Utf8Step::Incomplete) << c;
      ASSERT_EQ(part.bytes, cut) << c;
    }
  }
}

/// Python: b"...".decode("utf-8", "replace") replaces so many bytes at once.
TEST(Utf8, InvalidBytesGoAsMaximalSubparts) {
  struct Case {
    std::string_view bytes;
    unsigned replaced;
  };
  for (const Case &c : {Case{"\x80"
                             "a",
                             1},
                        {"\xc0\x80", 1},
                        {"\xc3(", 1},
                        {"\xe0\x80\x80", 1},
                        {"\xe2\x82(", 2},
                        {"\xed\xa0\x80", 1},
                        {"\xf0\x9f\x98(", 3},
                        {"\xf0\x80\x80\x80", 1},
                        {"\xf4\x90\x80\x80", 1},
                        {"\xf5\x80\x80\x80", 1},
                        {"\xff", 1}}) {
    Utf8Step step = stepUtf8(c.bytes);
    EXPECT_EQ(step.kind, Utf8Step::Invalid) << c.bytes;
    EXPECT_EQ(step.bytes, c.replaced) << c.bytes;
  }
}

TEST(Utf8, RepairMakesEveryBadByteAReplacement) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(repairUtf8("a\xff"
                       "b")
                .text,
            "a" + r + "b");
  EXPECT_EQ(repairUtf8("\xe2\x82").text, r + r);
  EXPECT_EQ(repairUtf8("\xe2\x82z").text, r + r + "z");
  EXPECT_EQ(repairUtf8("\x80\xbf").text, r + r);
  EXPECT_EQ(repairUtf8("\xf4\x90\x80\x80").text, r + r + r + r);
  EXPECT_EQ(repairUtf8("\xf8\x88\x80\x80\x80").text, r + r + r + r + r);
  // Overlong forms of '/' become it; a surrogate stays, and looks like a
  // private character to the patterns.
  EXPECT_EQ(repairUtf8("\xc0\xaf\xe0\x80\xaf").text, "//");
  EXPECT_EQ(repairUtf8("\xed\xa0\x80").text, "\xed\xa0\x80");
  EXPECT_EQ(repairUtf8("\xed\xa0\x80").view, "\xee\x80\x80");
}

TEST(Utf8, WhatIsRepairedCanBeMatched) {
  uint64_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes.push_back(static_cast<char>(state >> 56));
    }
    RepairedUtf8 repaired = repairUtf8(bytes);
    EXPECT_TRUE(isUtf8(repaired.view));
    EXPECT_EQ(repaired.view.size(), repaired.text.size());
    if (isUtf8(bytes)) {
      EXPECT_EQ(repaired.text, bytes);
    }
  }
}

TEST(Utf8, WhiteSpaceIsUnicodes) {
  unsigned count = 0;
  for (uint32_t c = 0; c <= 0xffff; ++c) {
    std::string text;
    appendUtf8(text, c);
    count += isWhiteSpace(text);
  }
  EXPECT_EQ(count, 25u);
  EXPECT_TRUE(isWhiteSpace("\u3000"));
  EXPECT_FALSE(isWhiteSpace("\u180e"));
  EXPECT_FALSE(isWhiteSpace("\u200b"));
}

TEST(ByteAlphabet, SpellsEachByteOnce) {
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling = spellByte(static_cast<uint8_t>(byte));
    EXPECT_TRUE(seen.insert(spelling).second);
    std::string back;
    appendSpelledBytes(back, spelling);
    EXPECT_EQ(back, std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(spellByte(' '), "Ġ");
  EXPECT_EQ(spellByte('\n'), "Ċ");
  EXPECT_EQ(spellByte(0xad), "Ń");
}

TEST(ByteAlphabet, KeepsWhatSpellsNoBytes) {
  for (std::string name :
       {"a b", "<｜end▁of▁sentence｜>", "\u0144", "\xc4", "Ġ\xe2"}) {
    std::string out = "x";
    appendSpelledBytes(out, name);
    EXPECT_EQ(out, "x" + name);
  }
}
