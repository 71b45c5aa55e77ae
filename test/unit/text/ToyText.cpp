//===- ToyText.cpp - The toy model with a tokenizer -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/ToyText.h"

#include "runtime/Hash.h"

using namespace sparkc;
using namespace sparkc::test;

Sections sparkc::test::sparkTinySections() {
  const std::string folder = SPARKC_SOURCE_DIR "/examples/spark-tiny/";
  return {{SPARKC_SECTION_TOKENIZER, readFile(folder + "tokenizer.json")},
          {SPARKC_SECTION_TOKENIZER_CONFIG,
           readFile(folder + "tokenizer_config.json")},
          {SPARKC_SECTION_GENERATION_CONFIG,
           readFile(folder + "generation_config.json")}};
}

std::string sparkc::test::writeToyText(const TempDir &dir,
                                       const Sections &sections,
                                       uint32_t vocab) {
  std::string tail;
  std::string image = weightsImage([&](sparkc_weights_header &head) {
    // The payload stays; its tokenizer is replaced by the sections, which
    // stand behind it.
    const sparkc_section payload = head.sections[1];
    const uint64_t end = head.file_bytes;
    head.sections[0] = payload;
    head.n_sections = 1;
    for (const auto &[kind, bytes] : sections) {
      head.sections[head.n_sections++] = {kind, 0, end + tail.size(),
                                          bytes.size(),
                                          hash64(bytes.data(), bytes.size())};
      tail += bytes;
      tail.resize((tail.size() + 63) / 64 * 64);
    }
    head.file_bytes = end + tail.size();
  });
  return writePair(dir,
                   objectImage([&](sparkc_descriptor &d) { d.vocab = vocab; }),
                   image + tail);
}
