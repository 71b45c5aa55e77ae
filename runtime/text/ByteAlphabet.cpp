//===- ByteAlphabet.cpp - How byte-level BPE spells bytes -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/Utf8.h"

#include <array>

using namespace sparkc;

namespace {
struct Alphabet {
  std::array<uint16_t, 256> character; ///< of each byte
  std::array<int16_t, 0x144> byte;     ///< of each character, or -1
};
} // namespace

static bool standsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
         byte >= 0xae;
}

static const Alphabet &alphabet() {
  static const Alphabet table = [] {
    Alphabet a;
    a.byte.fill(-1);
    uint16_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      uint16_t character =
          standsForItself(byte) ? static_cast<uint16_t>(byte) : next++;
      a.character[byte] = character;
      a.byte[character] = static_cast<int16_t>(byte);
    }
    return a;
  }();
  return table;
}

std::string sparkc::spellByte(uint8_t byte) {
  std::string out;
  appendUtf8(out, alphabet().character[byte]);
  return out;
}

void sparkc::appendSpelledBytes(std::string &out, std::string_view spelling) {
  const Alphabet &table = alphabet();
  const std::string_view whole = spelling;
  const size_t before = out.size();
  while (!spelling.empty()) {
    // The alphabet ends at U+0143: one byte, or two that begin with C2..C5.
    auto lead = static_cast<unsigned char>(spelling[0]);
    unsigned character = lead, length = 1;
    if (lead >= 0x80) {
      bool fits = lead >= 0xc2 && lead <= 0xc5 && spelling.size() > 1;
      character = fits ? (lead & 0x1fu) << 6 | (spelling[1] & 0x3fu) : ~0u;
      length = 2;
    }
    if (character >= table.byte.size() || table.byte[character] < 0) {
      out.resize(before);
      out.append(whole);
      return;
    }
    out.push_back(static_cast<char>(table.byte[character]));
    spelling.remove_prefix(length);
  }
}
