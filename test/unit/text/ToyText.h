//===- ToyText.h - The toy model with a tokenizer ---------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_TEXT_TOYTEXT_H
#define SPARKC_TEST_UNIT_TEXT_TOYTEXT_H

#include "test/unit/runtime/ToyFiles.h"

#include <map>
#include <string>

namespace sparkc::test {

/// Sections of a weights file: kind to bytes.
using Sections = std::map<uint32_t, std::string>;

/// The three files of examples/spark-tiny.
Sections sparkTinySections();

/// Writes the hand-written model with these sections; returns its path. It
/// says it has the vocabulary of spark-tiny, and leaves most logits alone.
std::string writeToyText(const TempDir &dir, const Sections &sections,
                         uint32_t vocab = 4096);

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_TEXT_TOYTEXT_H
