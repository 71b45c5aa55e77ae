//===- ToyWeights.cpp - Writes the toy's weights file ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/runtime/ToyFiles.h"

#include <filesystem>

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  // Without a tokenizer: the toy's is none.
  sparkc::test::writeFile(
      argv[1], sparkc::test::weightsImage([](sparkc_weights_header &h) {
        h.sections[0].kind = SPARKC_SECTION_CERTIFICATE;
      }));
  return std::filesystem::exists(argv[1]) ? 0 : 1;
}
