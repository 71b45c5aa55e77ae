//===- OutputFile.h - Files that appear when they are complete --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_OUTPUT_OUTPUTFILE_H
#define SPARKC_CODEGEN_OUTPUT_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace sparkc {

/// A file under a temporary name in the directory of its own. It gets its name
/// by `commit`, in place of an older file; until then that one stays. Not
/// committed, it is removed. Every error names the file it is to become.
class OutputFile {
public:
  /// Empty as yet, for writing and with permissions `mode` (less the umask).
  /// What is there already and is no regular file (a device, a pipe) is refused.
  static llvm::Expected<OutputFile> create(llvm::StringRef path,
                                           unsigned mode = 0666);
  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  /// Has a signal that ends the process remove it too. LLVM takes over the
  /// handlers of all such signals for that, SIGILL among them.
  void removeOnSignal();
  /// Several threads may write at once.
  llvm::Error write(uint64_t offset, llvm::ArrayRef<uint8_t> bytes);
  llvm::Error write(uint64_t offset, llvm::StringRef bytes) {
    return write(offset, {bytes.bytes_begin(), bytes.size()});
  }
  /// `bytes` of zeros where nothing has been written.
  llvm::Error resize(uint64_t bytes);
  /// Forces what has been written to the disk.
  llvm::Error sync();
  llvm::Error commit();

private:
  OutputFile(llvm::StringRef path) : path(path) {}
  llvm::Error failure(int error) const;
  std::string path, temporary;
  int descriptor = -1;
};

/// \p path, a dot, random digits and \p ending: likely no file's name. (LLVM's
/// own would fill in the percent signs of \p path as well.)
std::string temporaryName(llvm::StringRef path, llvm::StringRef ending);

/// Writes \p bytes to \p path: the file appears when it is complete, and not at
/// all on failure.
llvm::Error writeFileAtomically(llvm::StringRef path, llvm::StringRef bytes);

} // namespace sparkc

#endif // SPARKC_CODEGEN_OUTPUT_OUTPUTFILE_H
