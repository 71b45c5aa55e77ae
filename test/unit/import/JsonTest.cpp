//===- JsonTest.cpp - Tests of JSON reading and of messages ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/Json.h"
#include "TestFiles.h"
#include "dialect/import/ImportError.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

static std::string refusal(llvm::StringRef text) {
  return errorOf(parseJsonObject(text, "a.json"), "a.json");
}

TEST(Json, Malformed) {
  for (const char *text : {"", " ", "{", "}", "{]", "{\"a\"}", "{\"a\":}",
                           "{\"a\":1,}", "{\"a\":1}x", "{\"a\":\"", "{'a':1}",
                           "{\"a\":NaN}", "{\"a\":\"\xff\"}", "\"", "{\"\\"})
    EXPECT_NE(refusal(text).find("malformed JSON"), std::string::npos) << text;
}

TEST(Json, RootMustBeObject) {
  EXPECT_EQ(refusal("[1]"), "a.json: the JSON is an array, not an object");
  EXPECT_EQ(refusal("null"), "a.json: the JSON is null, not an object");
}

TEST(Json, DuplicateKeys) {
  EXPECT_EQ(refusal("{\"a\":1,\"b\":2,\"a\":1}"),
            "a.json: key 'a' stands twice");
  EXPECT_EQ(refusal("{\"b\":{\"a\":[{\"c\":1 , \"c\"\n:2}]}}"),
            "a.json: key 'c' stands twice");
  EXPECT_EQ(refusal("{\"\\u0061\":1,\"a\":2}"), "a.json: key 'a' stands twice");
}

TEST(Json, EqualKeysOfDifferentObjectsAndValues) {
  auto object = parseJsonObject("{\"a\":{\"a\":\"a\"},\"b\":{\"a\":[\"a\","
                                "\"a\"]},\"c\":\"x:\\\"a\\\":1\"}",
                                "a.json");
  ASSERT_TRUE(static_cast<bool>(object)) << llvm::toString(object.takeError());
  EXPECT_EQ(object->size(), 3u);
}

TEST(Json, NestingIsBounded) {
  auto nested = [](size_t n) {
    return "{\"a\":" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  EXPECT_TRUE(static_cast<bool>(parseJsonObject(nested(63), "a.json")));
  EXPECT_NE(refusal(nested(64)).find("nested more than 64"), std::string::npos);
  // Deep enough to exhaust the stack of a parser that recurses.
  EXPECT_NE(refusal(std::string(10'000'000, '[')).find("nested"),
            std::string::npos);
  // Brackets in strings do not nest.
  EXPECT_TRUE(static_cast<bool>(
      parseJsonObject("{\"a\":\"" + std::string(1000, '[') + "\"}", "a.json")));
}

TEST(Json, Integers) {
  auto read = [](const char *text) {
    return integerOf(llvm::cantFail(llvm::json::parse(text)));
  };
  EXPECT_EQ(read("7"), 7);
  EXPECT_EQ(read("-7"), -7);
  EXPECT_EQ(read("7.0"), 7);
  EXPECT_EQ(read("5e6"), 5000000);
  EXPECT_EQ(read("9223372036854775807"), INT64_MAX);
  for (const char *text :
       {"7.5", "\"7\"", "true", "null", "9223372036854775808", "1e999",
        "9223372036854775807.0", "18446744073709551615", "-1e300"})
    EXPECT_EQ(read(text), std::nullopt) << text;
}

TEST(ImportError, IsOneLine) {
  std::string message = llvm::toString(
      importError("dir\n/x", "tensor " + quotedName("a\r\n\x1b[31m")));
  EXPECT_EQ(message, "dir\\x0a/x: tensor 'a\\x0d\\x0a\\x1b[31m'");
}

TEST(ImportError, NamesAreCutAndRepairs) {
  EXPECT_EQ(quotedName(std::string(200, 'a')),
            "'" + std::string(120, 'a') + "...'");
  EXPECT_EQ(quotedName("a\xff"), "'a\xef\xbf\xbd'");
}
