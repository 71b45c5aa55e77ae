//===- CalibrationText.h - The tokens to calibrate on -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_CALIBRATIONTEXT_H
#define SPARKC_TOOLS_SPARKC_CALIBRATIONTEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sparkc {

/// Windows of tokens, each of `length`, one after the other.
struct TokenWindows {
  std::vector<int32_t> tokens;
  int64_t length = 0;
  int64_t count() const { return int64_t(tokens.size()) / length; }
  llvm::ArrayRef<int32_t> window(int64_t i) const {
    return llvm::ArrayRef(tokens).slice(i * length, length);
  }
};

/// Whether a file's bytes are token ids rather than a text.
bool holdsTokens(llvm::StringRef bytes);

/// Reads `path`: token ids separated by white space, or else a text, which the
/// module's tokenizer reads as sparkc-eval's does (markup is text; a BOS that
/// the tokenizer's config asks for replaces the first token of each window).
/// At most `count` windows of `length` tokens are taken, spread evenly. Errors
/// are one line: a text shorter than a window, a token outside of `vocab`, no
/// tokenizer.
llvm::Expected<TokenWindows> readWindows(mlir::ModuleOp module,
                                         const std::string &path, int64_t vocab,
                                         int64_t length, int64_t count);

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_CALIBRATIONTEXT_H
