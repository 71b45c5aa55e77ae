//===- Decoder.cpp - Token ids to text, as they come ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Decoder.h"
#include "runtime/text/Utf8.h"

using namespace sparkc;

static const char kReplacement[] = "\xef\xbf\xbd";

void StreamDecoder::add(int32_t id, std::string &out) {
  if (tokenizer.isSpecial(id) && !showSpecial)
    return;
  pending += tokenizer.bytesOf(id);
  drain(out);
}

void StreamDecoder::drain(std::string &out) {
  std::string_view rest = pending;
  while (!rest.empty()) {
    Utf8Step step = stepUtf8(rest);
    if (step.kind == Utf8Step::Incomplete)
      break;
    if (step.kind == Utf8Step::Character)
      out += rest.substr(0, step.bytes);
    else
      out += kReplacement;
    rest.remove_prefix(step.bytes);
  }
  pending.erase(0, pending.size() - rest.size());
}

void StreamDecoder::finish(std::string &out) {
  if (!pending.empty())
    out += kReplacement;
  pending.clear();
}
