//===- Certificate.h - What a build is worth, measured ----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_CERTIFICATE_H
#define SPARKC_TOOLS_SPARKC_CERTIFICATE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace sparkc {

struct CertifyOptions {
  std::string text;    ///< a text, or token ids
  int64_t windows = 0; ///< at most so many, of 512 tokens; 0: all
  std::optional<double> maxKl;
  bool quiet = false;
};

/// The figures of sparkc-eval (its keys), and: "text" (the file's name),
/// "text_digest" and "weights_digest" (XXH3-128, hex), "compiler", and
/// "summary", one line for people.
struct Certificate {
  llvm::json::Object figures;
  std::string summary() const;
};

/// Evaluates the build `model` (a .so with its .weights beside it) against the
/// unquantized build `reference`. A mean KL above maxKl is an error.
llvm::Expected<Certificate> certify(const std::string &model,
                                    const std::string &reference,
                                    const CertifyOptions &options);

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_CERTIFICATE_H
