//===- LinkTest.cpp - Shared objects, and failures to make them ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/object/TestModules.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {

std::string objectOf(const char *text,
                     llvm::ArrayRef<llvm::StringRef> exports) {
  TestModule module(text);
  auto object =
      llvm::cantFail(compileToObject(*module, target("x86-64-v3"), exports));
  return std::string(object.begin(), object.end());
}

std::string contentsOf(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// What linkSharedObject says in a process of its own, after \p prepare there.
std::string messageInChild(const std::string &object, const std::string &path,
                           void (*prepare)(size_t bytes)) {
  int ends[2];
  if (pipe(ends) != 0)
    return "no pipe";
  pid_t child = fork();
  if (child == 0) {
    prepare(object.size());
    std::string message = messageOf(linkSharedObject(object, path));
    if (write(ends[1], message.data(), message.size()) < 0)
      _exit(2);
    _exit(message.empty() ? 0 : 1);
  }
  close(ends[1]);
  char buffer[1000];
  ssize_t length = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  std::string message(buffer, length > 0 ? length : 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != (message.empty() ? 0 : 1))
    return "died with status " + std::to_string(status);
  return message;
}

TEST(Link, SameBytesInOtherDirectories) {
  std::string object = objectOf(addOneText, {"add_one"});
  ScratchDirectory one, two;
  ASSERT_EQ(messageOf(linkSharedObject(object, one.file("model.so"))), "");
  ASSERT_EQ(messageOf(linkSharedObject(object, two.file("another.so"))), "");
  std::string bytes = contentsOf(one.file("model.so"));
  EXPECT_FALSE(bytes.empty());
  EXPECT_EQ(bytes, contentsOf(two.file("another.so")));
  EXPECT_EQ(one.list(), std::vector<std::string>{"model.so"});
}

TEST(Link, ExportsWhatIsExportedAndNeedsNothing) {
  std::string object = objectOf(addOneText, {"add_one"});
  ScratchDirectory directory;
  std::string path = directory.file("model.so");
  ASSERT_EQ(messageOf(linkSharedObject(object, path)), "");
  auto binary = llvm::object::ObjectFile::createObjectFile(path);
  ASSERT_TRUE(bool(binary)) << messageOf(binary.takeError());
  auto &elf = llvm::cast<llvm::object::ELF64LEObjectFile>(*binary->getBinary());
  std::vector<std::string> dynamic, local;
  for (const llvm::object::ELFSymbolRef symbol :
       elf.getDynamicSymbolIterators())
    dynamic.push_back(llvm::cantFail(symbol.getName()).str());
  for (const llvm::object::ELFSymbolRef symbol : elf.symbols())
    if (symbol.getELFType() == llvm::ELF::STT_FUNC &&
        symbol.getBinding() == llvm::ELF::STB_LOCAL)
      local.push_back(llvm::cantFail(symbol.getName()).str());
  EXPECT_EQ(dynamic, std::vector<std::string>{"add_one"});
  EXPECT_EQ(local, (std::vector<std::string>{"step_phase_0", "step_phase_1"}));
  for (const auto &entry : llvm::cantFail(elf.getELFFile().dynamicEntries()))
    EXPECT_NE(entry.d_tag, llvm::ELF::DT_NEEDED);
}

TEST(Link, RefusesUndefinedSymbols) {
  std::string object = objectOf(undefinedText, {"calls"});
  ScratchDirectory directory;
  std::string path = directory.file("model.so");
  EXPECT_EQ(messageOf(linkSharedObject(object, path)),
            path + ": cannot link: undefined symbol: elsewhere");
  EXPECT_TRUE(directory.list().empty());
  LinkOptions options;
  options.allowUndefined = true;
  EXPECT_EQ(messageOf(linkSharedObject(object, path, options)), "");
  EXPECT_EQ(directory.list(), std::vector<std::string>{"model.so"});
}

TEST(Link, RefusesWhatIsNoObject) {
  ScratchDirectory directory;
  std::string path = directory.file("model.so");
  std::ofstream(path) << "older";
  std::string message = messageOf(linkSharedObject("not ELF", path));
  EXPECT_EQ(message, path + ": cannot link: not an ELF object");
  // One that starts like an object: lld's fatal errors come back too.
  message = messageInChild(objectOf(addOneText, {"add_one"}).substr(0, 200),
                           path, [](size_t) {});
  EXPECT_EQ(message.find(path + ": cannot link: the object: "), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  // The older file is untouched, and lld can be called again.
  EXPECT_EQ(contentsOf(path), "older");
  EXPECT_EQ(directory.list(), std::vector<std::string>{"model.so"});
  EXPECT_EQ(
      messageOf(linkSharedObject(objectOf(addOneText, {"add_one"}), path)), "");
  EXPECT_NE(contentsOf(path), "older");
}

TEST(Link, RefusesPathsThatCannotBeWritten) {
  std::string object = objectOf(addOneText, {"add_one"});
  ScratchDirectory directory;
  std::string path = directory.file("missing/model.so");
  EXPECT_EQ(messageOf(linkSharedObject(object, path)),
            path + ": cannot write: No such file or directory");
  // A directory in its place; a device.
  path = directory.file("");
  EXPECT_EQ(messageOf(linkSharedObject(object, path)),
            path + ": cannot write: not a regular file");
  EXPECT_EQ(messageOf(writeFileAtomically("/dev/null", object)),
            "/dev/null: cannot write: not a regular file");
  EXPECT_TRUE(directory.list().empty());
}

TEST(Link, FullDiskLeavesNothingBehind) {
  std::string object = objectOf(addOneText, {"add_one"});
  // A limit on the size of files stands for a disk that gets full.
  ScratchDirectory directory;
  std::string path = directory.file("model.so");
  std::string text = messageInChild(object, path, [](size_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(text, path + ": cannot write: File too large");
  EXPECT_TRUE(directory.list().empty());
}

TEST(Link, WritesTextFiles) {
  ScratchDirectory directory;
  std::string path = directory.file("model.s");
  EXPECT_EQ(messageOf(writeFileAtomically(path, "first")), "");
  EXPECT_EQ(messageOf(writeFileAtomically(path, "second")), "");
  EXPECT_EQ(contentsOf(path), "second");
  EXPECT_EQ(directory.list(), std::vector<std::string>{"model.s"});
}

} // namespace
