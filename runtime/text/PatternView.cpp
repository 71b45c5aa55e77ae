//===- PatternView.cpp - What patterns see of a text ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/PatternView.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <iterator>

using namespace sparkc;

namespace {
struct NewerRange {
  uint32_t first, last;
  char kind; ///< first letter of the category
};
} // namespace

static constexpr NewerRange kNewer[] = {
#include "runtime/text/NewerCharacters.inc"
};

/// A character of a kind that Unicode has had since long: of three bytes, or
/// of four. (The letter is no ideograph: patterns name those by their range.)
static uint32_t olderOf(char kind, unsigned bytes) {
  switch (kind) {
  case 'L':
    return bytes == 3 ? 0xac00 : 0x10000;
  case 'M':
    return bytes == 3 ? 0x20d0 : 0x1d167;
  case 'N':
    return bytes == 3 ? 0x2460 : 0x10107;
  case 'P':
    return bytes == 3 ? 0x2010 : 0x10100;
  default:
    return bytes == 3 ? 0x2190 : 0x1f600;
  }
}

std::string_view sparkc::patternView(std::string_view text, std::string &view) {
  bool differs = false;
  for (size_t at = 0; at < text.size();) {
    auto byte = [&](size_t i) {
      return static_cast<unsigned char>(text[at + i]);
    };
    // None of the newer characters takes one byte or two.
    if (byte(0) < 0xe0) {
      ++at;
      continue;
    }
    const unsigned bytes = byte(0) < 0xf0 ? 3 : 4;
    uint32_t c = byte(0) & (0x7fu >> bytes);
    for (unsigned i = 1; i < bytes; ++i)
      c = c << 6 | (byte(i) & 0x3f);
    auto range = std::lower_bound(
        std::begin(kNewer), std::end(kNewer), c,
        [](const NewerRange &r, uint32_t value) { return r.last < value; });
    if (range != std::end(kNewer) && c >= range->first) {
      if (!differs)
        view = text;
      differs = true;
      std::string older;
      appendUtf8(older, olderOf(range->kind, bytes));
      view.replace(at, bytes, older);
    }
    at += bytes;
  }
  return differs ? std::string_view(view) : text;
}
