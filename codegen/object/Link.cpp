//===- Link.cpp - Object bytes to a shared object -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/Link.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/raw_ostream.h"

#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace llvm;
using namespace sparkc;

namespace {

/// A file descriptor, closed at the end.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  void close() {
    if (number >= 0)
      ::close(number);
    number = -1;
  }
  /// A name by which this process can open it again.
  std::string path() const { return "/proc/self/fd/" + std::to_string(number); }

  int number;
};

} // namespace

static Error writeAll(int descriptor, StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t n = sys::RetryAfterSignal(-1, ::write, descriptor, bytes.data(),
                                      bytes.size());
    if (n < 0)
      return errorCodeToError(errnoAsErrorCode());
    bytes = bytes.drop_front(n);
  }
  return Error::success();
}

static SmallVector<char, 0> readAll(int descriptor) {
  SmallVector<char, 0> bytes;
  char buffer[65536];
  for (;;) {
    ssize_t n = sys::RetryAfterSignal(
        -1, [&] { return ::read(descriptor, buffer, sizeof buffer); });
    if (n <= 0)
      return bytes;
    bytes.append(buffer, buffer + n);
  }
}

static void replaceAll(std::string &text, StringRef from, StringRef to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// lld's "ld.lld: error: ..." lines as one, without their prefix.
static std::string summarize(StringRef output) {
  std::string summary;
  SmallVector<StringRef> lines;
  output.split(lines, '\n');
  for (StringRef line : lines) {
    size_t at = line.find("error: ");
    if (at == StringRef::npos)
      continue;
    if (!summary.empty())
      summary += "; ";
    summary += line.drop_front(at + strlen("error: "));
  }
  return summary.empty() ? "lld failed" : summary;
}

/// Runs lld from memory to memory. It maps a file that it writes, and would die
/// of SIGBUS when the disk gets full: so it is given a pipe to write to.
static Expected<SmallVector<char, 0>> link(StringRef object,
                                           const LinkOptions &options) {
  // Anything else would be taken for a linker script.
  if (identify_magic(object) != file_magic::elf_relocatable)
    return createStringError("not an ELF object");
  Descriptor input(memfd_create("object", MFD_CLOEXEC));
  int ends[2] = {-1, -1};
  if (input.number < 0 || pipe2(ends, O_CLOEXEC) != 0)
    return errorCodeToError(errnoAsErrorCode());
  Descriptor readEnd(ends[0]), writeEnd(ends[1]);
  if (Error error = writeAll(input.number, object))
    return error;

  std::string inputPath = input.path(), outputPath = writeEnd.path();
  SmallVector<const char *> arguments = {
      // clang-format off
      "ld.lld", "-shared", "-m", "elf_x86_64",
      "-z", "now", "-z", "relro", "-z", "noexecstack", "-z", "separate-code",
      "--hash-style=gnu", "--build-id=none", "--no-dependent-libraries",
      "--threads=1",
      options.allowUndefined ? "--unresolved-symbols=ignore-all"
                             : "--no-undefined",
      "-o", outputPath.c_str(), inputPath.c_str(),
      // clang-format on
  };

  // lld is one per process, and not to be called again after a fatal error.
  static std::mutex mutex;
  static bool usable = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (!usable)
    return createStringError("lld has failed before");
  SmallVector<char, 0> output;
  std::thread reader([&] { output = readAll(readEnd.number); });
  std::string messages;
  raw_string_ostream stream(messages);
  // For lld's fatal errors to come back here rather than end the process.
  CrashRecoveryContext::Enable();
  // --threads=1 is taken for the whole process, and would stay.
  const ThreadPoolStrategy strategy = parallel::strategy;
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  parallel::strategy = strategy;
  CrashRecoveryContext::Disable();
  writeEnd.close();
  reader.join();
  usable = result.canRunAgain;
  if (result.retCode == 0)
    return output;
  std::string summary = summarize(messages);
  replaceAll(summary, inputPath, "the object");
  return createStringError(summary);
}

Expected<OutputFile> sparkc::linkOutput(StringRef object, StringRef path,
                                        const LinkOptions &options) {
  auto output = link(object, options);
  if (!output)
    return createStringError(path +
                             ": cannot link: " + toString(output.takeError()));
  auto file = OutputFile::create(path, /*mode=*/0777);
  if (!file)
    return file.takeError();
  if (Error error = file->write(0, StringRef(output->data(), output->size())))
    return error;
  return file;
}

Error sparkc::linkSharedObject(StringRef object, StringRef path,
                               const LinkOptions &options) {
  auto output = linkOutput(object, path, options);
  return output ? output->commit() : output.takeError();
}
