//===- ImportError.cpp - Errors that name the file ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/ImportError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace sparkc;

static std::string oneLine(llvm::StringRef text) {
  std::string out;
  for (unsigned char c : text) {
    if (c >= 0x20 && c != 0x7f) {
      out += static_cast<char>(c);
      continue;
    }
    out += "\\x";
    out += llvm::hexdigit(c >> 4, /*LowerCase=*/true);
    out += llvm::hexdigit(c & 15, /*LowerCase=*/true);
  }
  return out;
}

llvm::Error sparkc::importError(llvm::StringRef path,
                                const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 oneLine(path) + ": " + oneLine(message.str()));
}

std::string sparkc::quotedName(llvm::StringRef text) {
  constexpr size_t most = 120;
  bool cut = text.size() > most;
  std::string shown = llvm::json::fixUTF8(text.take_front(most));
  return "'" + oneLine(shown) + (cut ? "...'" : "'");
}
