//===- Utf8.cpp - Reading and repairing UTF-8 -----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Utf8.h"

using namespace sparkc;

static unsigned char byteAt(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

Utf8Step sparkc::stepUtf8(std::string_view text) {
  unsigned char lead = byteAt(text, 0);
  if (lead < 0x80)
    return {Utf8Step::Character, 1};
  // The range of the second byte carries all the rules against overlong
  // forms, surrogates and values above U+10FFFF.
  unsigned length;
  unsigned char low = 0x80, high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0)
      low = 0xa0;
    if (lead == 0xed)
      high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0)
      low = 0x90;
    if (lead == 0xf4)
      high = 0x8f;
  } else {
    return {Utf8Step::Invalid, 1};
  }
  for (unsigned i = 1; i < length; ++i) {
    if (i == text.size())
      return {Utf8Step::Incomplete, i};
    unsigned char byte = byteAt(text, i);
    if (byte < low || byte > high)
      return {Utf8Step::Invalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Step::Character, length};
}

void sparkc::appendUtf8(std::string &out, uint32_t codePoint) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (codePoint < 0x80) {
    put(codePoint);
  } else if (codePoint < 0x800) {
    put(0xc0 | codePoint >> 6);
    put(0x80 | (codePoint & 0x3f));
  } else if (codePoint < 0x10000) {
    put(0xe0 | codePoint >> 12);
    put(0x80 | (codePoint >> 6 & 0x3f));
    put(0x80 | (codePoint & 0x3f));
  } else {
    put(0xf0 | codePoint >> 18);
    put(0x80 | (codePoint >> 12 & 0x3f));
    put(0x80 | (codePoint >> 6 & 0x3f));
    put(0x80 | (codePoint & 0x3f));
  }
}

bool sparkc::isUtf8(std::string_view text) {
  while (!text.empty()) {
    Utf8Step step = stepUtf8(text);
    if (step.kind != Utf8Step::Character)
      return false;
    text.remove_prefix(step.bytes);
  }
  return true;
}

bool sparkc::isWhiteSpace(std::string_view character) {
  if (character.size() == 1)
    return character == " " || (character[0] >= '\t' && character[0] <= '\r');
  static const char *const kOthers[] = {
      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
      "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
      "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  for (const char *other : kOthers)
    if (character == other)
      return true;
  return false;
}

/// Reads a character by the shape of its bytes alone. Returns its length, or 0
/// if the bytes have no such shape.
static unsigned readLeniently(std::string_view text, uint32_t &codePoint) {
  unsigned char lead = byteAt(text, 0);
  if (lead < 0x80) {
    codePoint = lead;
    return 1;
  }
  unsigned length = lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 0 || lead >= 0xf8 || length > text.size())
    return 0;
  codePoint = lead & (0x7fu >> length);
  for (unsigned i = 1; i < length; ++i) {
    if ((byteAt(text, i) & 0xc0) != 0x80)
      return 0;
    codePoint = codePoint << 6 | (byteAt(text, i) & 0x3f);
  }
  return codePoint > 0x10ffff ? 0 : length;
}

RepairedUtf8 sparkc::repairUtf8(std::string_view bytes) {
  RepairedUtf8 out;
  out.text.reserve(bytes.size() + 16);
  out.view.reserve(bytes.size() + 16);
  while (!bytes.empty()) {
    uint32_t codePoint;
    unsigned length = readLeniently(bytes, codePoint);
    if (length == 0) {
      codePoint = 0xfffd;
      length = 1;
    }
    bool surrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
    appendUtf8(out.text, codePoint);
    appendUtf8(out.view, surrogate ? 0xe000 : codePoint);
    bytes.remove_prefix(length);
  }
  return out;
}
