//===- Link.cpp - Object bytes to a shared object -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/Link.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;
using namespace sparkc;

namespace {

/// A new file beside \p path, removed when this goes out of scope unless it was
/// renamed to \p path.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef path) : target(path) {}
  ~TemporaryFile() {
    if (!name.empty())
      sys::fs::remove(name);
  }

  Error create() {
    int descriptor;
    // An unnamed program's files are for everyone, subject to the umask.
    if (std::error_code code = sys::fs::createUniqueFile(
            target + ".%%%%%%%%.tmp", descriptor, name,
            sys::fs::OF_None, sys::fs::all_read | sys::fs::all_write)) {
      name.clear();
      return createStringError(code, target + ": cannot write: " +
                                         code.message());
    }
    stream = std::make_unique<raw_fd_ostream>(descriptor, /*shouldClose=*/true);
    return Error::success();
  }

  Error write(StringRef bytes) {
    *stream << bytes;
    stream->close();
    std::error_code code = stream->error();
    stream->clear_error();
    if (code)
      return createStringError(code, target + ": cannot write: " +
                                         code.message());
    return Error::success();
  }

  Error keep() {
    if (std::error_code code = sys::fs::rename(name, target))
      return createStringError(code, target + ": cannot write: " +
                                         code.message());
    name.clear();
    return Error::success();
  }

  StringRef path() const { return name; }

private:
  std::string target;
  SmallString<128> name;
  std::unique_ptr<raw_fd_ostream> stream;
};

} // namespace

Error sparkc::writeFileAtomically(StringRef path, StringRef bytes) {
  TemporaryFile file(path);
  if (Error error = file.create())
    return error;
  if (Error error = file.write(bytes))
    return error;
  return file.keep();
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

Error sparkc::linkSharedObject(StringRef object, StringRef path,
                               const LinkOptions &options) {
  TemporaryFile input(path);
  if (Error error = input.create())
    return error;
  if (Error error = input.write(object))
    return error;
  TemporaryFile output(path);
  if (Error error = output.create())
    return error;

  std::string inputPath = input.path().str(), outputPath = output.path().str();
  SmallVector<const char *> arguments = {
      "ld.lld",        "-shared",     "-m",
      "elf_x86_64",    "-z",          "now",
      "-z",            "relro",       "-z",
      "noexecstack",   "-z",          "separate-code",
      "--hash-style=gnu", "--build-id=none", "--threads=1",
      "--no-dependent-libraries",
      options.allowUndefined ? "--unresolved-symbols=ignore-all"
                             : "--no-undefined",
      "-o",            outputPath.c_str(), inputPath.c_str()};

  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  static bool usable = true;
  if (!usable)
    return createStringError(path + ": cannot link: lld has crashed before");
  std::string messages;
  raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(arguments, stream, stream,
                                    {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  if (result.retCode != 0)
    return createStringError(path + ": cannot link: " + summarize(messages));
  return output.keep();
}
