//===- OutputFile.cpp - Files that appear when they are complete ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/output/OutputFile.h"

#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include <cerrno>
#include <unistd.h>
#include <utility>

using namespace llvm;
using namespace sparkc;

std::string sparkc::temporaryName(StringRef path, StringRef ending) {
  return formatv("{0}.{1:x-8}{2}", path, sys::Process::GetRandomNumber(),
                 ending);
}

Error OutputFile::failure(int error) const {
  std::error_code code(error, std::generic_category());
  return createStringError(code, path + ": cannot write: " + code.message());
}

Expected<OutputFile> OutputFile::create(StringRef path, unsigned mode) {
  // Renaming would put a plain file in the place of a device.
  if (sys::fs::exists(path) && !sys::fs::is_regular_file(path))
    return createStringError(path + ": cannot write: not a regular file");
  OutputFile file(path);
  for (int tries = 0;; ++tries) {
    std::string name = temporaryName(path, ".tmp");
    std::error_code code =
        sys::fs::openFileForWrite(name, file.descriptor,
                                  sys::fs::CD_CreateNew, sys::fs::OF_None, mode);
    if (code == std::errc::file_exists && tries < 100)
      continue;
    if (code)
      return file.failure(code.value());
    file.temporary = name;
    return file;
  }
}

void OutputFile::removeOnSignal() { sys::RemoveFileOnSignal(temporary); }

OutputFile::OutputFile(OutputFile &&other)
    : path(std::move(other.path)),
      temporary(std::exchange(other.temporary, std::string())),
      descriptor(std::exchange(other.descriptor, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (temporary.empty())
    return;
  sys::fs::remove(temporary);
  sys::DontRemoveFileOnSignal(temporary);
}

Error OutputFile::write(uint64_t offset, ArrayRef<uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t n = sys::RetryAfterSignal(-1, ::pwrite, descriptor, bytes.data(),
                                      bytes.size(), offset);
    if (n <= 0)
      return failure(n < 0 ? errno : ENOSPC);
    offset += n;
    bytes = bytes.drop_front(n);
  }
  return Error::success();
}

Error OutputFile::resize(uint64_t bytes) {
  return sys::RetryAfterSignal(-1, ::ftruncate, descriptor, bytes)
             ? failure(errno)
             : Error::success();
}

Error OutputFile::sync() {
  return ::fsync(descriptor) ? failure(errno) : Error::success();
}

Error OutputFile::commit() {
  if (::close(std::exchange(descriptor, -1)))
    return failure(errno);
  if (std::error_code code = sys::fs::rename(temporary, path))
    return failure(code.value());
  sys::DontRemoveFileOnSignal(temporary);
  temporary.clear();
  return Error::success();
}

Error sparkc::writeFileAtomically(StringRef path, StringRef bytes) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  if (Error error = file->write(0, bytes))
    return error;
  return file->commit();
}
