//===- OutputFile.cpp - Files that appear when they are complete ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/OutputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <utility>

using namespace llvm;
using namespace sparkc;

static Error writeError(StringRef path, std::error_code code) {
  return createStringError(code, path + ": cannot write: " + code.message());
}

Expected<OutputFile> OutputFile::write(StringRef path, StringRef bytes,
                                       unsigned mode) {
  // Renaming would put a plain file in the place of a device.
  if (sys::fs::exists(path) && !sys::fs::is_regular_file(path))
    return createStringError(path + ": cannot write: not a regular file");
  OutputFile file(path);
  int descriptor;
  SmallString<128> name;
  if (std::error_code code =
          sys::fs::createUniqueFile(path + ".%%%%%%%%.tmp", descriptor, name,
                                    sys::fs::OF_None, mode))
    return writeError(path, code);
  file.temporary = name.str().str();
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << bytes;
  stream.close();
  std::error_code code = stream.error();
  stream.clear_error();
  if (code)
    return writeError(path, code);
  return file;
}

void OutputFile::removeOnSignal() { sys::RemoveFileOnSignal(temporary); }

OutputFile::OutputFile(OutputFile &&other)
    : path(std::move(other.path)),
      temporary(std::exchange(other.temporary, std::string())) {}

OutputFile::~OutputFile() {
  if (temporary.empty())
    return;
  sys::fs::remove(temporary);
  sys::DontRemoveFileOnSignal(temporary);
}

Error OutputFile::commit() {
  if (std::error_code code = sys::fs::rename(temporary, path))
    return writeError(path, code);
  sys::DontRemoveFileOnSignal(temporary);
  temporary.clear();
  return Error::success();
}

Error sparkc::writeFileAtomically(StringRef path, StringRef bytes) {
  auto file = OutputFile::write(path, bytes,
                                sys::fs::all_read | sys::fs::all_write);
  return file ? file->commit() : file.takeError();
}
