//===- MappedFileTest.cpp - Tests of mapped files -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/MappedFile.h"
#include "TestFiles.h"

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

/// KiB of mapped file pages in this process's resident set. Files on a tmpfs
/// count as shared memory.
static long residentFileKiB() {
  long total = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("RssFile:", 0) == 0 || line.rfind("RssShmem:", 0) == 0)
      total += std::stol(line.substr(line.find(':') + 1));
  return total;
}

TEST(MappedFile, ReadsTheFile) {
  TempDir dir;
  std::string path = dir.write("a", "hello");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file)) << llvm::toString(file.takeError());
  EXPECT_EQ((*file)->size(), 5u);
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ(std::string((*file)->data(), (*file)->data() + 5), "hello");
}

TEST(MappedFile, RefusesWhatIsNoPlainFile) {
  TempDir dir;
  EXPECT_EQ(errorOf(MappedFile::open(dir.path()), dir.path()),
            dir.path() + ": is a directory, not a file");
  std::string missing = dir.file("missing");
  EXPECT_EQ(errorOf(MappedFile::open(missing), missing),
            missing + ": No such file or directory");
  std::string empty = dir.write("empty", "");
  EXPECT_EQ(errorOf(MappedFile::open(empty), empty),
            empty + ": the file is empty");
  std::string fifo = dir.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(errorOf(MappedFile::open(fifo), fifo),
            fifo + ": is not a plain file");
  EXPECT_EQ(errorOf(MappedFile::open("/dev/zero"), "/dev/zero"),
            "/dev/zero: is not a plain file");
  std::string dangling = dir.file("dangling");
  ASSERT_EQ(::symlink("nowhere", dangling.c_str()), 0);
  EXPECT_EQ(errorOf(MappedFile::open(dangling), dangling),
            dangling + ": No such file or directory");
}

TEST(MappedFile, DropLeavesTheBytesButNotThePages) {
  TempDir dir;
  constexpr size_t size = 64 << 20;
  std::string path = dir.write("big", std::string(size, 'x') + "end");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file));
  auto sum = [&] {
    uint64_t total = 0;
    for (uint64_t i = 0; i < size; i += 512)
      total += (*file)->data()[i];
    return total;
  };
  uint64_t before = sum();
  long resident = residentFileKiB();
  (*file)->drop(0, size);
  EXPECT_LT(residentFileKiB(), resident - (32 << 10));
  EXPECT_EQ(sum(), before);

  // Odd and excessive ranges are harmless.
  (*file)->drop(5, 3);
  (*file)->drop(4095, UINT64_MAX);
  (*file)->drop(size + 3, 1);
  (*file)->drop(UINT64_MAX, UINT64_MAX);
  EXPECT_EQ((*file)->data()[size], 'e');
  EXPECT_EQ(sum(), before);
}
