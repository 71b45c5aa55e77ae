//===- OutputFile.h - Files that appear when they are complete --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_OBJECT_OUTPUTFILE_H
#define SPARKC_CODEGEN_OBJECT_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sparkc {

/// A complete file under a temporary name in the directory of its own. It gets
/// its name by `commit`, in place of an older file; until then that one stays.
/// Not committed, it is removed. What is there already and is no regular file (a
/// device, a pipe) is refused.
class OutputFile {
public:
  static llvm::Expected<OutputFile> write(llvm::StringRef path,
                                          llvm::StringRef bytes, unsigned mode);
  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();
  llvm::Error commit();
  /// Has a signal that ends the process remove it too. LLVM takes over the
  /// handlers of all such signals for that, SIGILL among them.
  void removeOnSignal();

private:
  OutputFile(llvm::StringRef path) : path(path) {}
  std::string path, temporary;
};

/// Writes \p bytes to \p path: the file appears when it is complete, and not at
/// all on failure.
llvm::Error writeFileAtomically(llvm::StringRef path, llvm::StringRef bytes);

} // namespace sparkc

#endif // SPARKC_CODEGEN_OBJECT_OUTPUTFILE_H
