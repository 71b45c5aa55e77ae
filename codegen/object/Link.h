//===- Link.h - Object bytes to a shared object -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_OBJECT_LINK_H
#define SPARKC_CODEGEN_OBJECT_LINK_H

#include "llvm/ADT/StringRef.h"
#include "codegen/output/OutputFile.h"
#include "llvm/Support/Error.h"

namespace sparkc {

struct LinkOptions {
  /// Leave undefined symbols to the loader (sanitizer builds, whose runtime is
  /// in the host); otherwise they are an error.
  bool allowUndefined = false;
};

/// Links the bytes of one relocatable object to the shared object \p path, in
/// this process, with lld. No library is linked in, the symbol table is kept,
/// and the result depends on \p object alone. The file appears under its name
/// when it is complete (an older one stays until then); on failure nothing is
/// left behind. Not to be called by two threads at once for speed: calls wait
/// for each other.
llvm::Error linkSharedObject(llvm::StringRef object, llvm::StringRef path,
                             const LinkOptions &options = {});

/// The same file, which gets its name when it is committed.
llvm::Expected<OutputFile> linkOutput(llvm::StringRef object,
                                      llvm::StringRef path,
                                      const LinkOptions &options = {});

} // namespace sparkc

#endif // SPARKC_CODEGEN_OBJECT_LINK_H
