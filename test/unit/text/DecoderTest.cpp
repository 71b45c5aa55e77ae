//===- DecoderTest.cpp - Streaming decoding -------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/Fixtures.h"

#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {
/// One byte is one token here.
class DecoderTest : public testing::Test {
protected:
  std::unique_ptr<Tokenizer> tokenizer = build(smallTokenizer());

  std::vector<std::string> stream(std::string_view bytes) {
    StreamDecoder decoder(*tokenizer, false);
    std::vector<std::string> parts;
    for (char byte : bytes) {
      parts.emplace_back();
      decoder.add(static_cast<unsigned char>(byte), parts.back());
    }
    parts.emplace_back();
    decoder.finish(parts.back());
    return parts;
  }
};
using Parts = std::vector<std::string>;
} // namespace

TEST_F(DecoderTest, HoldsBackWhatIsNotComplete) {
  EXPECT_EQ(stream("aé"), (Parts{"a", "", "é", ""}));
  EXPECT_EQ(stream("€"), (Parts{"", "", "€", ""}));
  EXPECT_EQ(stream("😀!"), (Parts{"", "", "", "😀", "!", ""}));
}

TEST_F(DecoderTest, ReplacesWhatCannotBecomeACharacter) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(stream("\xff"), (Parts{r, ""}));
  EXPECT_EQ(stream("\xe2\x82z"), (Parts{"", "", r + "z", ""}));
  EXPECT_EQ(stream("\xe2\xe2\x82\xac"), (Parts{"", r, "", "€", ""}));
  EXPECT_EQ(stream("\xc0\x80"), (Parts{r, r, ""}));
  EXPECT_EQ(stream("\xed\xa0\x80"), (Parts{"", r + r, r, ""}));
}

TEST_F(DecoderTest, FinishGivesTheRestAndStartsAnew) {
  StreamDecoder decoder(*tokenizer, false);
  std::string out;
  decoder.add(0xe2, out);
  decoder.add(0x82, out);
  EXPECT_EQ(out, "");
  decoder.finish(out);
  EXPECT_EQ(out, "\xef\xbf\xbd");
  out.clear();
  decoder.add(0xac, out); // not the end of the euro sign any more
  EXPECT_EQ(out, "\xef\xbf\xbd");
}

TEST_F(DecoderTest, SpecialTokensAreShownOrNot) {
  EXPECT_EQ(decode(*tokenizer, {'a', 256, 'b'}, true), "a<s>b");
  EXPECT_EQ(decode(*tokenizer, {'a', 256, 'b'}, false), "ab");
  // Hidden ones do not cut a character in two.
  EXPECT_EQ(decode(*tokenizer, {0xc3, 256, 0xa9}, false), "é");
}

TEST_F(DecoderTest, IdsWithoutATokenGiveNothing) {
  EXPECT_EQ(decode(*tokenizer, {'a', -1, 257, 1 << 30, INT32_MIN, 'b'}), "ab");
}

TEST_F(DecoderTest, EveryPieceOfRandomBytesIsWellFormed) {
  uint64_t state = 7;
  for (int round = 0; round < 500; ++round) {
    std::string bytes, whole;
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes.push_back(static_cast<char>(state >> 56));
    }
    for (const std::string &part : stream(bytes)) {
      EXPECT_TRUE(isUtf8(part));
      whole += part;
    }
    // At once it is the same as byte by byte.
    std::string once;
    for (std::string_view rest = bytes; !rest.empty();) {
      Utf8Step step = stepUtf8(rest);
      once += step.kind == Utf8Step::Character ? rest.substr(0, step.bytes)
                                               : "\xef\xbf\xbd";
      rest.remove_prefix(step.bytes);
    }
    EXPECT_EQ(whole, once);
  }
}
