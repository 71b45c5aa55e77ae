//===- TokenizerPropertyTest.cpp - What holds of any text -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two thousand lines of every kind: code, CJK, emoji, digits, white space, the
// names of special tokens, bytes that are not UTF-8, and mixtures.
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Utf8.h"
#include "test/unit/text/Fixtures.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {

class Lines {
public:
  uint32_t random(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state >> 33) % n);
  }

  /// A line of the kind, or of all kinds.
  std::string line(int kind) {
    std::string out;
    for (uint32_t parts = 1 + random(12); parts; --parts)
      part(kind == kinds - 1 ? int(random(kinds - 1)) : kind, out);
    return out;
  }

  enum { kinds = 9 };

private:
  template <size_t N>
  void pick(const char *const (&from)[N], std::string &out) {
    out += from[random(N)];
  }
  using Block = std::pair<uint32_t, uint32_t>;
  void character(Block block, std::string &out) {
    appendUtf8(out, block.first + random(block.second - block.first + 1));
  }

  void part(int kind, std::string &out) {
    static const char *const code[] = {
        "for (int i = 0; i < n; ++i) {", "\t\treturn x[i]->f(\"a\\n\");",
        "def f(self, *a, **k):",         "    yield from g()",
        "#include <a/b.h>",              "x != y && !(a|b) ^ ~c",
        "SELECT * FROM t WHERE a='b';",  "</div><!-- x -->",
        "0xDEADbeef",                    "1e-9f",
        "$HOME/.x_y-z",                  "\\\\\"\\\"",
        "snake_case",                    "camelCaseHTTP2",
        "===",                           "}}//"};
    static const char *const emoji[] = {
        "😀", "👩‍👩‍👧‍👦", "👍🏽", "🇩🇪🇯🇵", "❤️", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "☺", "1️⃣", "🫠"};
    static const char *const space[] = {" ",      "  ",     "\t",      "\n",
                                        "\r\n",   "\r",     "\u00a0",  "\u3000",
                                        "\u2028", "\u0085", "\ufeff",  "\u200b",
                                        "\v",     "\f",     "     x ", "\n\n\n"};
    static const char *const words[] = {
        "The",  " whale",  "don't",   "I'LL",       " naïve",  "Übergrößen",
        " чай", " ελιά",   " שלום",   " مرحبا",     " हिन्दी",  "ไทย",
        "«ja»", " co-op.", " Ångström", "e\u0301\u0327", "\u1e9b\u0323"};
    static const char *const special[] = {
        "<｜start▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<think>", "</think>",
        "<|User|>",  "<|Bot|",   "<", "<|", "｜>", "<pad>", "▁", "<|System|>\n"};
    static const Block blocks[] = {{0x4e00, 0x9fff},
                                   {0x3041, 0x30ff},
                                   {0xac00, 0xd7a3},
                                   {0x3000, 0x301f},
                                   {0x20000, 0x2ffff}};
    switch (kind) {
    case 0:
      return pick(code, out);
    case 1: // CJK, kana, hangul, punctuation, and beyond the BMP
      for (uint32_t n = 1 + random(8); n; --n)
        character(blocks[random(5)], out);
      return;
    case 2:
      return pick(emoji, out);
    case 3: // digits, of other scripts too
      for (uint32_t n = 1 + random(20); n; --n)
        if (random(12))
          out += static_cast<char>('0' + random(10));
        else
          pick({".", ",", "٣", "७", "Ⅷ", "½", "１", "²"}, out);
      return;
    case 4:
      return pick(space, out);
    case 5:
      return pick(words, out);
    case 6:
      return pick(special, out);
    default: // any bytes, most of them not UTF-8
      for (uint32_t n = 1 + random(10); n; --n)
        out += static_cast<char>(random(3) ? 0x80 + random(0x80) : random(256));
      return;
    }
  }

  uint64_t state = 2026;
};

} // namespace

/// What a stream of tokens gives: whole characters each time.
static std::string streamed(const Tokenizer &tokenizer, const Ids &ids) {
  StreamDecoder decoder(tokenizer, /*showSpecial=*/true);
  std::string out;
  for (int32_t id : ids) {
    std::string piece;
    decoder.add(id, piece);
    EXPECT_TRUE(isUtf8(piece)) << id;
    out += piece;
  }
  std::string rest;
  decoder.finish(rest);
  EXPECT_TRUE(isUtf8(rest));
  return out + rest;
}

/// Bytes as text: what is no character, replaced.
static std::string asText(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    Utf8Step step = stepUtf8(bytes);
    if (step.kind == Utf8Step::Character)
      out += bytes.substr(0, step.bytes);
    else
      out += "\xef\xbf\xbd";
    bytes.remove_prefix(step.bytes);
  }
  return out;
}

TEST(TokenizerProperty, LinesOfEveryKindComeBack) {
  Lines lines;
  size_t broken = 0, tokens = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string line = lines.line(i % Lines::kinds);
    for (bool parseSpecial : {false, true}) {
      const Ids ids = encode(sparkTiny(), line, {false, parseSpecial});
      std::string bytes;
      for (int32_t id : ids) {
        ASSERT_TRUE(sparkTiny().has(id));
        if (!parseSpecial) {
          ASSERT_FALSE(sparkTiny().isSpecial(id)) << line;
        }
        bytes += sparkTiny().bytesOf(id);
      }
      tokens += ids.size();
      // What comes back is the text, each byte that is none replaced; of what
      // was no text the bytes may be those of a surrogate.
      ASSERT_EQ(bytes, isUtf8(line) ? line : repairUtf8(line).text) << i;
      ASSERT_EQ(streamed(sparkTiny(), ids), asText(bytes)) << i;
    }
    broken += !isUtf8(line);
  }
  EXPECT_GT(broken, 200u);
  EXPECT_LT(broken, 1000u);
  EXPECT_GT(tokens, 40000u);
}

/// A model may sample any tokens: bytes in an order that no text has.
TEST(TokenizerProperty, AnyTokensStreamAsText) {
  Lines lines;
  const auto size = static_cast<uint32_t>(sparkTiny().size());
  for (int i = 0; i < 2000; ++i) {
    Ids ids;
    std::string bytes;
    for (uint32_t n = lines.random(30); n; --n) {
      // Half of them from the 256 single bytes, with which a merge begins.
      ids.push_back(static_cast<int32_t>(
          lines.random(2) ? lines.random(size) : 9 + lines.random(256)));
      bytes += sparkTiny().bytesOf(ids.back());
    }
    ASSERT_EQ(streamed(sparkTiny(), ids), asText(bytes)) << i;
  }
}
