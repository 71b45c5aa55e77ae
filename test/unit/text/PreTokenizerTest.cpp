//===- PreTokenizerTest.cpp - Splitting text before merging ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/Fixtures.h"

#include "runtime/text/PatternView.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/RegexSyntax.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

using Pieces = std::vector<std::string>;

static Pieces split(const std::vector<SplitSpec> &splits,
                    std::string_view text) {
  PreTokenizer preTokenizer;
  std::string error;
  EXPECT_TRUE(preTokenizer.compile(splits, error)) << error;
  std::vector<size_t> ends;
  std::string view;
  EXPECT_TRUE(preTokenizer.split(patternView(text, view), ends, error))
      << error;
  Pieces pieces;
  size_t begin = 0;
  for (size_t end : ends) {
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return pieces;
}

static Pieces sparkPieces(std::string_view text) {
  static const std::vector<SplitSpec> splits = [] {
    TokenizerSpec spec;
    std::string error;
    EXPECT_TRUE(readTokenizerJson(
        readFile("examples/spark-tiny/tokenizer.json"), spec, error))
        << error;
    return spec.splits;
  }();
  return split(splits, text);
}

TEST(PreTokenizer, SplitsAsSparkDoes) {
  const std::pair<std::string, Pieces> cases[] = {
      {"", {}},
      {"Hello world", {"Hello", " world"}},
      {"a  b", {"a", " ", " b"}},
      {"a   b", {"a", "  ", " b"}},
      {"x\n\ny", {"x", "\n", "\n", "y"}},
      {"abc\r\n", {"abc", "\r", "\n"}},
      {"\t\tx", {"\t", "\tx"}},
      {"a \n b", {"a", " \n", " b"}},
      {"  \n", {"  \n"}},
      {"end  ", {"end", "  "}},
      {"don't", {"don", "'t"}},
      {"foo(bar)", {"foo", "(bar", ")"}},
      {"x = y;", {"x", " =", " y", ";"}},
      {"a_b", {"a", "_b"}},
      {"...wait", {"...", "wait"}},
      {"12345", {"1", "2", "3", "4", "5"}},
      {"v1.25", {"v", "1", ".", "2", "5"}},
      {"in 1984", {"in", " ", "1", "9", "8", "4"}},
      {"x²½Ⅷ", {"x", "²", "½", "Ⅷ"}},
      {"中文 english", {"中文", " english"}},
      {"中文，你好", {"中文", "，", "你好"}},
      {"ひらがなカタカナ漢字", {"ひらがなカタカナ漢字"}},
      {"abc中d", {"abc", "中", "d"}},
      {"한국어 말", {"한국어", " 말"}},
      {"hi 😀😀 you", {"hi", " 😀😀", " you"}},
      {"👩‍👩‍👧", {"👩", "‍", "👩", "‍", "👧"}},
      {"a 🩷🛜b", {"a", " 🩷🛜", "b"}},
      {"cafe\u0301 s", {"cafe\u0301", " s"}},
      {"naïve Ärger", {"naïve", " Ärger"}},
      {"привет мир", {"привет", " мир"}},
      {"a\u00a0b\u3000c", {"a", "\u00a0b", "\u3000c"}},
      {std::string("a\0b", 3), {"a", std::string("\0b", 2)}}};
  for (const auto &[text, pieces] : cases)
    EXPECT_EQ(sparkPieces(text), pieces) << text;
}

TEST(PreTokenizer, APatternSeesOnlyItsPiece) {
  // The end of a piece is no non-space: "(?!\S)" holds there.
  EXPECT_EQ(split({{"b", false}, {"\\s+(?!\\S)|\\s+", false}}, "a  b"),
            (Pieces{"a", "  ", "b"}));
  EXPECT_EQ(split({{"\\s+(?!\\S)|\\s+", false}}, "a  b"),
            (Pieces{"a", " ", " ", "b"}));
}

TEST(PreTokenizer, EmptyMatchesOnlySplit) {
  EXPECT_EQ(split({{"x*", false}}, "axb"), (Pieces{"a", "x", "b"}));
  EXPECT_EQ(split({{"(?=b)", false}}, "abéb"), (Pieces{"a", "bé", "b"}));
}

TEST(PreTokenizer, StringsAreNotPatterns) {
  EXPECT_EQ(split({{"a.b", true}}, "xa.ba-b"), (Pieces{"x", "a.b", "a-b"}));
}

TEST(PreTokenizer, LongRunsSplitInLinearTime) {
  const size_t n = 1 << 20;
  for (const char *unit : {"a", " ", "7", "\n", "中", ".", " .", "a'"}) {
    std::string text;
    while (text.size() < n)
      text += unit;
    EXPECT_FALSE(sparkPieces(text).empty()) << unit;
  }
}

TEST(PatternView, NewerCharactersLookLikeOlderOnesOfTheirKind) {
  std::string view;
  EXPECT_EQ(patternView("plain, é, 中, 😀", view), "plain, é, 中, 😀");
  // An emoji, an ideograph, a Kannada mark, a Kawi digit and punctuation.
  EXPECT_EQ(patternView("a\U0001fa77b", view), "a😀b");
  EXPECT_EQ(patternView("\U0002ebf0", view), "\U00010000");
  EXPECT_EQ(patternView("\u0cf3", view), "\u20d0");
  EXPECT_EQ(patternView("\U00011f50\U00011f43", view), "\U00010107\U00010100");
  EXPECT_EQ(patternView("\u2ffc", view), "\u2190");
  // Letters of the text come from the text itself.
  EXPECT_EQ(encode(sparkTiny(), "\U0001fa77").size(), 4u);
  EXPECT_EQ(decode(sparkTiny(), encode(sparkTiny(), " \U0001fa77")),
            " \U0001fa77");
}

static std::string translated(std::string_view pattern) {
  std::string out, error;
  EXPECT_TRUE(translateRegex(pattern, out, error)) << pattern << ": " << error;
  return out;
}

static std::string refused(std::string_view pattern) {
  std::string out, error;
  EXPECT_FALSE(translateRegex(pattern, out, error)) << pattern;
  return error;
}

TEST(RegexSyntax, RewritesWhatMeansSomethingElse) {
  EXPECT_EQ(translated("\\p{N}{1,3}"), "\\p{N}{1,3}");
  EXPECT_EQ(translated("\\s+(?!\\S)"), "\\p{White_Space}+(?!\\P{White_Space})");
  EXPECT_EQ(translated("[^\\s\\p{L}]"), "[^\\p{White_Space}\\p{L}]");
  EXPECT_EQ(translated("(a|b)++\\u00e9"), "(?:a|b)++\\x{00e9}");
  EXPECT_EQ(translated("[\\[\\]\\\\-]"), "[\\[\\]\\\\-]");
  EXPECT_EQ(translated("\\é[一-龥]"), "é[一-龥]");
  EXPECT_EQ(translated("(?i:'s|'t)|x{2,}?"), "(?i:'s|'t)|x{2,}?");
}

TEST(RegexSyntax, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refused("[a[b]]"), "'[' in a pattern is not supported");
  EXPECT_EQ(refused("[a&&b]"), "'&&' in a pattern is not supported");
  EXPECT_EQ(refused("\\h"), "'\\h' in a pattern is not supported");
  EXPECT_EQ(refused("(?<name>a)"), "'(?<' in a pattern is not supported");
  EXPECT_EQ(refused("(*COMMIT)"), "'(*' in a pattern is not supported");
  EXPECT_EQ(refused("a{,3}"), "'{,' in a pattern is not supported");
  EXPECT_EQ(refused("a{3}?"), "'{3}?' in a pattern is not supported");
  EXPECT_EQ(refused("a{1,3}+"), "'{1,3}+' in a pattern is not supported");
  EXPECT_EQ(refused("[a"), "a character class in a pattern does not end");
  for (const char *pattern :
       {"\\", "(\\1)", "[]a]", "[\\W]", "a{", "a{}", "a{x}", "\\x41", "\\u00g0",
        "\\p", "\\pL", "\\p{L", "\\Qa\\E", "\\K", "\\R", "\\b", "(?R)", "(?#)"})
    EXPECT_FALSE(refused(pattern).empty());
}

TEST(RegexSyntax, MongolianVowelSeparatorIsNoSpace) {
  EXPECT_EQ(split({{"\\s", false}}, "a\u180eb\u2003c"),
            (Pieces{"a\u180eb", "\u2003", "c"}));
}
