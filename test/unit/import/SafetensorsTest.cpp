//===- SafetensorsTest.cpp - Tests of the safetensors reader --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/Safetensors.h"
#include "TestFiles.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

static llvm::Expected<std::vector<TensorInfo>> parse(llvm::StringRef bytes) {
  return parseSafetensorsHeader(
      {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, "f");
}

static std::string refusal(llvm::StringRef bytes) {
  return errorOf(parse(bytes), "f");
}

static std::string withLength(uint64_t length, llvm::StringRef rest) {
  std::string out;
  for (int i = 0; i < 8; ++i)
    out += static_cast<char>(length >> (8 * i));
  return out + rest.str();
}

/// One tensor "a" with the given members, and as many bytes of data.
static std::string one(llvm::StringRef members, size_t bytes = 8) {
  return safetensorsOf("{\"a\":{" + members.str() + "}}",
                       std::string(bytes, '\0'));
}

TEST(Safetensors, ReadsTensorsInOrderOfTheirBytes) {
  auto list = parse(safetensorsOf(
      R"({"__metadata__":{"format":"pt"},)"
      R"("z":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("n":{"dtype":"I64","shape":[0,7],"data_offsets":[16,16]}}  )",
      std::string(16, 'x')));
  ASSERT_TRUE(static_cast<bool>(list)) << llvm::toString(list.takeError());
  ASSERT_EQ(list->size(), 3u);
  uint64_t start = (*list)[0].offset;
  EXPECT_EQ((*list)[0].name, "z");
  EXPECT_EQ((*list)[0].dtype, DType::F32);
  EXPECT_TRUE((*list)[0].shape.empty());
  EXPECT_EQ((*list)[0].bytes, 4u);
  EXPECT_EQ((*list)[1].name, "a");
  EXPECT_EQ((*list)[1].offset, start + 4);
  EXPECT_EQ((*list)[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*list)[2].name, "n");
  EXPECT_EQ((*list)[2].bytes, 0u);
}

TEST(Safetensors, HeaderLengths) {
  std::string good = safetensorsOf({{"a", "F32", {2}}});
  for (uint64_t length :
       {uint64_t(0), uint64_t(1), uint64_t(8), uint64_t(good.size()),
        uint64_t(good.size() - 7), uint64_t(100'000'001), uint64_t(1) << 32,
        (uint64_t(1) << 63) - 1, uint64_t(1) << 63, ~uint64_t(0) - 7,
        ~uint64_t(0)})
    refusal(withLength(length, good.substr(8)));
  EXPECT_EQ(refusal(withLength(0, good.substr(8))), "f: header length is 0");
  EXPECT_NE(refusal(withLength(~uint64_t(0), good.substr(8)))
                .find("18446744073709551615"),
            std::string::npos);
}

TEST(Safetensors, CutOrGrownAtAnyByte) {
  std::string good = safetensorsOf(smallTensors());
  ASSERT_TRUE(static_cast<bool>(parse(good)));
  for (size_t n = 0; n < good.size(); ++n)
    refusal(llvm::StringRef(good).take_front(n));
  for (size_t n : {1, 2, 8, 100})
    EXPECT_NE(refusal(good + std::string(n, '\0')).find("belong to no tensor"),
              std::string::npos);
}

TEST(Safetensors, EveryHeaderByteChanged) {
  // Whatever it says, it must not crash, and an error must be one line.
  std::string good = safetensorsOf({{"a", "F32", {2, 3}}, {"b", "BF16", {5}}});
  for (size_t i = 0; i < good.size() - 34; ++i)
    for (char c : {'\0', '"', '{', '}', '[', ',', '9', '-', '\n', '\xff'}) {
      std::string bad = good;
      bad[i] = c;
      auto list = parse(bad);
      if (!list)
        checkMessage(llvm::toString(list.takeError()), "f");
    }
}

TEST(Safetensors, MalformedHeaders) {
  EXPECT_NE(refusal(safetensorsOf("nonsense", "")).find("malformed JSON"),
            std::string::npos);
  EXPECT_NE(refusal(safetensorsOf("[]", "")).find("not an object"),
            std::string::npos);
  EXPECT_NE(refusal(safetensorsOf(llvm::StringRef("{}\0", 3), ""))
                .find("malformed JSON"),
            std::string::npos);
  EXPECT_NE(refusal(safetensorsOf(R"({"a":3})", "")).find("not an object"),
            std::string::npos);
  EXPECT_NE(refusal(safetensorsOf(R"({"__metadata__":[]})", ""))
                .find("__metadata__ is an array"),
            std::string::npos);
  EXPECT_NE(refusal(safetensorsOf(R"({"__metadata__":{"a":1}})", ""))
                .find("__metadata__: 'a' is not a string"),
            std::string::npos);
}

TEST(Safetensors, EntryFaults) {
  struct Case {
    const char *members, *reason;
  } cases[] = {
      {R"("shape":[2],"data_offsets":[0,8])", "no dtype"},
      {R"("dtype":7,"shape":[2],"data_offsets":[0,8])", "no dtype"},
      {R"("dtype":"F31","shape":[2],"data_offsets":[0,8])",
       "unknown dtype 'F31'"},
      {R"("dtype":"F32","data_offsets":[0,8])", "no shape"},
      {R"("dtype":"F32","shape":2,"data_offsets":[0,8])", "no shape"},
      {R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", "not an integer"},
      {R"("dtype":"F32","shape":[1.5],"data_offsets":[0,8])", "not an integer"},
      {R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])", "not an integer"},
      {R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])",
       "not an integer"},
      {R"("dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,8])",
       "overflows"},
      {R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])",
       "overflows"},
      // Both wrap to 0, the size that the offsets give.
      {R"("dtype":"U8","shape":[4294967296,4294967296,1],"data_offsets":[0,0])",
       "overflows"},
      {R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])",
       "overflows"},
      {R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])",
       "9 dimensions"},
      {R"("dtype":"F32","shape":[2])", "data_offsets"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0])", "data_offsets"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])", "data_offsets"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[-1,7])", "data_offsets"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,1e30])", "data_offsets"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[8,0])", "reversed"},
      {R"("dtype":"F32","shape":[3],"data_offsets":[0,12])",
       "end past the file's 8 bytes"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[9223372036854775799,9223372036854775807])",
       "end past"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,8])",
       "hold 8 bytes; F32 [1] needs 4"},
      {R"("dtype":"BF16","shape":[2],"data_offsets":[0,8])", "needs 4"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[4,8])",
       "4 bytes before it belong to no tensor"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,4])",
       "4 bytes at its end belong to no tensor"},
  };
  for (const Case &c : cases) {
    std::string message = refusal(one(c.members));
    EXPECT_NE(message.find(c.reason), std::string::npos)
        << message << "\nwanted: " << c.reason;
  }
}

TEST(Safetensors, RangesMustNotOverlapOrLeaveGaps) {
  auto two = [](const char *a, const char *b) {
    return safetensorsOf(
        std::string(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":)") + a +
            R"(},"b":{"dtype":"U8","shape":[8],"data_offsets":)" + b + "}}",
        std::string(20, 'x'));
  };
  EXPECT_EQ(refusal(two("[0,8]", "[4,12]")),
            "f: tensor 'b': its bytes overlap those of 'a'");
  EXPECT_EQ(refusal(two("[0,8]", "[0,8]")),
            "f: tensor 'b': its bytes overlap those of 'a'");
  EXPECT_EQ(refusal(two("[9,17]", "[0,8]")),
            "f: tensor 'a': 1 bytes before it belong to no tensor");
}

TEST(Safetensors, DuplicateNames) {
  EXPECT_EQ(refusal(safetensorsOf(
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                "x")),
            "f: key 'a' stands twice");
}

TEST(Safetensors, NamesInMessagesAreEscaped) {
  std::string message = refusal(safetensorsOf(R"({"a\nb":1})", ""));
  EXPECT_NE(message.find("'a\\x0ab'"), std::string::npos) << message;
}

TEST(Safetensors, OpenMapsAndFinds) {
  TempDir dir;
  std::string path =
      dir.write("t", safetensorsOf({{"a", "I8", {3}}, {"b", "BF16", {2}}}));
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file)) << llvm::toString(file.takeError());
  EXPECT_EQ(file->tensors().size(), 2u);
  const TensorInfo *b = file->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(file->file()->data()[b->offset], 3); // data counts up from 0
  EXPECT_EQ(file->find("c"), nullptr);
  EXPECT_EQ(errorOf(SafetensorsFile::open(dir.file("no")), dir.file("no")),
            dir.file("no") + ": No such file or directory");
}

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(dtypeFromName("BF16"), DType::BF16);
  EXPECT_EQ(dtypeFromName("bf16"), std::nullopt);
  EXPECT_EQ(dtypeName(DType::F16), "F16");
  EXPECT_EQ(dtypeBytes(DType::F64), 8u);
  EXPECT_EQ(dtypeBytes(DType::F32), 4u);
  EXPECT_EQ(dtypeBytes(DType::BF16), 2u);
  EXPECT_EQ(dtypeBytes(DType::F8E4M3), 1u);
}
