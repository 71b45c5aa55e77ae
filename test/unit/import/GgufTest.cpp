//===- GgufTest.cpp - Tests of the GGUF reader ----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/GgufModel.h"
#include "dialect/import/GgufWriter.h"
#include "TestFiles.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {
/// Bytes of a file, put together by hand.
struct Bytes {
  std::string text;
  template <typename T> Bytes &put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      text += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Bytes &u32(uint32_t v) { return put(v); }
  Bytes &u64(uint64_t v) { return put(v); }
  Bytes &string(llvm::StringRef s) {
    u64(s.size());
    text += s;
    return *this;
  }
  Bytes &key(llvm::StringRef name, GgufType type) {
    return string(name).u32(uint32_t(type));
  }
  Bytes &tensor(llvm::StringRef name, std::vector<uint64_t> dims, uint32_t type,
                uint64_t offset) {
    string(name).u32(dims.size());
    for (uint64_t dim : dims)
      u64(dim);
    return u32(type).u64(offset);
  }
  /// Pads to the alignment and appends data.
  Bytes &data(uint64_t bytes, uint64_t align = 32) {
    text.resize((text.size() + align - 1) / align * align);
    text.append(bytes, '\x11');
    return *this;
  }
};

Bytes file(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
  Bytes out;
  out.text = "GGUF";
  out.u32(version).u64(tensors).u64(keys);
  return out;
}

llvm::Expected<GgufHeader> parse(llvm::StringRef bytes) {
  return parseGgufHeader(
      {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, "f");
}
std::string refusal(const Bytes &bytes) {
  return errorOf(parse(bytes.text), "f");
}

void contains(const std::string &message, llvm::StringRef part) {
  EXPECT_NE(message.find(part.str()), std::string::npos) << message;
}

/// Two tensors and a key of each kind.
Bytes good() {
  Bytes out = file(2, 5);
  out.key("a", GgufType::U32).u32(7);
  out.key("s", GgufType::String).string("text");
  out.key("b", GgufType::Array).u32(uint32_t(GgufType::Bool)).u64(2);
  out.text += std::string("\1\0", 2);
  out.key("n", GgufType::Array).u32(uint32_t(GgufType::String)).u64(2);
  out.string("x").string("");
  out.key("i", GgufType::I64).u64(~uint64_t(4)); // -5
  out.tensor("w", {256, 3}, 14, 64).tensor("v", {5}, 0, 0);
  return out.data(64 + 3 * 210);
}
} // namespace

TEST(Gguf, ReadsKeysAndTensors) {
  Bytes bytes = good();
  auto header = parse(bytes.text);
  ASSERT_TRUE(bool(header)) << llvm::toString(header.takeError());
  EXPECT_EQ(header->find("a")->integer(), 7);
  EXPECT_EQ(header->find("i")->integer(), -5);
  EXPECT_EQ(header->find("s")->string(), llvm::StringRef("text"));
  EXPECT_EQ(header->find("b")->booleans(), (std::vector<bool>{true, false}));
  EXPECT_EQ(header->find("n")->strings(),
            (std::vector<llvm::StringRef>{"x", ""}));
  EXPECT_EQ(header->find("n")->typeText(), "array of string");
  EXPECT_EQ(header->find("a")->string(), std::nullopt);
  EXPECT_EQ(header->find("nothing"), nullptr);
  ASSERT_EQ(header->tensors.size(), 2u); // in the order of their bytes
  const TensorInfo &v = header->tensors[0], &w = header->tensors[1];
  EXPECT_EQ(v.name, "v");
  EXPECT_EQ(v.bytes, 20u);
  EXPECT_EQ(w.shape, (std::vector<int64_t>{3, 256}));
  EXPECT_EQ(w.dtype, DType::Q6_K);
  EXPECT_EQ(w.bytes, 630u);
  EXPECT_EQ(w.offset, v.offset + 64);
  EXPECT_EQ(w.offset + w.bytes, bytes.text.size());
}

TEST(Gguf, CutAtAnyByte) {
  std::string all = good().text;
  for (size_t n = 0; n < all.size(); ++n)
    errorOf(parse(llvm::StringRef(all).take_front(n)), "f");
  EXPECT_TRUE(bool(parse(all)));
}

TEST(Gguf, MagicAndVersion) {
  EXPECT_EQ(refusal({"GGML"}), "f: not a GGUF file");
  EXPECT_TRUE(bool(parse(file(0, 0, 2).text)));
  contains(refusal(file(0, 0, 1)), "version 1; 2 or 3 is supported");
  contains(refusal(file(0, 0, 4)), "version 4");
  contains(refusal(file(0, 0, 0x03000000)), "big-endian");
}

TEST(Gguf, CountsAndLengthsPastTheEnd) {
  for (uint64_t many : {uint64_t(1) << 20, uint64_t(1) << 61, ~uint64_t(0)}) {
    contains(refusal(file(0, many)), "list of keys");
    contains(refusal(file(many, 0)), "list of tensors");
    Bytes name = file(0, 1);
    name.u64(many);
    name.text += std::string(20, 'x');
    contains(refusal(name), "past the end");
    for (GgufType of : {GgufType::U8, GgufType::U64, GgufType::String}) {
      Bytes list = file(0, 1);
      list.key("k", GgufType::Array).u32(uint32_t(of)).u64(many);
      contains(refusal(list), "past the end");
    }
    Bytes text = file(0, 1);
    text.key("k", GgufType::String).u64(many);
    contains(refusal(text), "past the end");
  }
}

TEST(Gguf, TypesOfValues) {
  contains(refusal(file(0, 1).key("k", GgufType(13)).u64(0)),
           "key 'k' has unknown type 13");
  Bytes nested = file(0, 1);
  nested.key("k", GgufType::Array).u32(uint32_t(GgufType::Array)).u64(1);
  nested.u32(uint32_t(GgufType::Array)).u64(1);
  contains(refusal(nested), "array of arrays");
  Bytes boolean = file(0, 1).key("k", GgufType::Bool);
  boolean.text += '\2';
  contains(refusal(boolean), "bool of 2");
  Bytes twice = file(0, 2);
  twice.key("k", GgufType::U32).u32(1).key("k", GgufType::U32).u32(1);
  contains(refusal(twice), "key 'k' is there twice");
}

TEST(Gguf, ShapesOfTensors) {
  auto one = [](std::vector<uint64_t> dims, uint32_t type) {
    return refusal(file(1, 0).tensor("t", dims, type, 0).data(64));
  };
  contains(one({}, 0), "0 dimensions");
  contains(one({1, 1, 1, 1, 1}, 0), "5 dimensions");
  contains(one({4, 0}, 0), "a dimension is 0");
  contains(one({~uint64_t(0)}, 0), "a dimension is");
  contains(one({uint64_t(1) << 62, 4}, 0), "overflows");
  contains(one({uint64_t(1) << 62}, 0), "overflows");
  contains(one({1 << 30, 1 << 30, 1 << 30, 1 << 30}, 0), "overflows");
  contains(one({100}, 12), "not whole blocks of Q4_K (256)");
  contains(one({8}, 10), "type Q2_K, which is not supported");
  contains(one({8}, 4), "unknown type 4");
  contains(one({17}, 0), "past the end");
  Bytes rank = file(1, 0);
  rank.string("t").u32(~0u);
  contains(refusal(rank.data(64)), "4294967295 dimensions");
}

TEST(Gguf, PlacesOfTensors) {
  auto two = [](uint64_t first, uint64_t second, const char *name = "b") {
    Bytes out = file(2, 0);
    out.tensor("a", {8}, 0, first).tensor(name, {8}, 0, second);
    return out.data(64);
  };
  EXPECT_TRUE(bool(parse(two(32, 0).text)));
  contains(refusal(two(0, 0)), "overlap those of 'a'");
  contains(refusal(two(0, 16)), "not a multiple of the alignment");
  contains(refusal(two(0, 64)), "past the end");
  contains(refusal(two(0, ~uint64_t(31))), "past the end");
  contains(refusal(two(0, 32, "a")), "tensor 'a' is there twice");
}

TEST(Gguf, Alignment) {
  auto aligned = [](GgufType type, uint64_t value, uint64_t bytes) {
    Bytes out = file(1, 1).key("general.alignment", type);
    out.text.append(reinterpret_cast<const char *>(&value), bytes);
    return out.tensor("t", {8}, 0, 0).data(32, 64);
  };
  Bytes good = aligned(GgufType::U32, 64, 4);
  auto header = parse(good.text);
  ASSERT_TRUE(bool(header)) << llvm::toString(header.takeError());
  EXPECT_EQ(header->tensors[0].offset % 64, 0u);
  EXPECT_EQ(header->tensors[0].offset + 32, good.text.size());
  contains(refusal(aligned(GgufType::U32, 0, 4)), "not a power of two");
  contains(refusal(aligned(GgufType::U32, 3, 4)), "not a power of two");
  contains(refusal(aligned(GgufType::U64, 64, 8)), "of type u64, not u32");
  contains(refusal(aligned(GgufType::Bool, 1, 1)), "of type bool, not u32");
  contains(refusal(aligned(GgufType::U32, 1u << 31, 4)), "past the end");
}

TEST(Gguf, WritesWhatItReads) {
  GgufWriter writer;
  writer.add("text", "abc");
  writer.add("number", uint32_t(5));
  writer.add("half", 0.5f);
  writer.add("yes", true);
  std::vector<std::string> words = {"x", "", "yz"};
  writer.add("words", llvm::ArrayRef(words));
  size_t a = writer.addTensor("a", DType::Q4_K, {2, 512});
  size_t b = writer.addTensor("b", DType::F32, {3});
  std::string bytes = writer.header();
  bytes.resize(writer.fileBytes());
  auto header = parse(bytes);
  ASSERT_TRUE(bool(header)) << llvm::toString(header.takeError());
  EXPECT_EQ(header->find("text")->string(), llvm::StringRef("abc"));
  EXPECT_EQ(header->find("half")->number(), 0.5);
  EXPECT_EQ(header->find("words")->strings()->at(2), "yz");
  EXPECT_EQ(header->tensors[0].offset, writer.offset(a));
  EXPECT_EQ(header->tensors[0].bytes, 4u * 144);
  EXPECT_EQ(header->tensors[1].offset, writer.offset(b));
  GgufWriter copy;
  for (const auto &[key, value] : header->keys)
    copy.add(key, value);
  copy.addTensor("a", DType::Q4_K, {2, 512});
  copy.addTensor("b", DType::F32, {3});
  std::string again = copy.header();
  again.resize(copy.fileBytes());
  EXPECT_EQ(again, bytes);
}

TEST(Gguf, SplitFiles) {
  TempDir folder;
  auto part = [&](unsigned number, unsigned count, const char *tensor,
                  unsigned total = 2) {
    Bytes out = file(1, 3);
    out.key("split.no", GgufType::U16).put(uint16_t(number));
    out.key("split.count", GgufType::U16).put(uint16_t(count));
    out.key("split.tensors.count", GgufType::I32).u32(total);
    return out.tensor(tensor, {8}, 0, 0).data(32).text;
  };
  std::string first = folder.write("m-00001-of-00002.gguf", part(0, 2, "a"));
  std::string second = folder.file("m-00002-of-00002.gguf");
  EXPECT_EQ(errorOf(GgufFile::open(first), second),
            second + ": No such file or directory");
  folder.write("m-00002-of-00002.gguf", part(1, 2, "b"));
  {
    auto opened = GgufFile::open(first);
    ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
    EXPECT_EQ(opened->tensors().size(), 2u);
    EXPECT_EQ(opened->findTensor("b")->file->path(), second);
    EXPECT_EQ(opened->findTensor("c"), nullptr);
  }
  contains(errorOf(GgufFile::open(second), second), "is part 2 of 2");
  folder.write("m-00002-of-00002.gguf", part(1, 2, "a"));
  contains(errorOf(GgufFile::open(first), second), "in another part too");
  folder.write("m-00002-of-00002.gguf", part(0, 2, "b"));
  contains(errorOf(GgufFile::open(first), second), "is not part 2 of 2");
  folder.write("m-00002-of-00002.gguf", part(1, 2, "b"));
  folder.write("m-00001-of-00002.gguf", part(0, 2, "a", 3));
  contains(errorOf(GgufFile::open(first), first), "hold 2 tensors, not the 3");
  std::string other = folder.write("x.gguf", part(0, 2, "a"));
  contains(errorOf(GgufFile::open(other), other), "does not end in");
  std::string odd = folder.write("y.gguf", part(3, 2, "a"));
  contains(errorOf(GgufFile::open(odd), odd), "makes no sense");
}

TEST(Gguf, NamesOfTensors) {
  EXPECT_EQ(ggufTensorName("embedding"), "token_embd.weight");
  EXPECT_EQ(ggufTensorName("lm_head"), "output.weight");
  EXPECT_EQ(ggufTensorName("layers.12.g_proj"), "blk.12.attn_gate.weight");
  EXPECT_EQ(ggufTensorName("layers.0.post_attention_layernorm"),
            "blk.0.ffn_norm.weight");
}
