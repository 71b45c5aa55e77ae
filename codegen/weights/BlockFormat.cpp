//===- BlockFormat.cpp - GGUF's blocks of quantized weights ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/Half.h"
#include <cassert>
#include <cstring>

using namespace sparkc;

static uint16_t load16(const uint8_t *p) { return p[0] | p[1] << 8; }
static void store16(uint8_t *p, uint16_t v) {
  p[0] = v & 0xff;
  p[1] = v >> 8;
}

/// GGUF subtracts what it calls the minimum of a K-block; we add it.
static uint16_t negated(uint16_t half) { return half ^ 0x8000; }

//===----------------------------------------------------------------------===//
// Blocks of 32
//===----------------------------------------------------------------------===//

static void readNibbles(const uint8_t *in, uint8_t *codes) {
  for (int j = 0; j < 16; ++j) {
    codes[j] = in[j] & 15;
    codes[j + 16] = in[j] >> 4;
  }
}

static void writeNibbles(const uint8_t *codes, uint8_t *out) {
  for (int j = 0; j < 16; ++j)
    out[j] = (codes[j] & 15) | (codes[j + 16] & 15) << 4;
}

static void readFifthBits(const uint8_t *in, uint8_t *codes) {
  for (int j = 0; j < 32; ++j)
    codes[j] |= (in[j / 8] >> (j % 8) & 1) << 4;
}

static void writeFifthBits(const uint8_t *codes, uint8_t *out) {
  std::memset(out, 0, 4);
  for (int j = 0; j < 32; ++j)
    out[j / 8] |= (codes[j] >> 4 & 1) << (j % 8);
}

/// Q4_0, Q4_1, Q5_0, Q5_1: scale, minimum, fifth bits, nibbles.
template <bool minimum, bool fifth>
static void readLegacy(const uint8_t *in, BlockCodes &out) {
  out.scale = load16(in);
  out.zero = fifth ? 16 : 8; // where there is no minimum
  in += 2;
  if (minimum) {
    out.minimum = load16(in);
    in += 2;
  }
  readNibbles(in + (fifth ? 4 : 0), out.codes);
  if (fifth)
    readFifthBits(in, out.codes);
}

template <bool minimum, bool fifth>
static void writeLegacy(const BlockCodes &in, uint8_t *out) {
  store16(out, in.scale);
  out += 2;
  if (minimum) {
    store16(out, in.minimum);
    out += 2;
  }
  if (fifth)
    writeFifthBits(in.codes, out);
  writeNibbles(in.codes, out + (fifth ? 4 : 0));
}

static void readQ8(const uint8_t *in, BlockCodes &out) {
  out.scale = load16(in);
  out.zero = 128;
  for (int j = 0; j < 32; ++j)
    out.codes[j] = in[2 + j] ^ 0x80; // int8 + 128
}

static void writeQ8(const BlockCodes &in, uint8_t *out) {
  store16(out, in.scale);
  for (int j = 0; j < 32; ++j)
    out[2 + j] = in.codes[j] ^ 0x80;
}

//===----------------------------------------------------------------------===//
// Blocks of 256
//===----------------------------------------------------------------------===//

static void readSixBits(const uint8_t *in, BlockCodes &out) {
  for (int i = 0; i < 4; ++i) {
    out.subScales[i] = in[i] & 63;
    out.subMinima[i] = in[4 + i] & 63;
    out.subScales[4 + i] = (in[8 + i] & 15) | (in[i] >> 6) << 4;
    out.subMinima[4 + i] = in[8 + i] >> 4 | (in[4 + i] >> 6) << 4;
  }
}

static void writeSixBits(const BlockCodes &in, uint8_t *out) {
  for (int i = 0; i < 4; ++i) {
    uint8_t u = in.subScales[4 + i], v = in.subMinima[4 + i];
    out[i] = (in.subScales[i] & 63) | (u >> 4) << 6;
    out[4 + i] = (in.subMinima[i] & 63) | (v >> 4) << 6;
    out[8 + i] = (u & 15) | (v & 15) << 4;
  }
}

/// Q4_K and Q5_K: d, e, 6-bit values, fifth bits, nibbles.
template <bool fifth>
static void readK(const uint8_t *in, BlockCodes &out) {
  out.scale = load16(in);
  out.minimum = negated(load16(in + 2));
  readSixBits(in + 4, out);
  const uint8_t *high = in + 16, *low = fifth ? high + 32 : high;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 32; ++j) {
      out.codes[64 * i + j] = low[32 * i + j] & 15;
      out.codes[64 * i + 32 + j] = low[32 * i + j] >> 4;
    }
  if (fifth)
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 32; ++j)
        out.codes[32 * i + j] |= (high[j] >> i & 1) << 4;
}

template <bool fifth>
static void writeK(const BlockCodes &in, uint8_t *out) {
  store16(out, in.scale);
  store16(out + 2, negated(in.minimum));
  writeSixBits(in, out + 4);
  uint8_t *high = out + 16, *low = fifth ? high + 32 : high;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 32; ++j)
      low[32 * i + j] = (in.codes[64 * i + j] & 15) |
                        (in.codes[64 * i + 32 + j] & 15) << 4;
  if (!fifth)
    return;
  std::memset(high, 0, 32);
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 32; ++j)
      high[j] |= (in.codes[32 * i + j] >> 4 & 1) << i;
}

static void readQ6K(const uint8_t *in, BlockCodes &out) {
  const uint8_t *low = in, *high = in + 128;
  for (int h = 0; h < 2; ++h, low += 64, high += 32) {
    uint8_t *codes = out.codes + 128 * h;
    for (int j = 0; j < 64; ++j) {
      codes[j] = low[j] & 15;
      codes[64 + j] = low[j] >> 4;
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 32; ++j)
        codes[32 * i + j] |= (high[j] >> (2 * i) & 3) << 4;
  }
  std::memcpy(out.subScales, in + 192, 16);
  out.scale = load16(in + 208);
}

static void writeQ6K(const BlockCodes &in, uint8_t *out) {
  std::memset(out, 0, 192);
  uint8_t *low = out, *high = out + 128;
  for (int h = 0; h < 2; ++h, low += 64, high += 32) {
    const uint8_t *codes = in.codes + 128 * h;
    for (int j = 0; j < 64; ++j)
      low[j] = (codes[j] & 15) | (codes[64 + j] & 15) << 4;
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 32; ++j)
        high[j] |= (codes[32 * i + j] >> 4) << (2 * i);
  }
  std::memcpy(out + 192, in.subScales, 16);
  store16(out + 208, in.scale);
}

//===----------------------------------------------------------------------===//
// Our own
//===----------------------------------------------------------------------===//

template <int group>
static void readCodes(const uint8_t *in, BlockCodes &out) {
  out.scale = load16(in);
  out.zero = in[2];
  std::memcpy(out.codes, in + 3, group);
}

template <int group>
static void writeCodes(const BlockCodes &in, uint8_t *out) {
  store16(out, in.scale);
  out[2] = in.zero;
  std::memcpy(out + 3, in.codes, group);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static constexpr GridSpec kMin4{4, 32, false, ScaleForm::Minimum},
    kMin5{5, 32, false, ScaleForm::Minimum},
    kSuper4{4, 32, false, ScaleForm::SuperMinimum},
    kSuper5{5, 32, false, ScaleForm::SuperMinimum},
    kSuper6{6, 16, false, ScaleForm::Super};

#define CODES(bits, group)                                                     \
  {SourceType::C##bits##_##group, "C" #bits "_" #group, 0, group, group + 3,    \
   {bits, group}, readCodes<group>, writeCodes<group>}
#define CODES_OF(bits) CODES(bits, 32), CODES(bits, 64), CODES(bits, 128)

static constexpr BlockFormat formats[] = {
    {SourceType::Q4_0, "Q4_0", 2, 32, 18, {4, 32, true},
     readLegacy<false, false>, writeLegacy<false, false>},
    {SourceType::Q4_1, "Q4_1", 3, 32, 20, kMin4, readLegacy<true, false>,
     writeLegacy<true, false>},
    {SourceType::Q5_0, "Q5_0", 6, 32, 22, {5, 32, true},
     readLegacy<false, true>, writeLegacy<false, true>},
    {SourceType::Q5_1, "Q5_1", 7, 32, 24, kMin5, readLegacy<true, true>,
     writeLegacy<true, true>},
    {SourceType::Q8_0, "Q8_0", 8, 32, 34, {8, 32, true}, readQ8, writeQ8},
    {SourceType::Q4_K, "Q4_K", 12, 256, 144, kSuper4, readK<false>,
     writeK<false>},
    {SourceType::Q5_K, "Q5_K", 13, 256, 176, kSuper5, readK<true>,
     writeK<true>},
    {SourceType::Q6_K, "Q6_K", 14, 256, 210, kSuper6, readQ6K, writeQ6K},
    CODES_OF(4),
    CODES_OF(5),
    CODES_OF(6),
    CODES_OF(8),
};

const BlockFormat *sparkc::blockFormat(SourceType type) {
  for (const BlockFormat &format : formats)
    if (format.type == type)
      return &format;
  return nullptr;
}

const BlockFormat *sparkc::blockFormat(llvm::StringRef name) {
  for (const BlockFormat &format : formats)
    if (name == format.name)
      return &format;
  return nullptr;
}

const BlockFormat *sparkc::blockFormatOf(const GridSpec &grid) {
  for (const BlockFormat &format : formats)
    if (!format.hasZero() && format.grid == grid)
      return &format;
  return nullptr;
}

const BlockFormat &sparkc::codeFormatOf(const GridSpec &grid) {
  for (const BlockFormat &format : formats)
    if (format.hasZero() && format.grid.bits == grid.bits &&
        format.grid.group == grid.group)
      return format;
  llvm_unreachable("no format for these codes");
}

float BlockFormat::value(const BlockCodes &b, int64_t col) const {
  float scale = floatFromF16(b.scale);
  int code = b.codes[col], half = 1 << (grid.bits - 1);
  switch (grid.form) {
  case ScaleForm::Zero:
  case ScaleForm::Symmetric:
    return scale * static_cast<float>(code - b.zero);
  case ScaleForm::Minimum:
    return scale * static_cast<float>(code) + floatFromF16(b.minimum);
  case ScaleForm::SuperMinimum: {
    int64_t g = col / grid.group;
    return scale * b.subScales[g] * static_cast<float>(code) +
           floatFromF16(b.minimum) * b.subMinima[g];
  }
  case ScaleForm::Super:
    return scale * static_cast<int8_t>(b.subScales[col / grid.group]) *
           static_cast<float>(code - half);
  }
  llvm_unreachable("unknown form");
}
