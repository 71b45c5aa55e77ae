//===- CodeFileTest.cpp - The file an interrupted calibration leaves ------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/CodeFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <fstream>

using namespace sparkc;

namespace {

struct CodeFileTest : testing::Test {
  CodeFileTest() {
    llvm::SmallString<128> name;
    (void)llvm::sys::fs::createTemporaryFile("code-file", "codes", name);
    path = std::string(name);
  }
  ~CodeFileTest() override { llvm::sys::fs::remove(path); }

  std::unique_ptr<CodeFile> open(const CodeFile::Key &key) {
    auto file = CodeFile::open(path, key);
    if (file)
      return std::move(*file);
    message = llvm::toString(file.takeError());
    return nullptr;
  }
  void fill() {
    auto file = open(key);
    ASSERT_TRUE(file);
    EXPECT_FALSE(file->append({"one", "C4_64", 21.5, 0, 0}, bytes(67)));
    EXPECT_FALSE(file->append({"none", "", 0, 0, 0}, {}));
    EXPECT_FALSE(file->append({"two", "C6_32", 33, 0, 0}, bytes(350)));
  }
  static std::vector<uint8_t> bytes(size_t n) {
    std::vector<uint8_t> all(n);
    for (size_t i = 0; i < n; ++i)
      all[i] = uint8_t(7 * i + n);
    return all;
  }
  std::string read() {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  std::string path, message;
  CodeFile::Key key = digestOf("this run");
};

TEST_F(CodeFileTest, KeepsRecords) {
  fill();
  auto file = open(key);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 3u);
  const CodeFile::Record *one = file->find("one"), *none = file->find("none");
  ASSERT_TRUE(one && none && file->find("two"));
  EXPECT_EQ(one->dtype, "C4_64");
  EXPECT_EQ(one->sqnr, 21.5);
  EXPECT_EQ(one->bytes, 67u);
  EXPECT_EQ(none->dtype, "");
  EXPECT_EQ(file->find("three"), nullptr);
  std::string all = read();
  std::vector<uint8_t> wanted = bytes(67);
  EXPECT_EQ(one->offset % 64, 0u);
  EXPECT_EQ(all.substr(one->offset, 67),
            std::string(wanted.begin(), wanted.end()));
  file->remove();
  EXPECT_FALSE(llvm::sys::fs::exists(path));
}

TEST_F(CodeFileTest, StartsAgainForAnotherRun) {
  fill();
  auto file = open(digestOf("another"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 0u);
  EXPECT_EQ(read().size(), 64u);
}

TEST_F(CodeFileTest, CutsOffWhatIsNotWhole) {
  fill();
  const std::string whole = read();
  // Wherever it ends, and whatever byte of the last record is another.
  for (size_t size = 64; size < whole.size(); size += 13) {
    std::ofstream(path, std::ios::binary).write(whole.data(), size);
    auto file = open(key);
    ASSERT_TRUE(file) << message;
    EXPECT_LT(file->size(), 3u + (size + 64 > whole.size()));
    EXPECT_FALSE(file->append({"more", "C4_64", 1, 0, 0}, bytes(67)));
    size_t there = file->size();
    file = open(key);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->size(), there) << size;
  }
  std::string broken = whole;
  broken[broken.size() - 100] ^= 1;
  std::ofstream(path, std::ios::binary).write(broken.data(), broken.size());
  auto file = open(key);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 2u);
}

TEST_F(CodeFileTest, LeavesOtherFilesAlone) {
  std::ofstream(path, std::ios::binary) << "a letter to a friend";
  EXPECT_FALSE(open(key));
  EXPECT_EQ(message.substr(0, path.size() + 2), path + ": ");
  EXPECT_EQ(read(), "a letter to a friend");
}

} // namespace
