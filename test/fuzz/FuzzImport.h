//===- FuzzImport.h - What the fuzz targets of readers require --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_FUZZ_FUZZIMPORT_H
#define SPARKC_TEST_FUZZ_FUZZIMPORT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdio>
#include <cstdlib>

namespace sparkc::fuzz {

/// Stops the fuzzer with a reason.
inline void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// Every error is one line that starts with the file.
inline void checkError(llvm::Error error, llvm::StringRef path) {
  std::string message = llvm::toString(std::move(error));
  require(llvm::StringRef(message).starts_with((path + ": ").str()),
          "an error names its file");
  for (unsigned char c : message)
    require(c >= 0x20 && c != 0x7f, "an error is one line");
}

} // namespace sparkc::fuzz

#endif // SPARKC_TEST_FUZZ_FUZZIMPORT_H
