//===- TokenizerParts.h - The small parts of tokenizer.json -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_TOKENIZERPARTS_H
#define SPARKC_RUNTIME_TEXT_TOKENIZERPARTS_H

#include "runtime/text/Json.h"
#include "runtime/text/TokenizerSpec.h"

namespace sparkc {

/// Reads all of a tokenizer.json but the vocabulary and the merges, which
/// `root` does not hold; see readTokenizerJson.
bool readTokenizerParts(const Json &root, TokenizerSpec &spec,
                        std::string &error);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_TOKENIZERPARTS_H
