//===- TileCodes.cpp - The codes of a tile, in and out of lines -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/TileCodes.h"
#include "codegen/weights/Half.h"
#include "llvm/Support/ErrorHandling.h"
#include <cassert>
#include <cstring>

namespace sparkc {

TileCodes::TileCodes(const PackedMatrix &m) : codes(m.paddedCols() * kTileRows) {
  ScaleForm form = scaleForm(m.layout);
  size_t ofGroups = m.groups() * kTileRows;
  size_t ofScales = isSuper(form) ? m.batches() * kTileRows : ofGroups;
  scales.resize(ofScales);
  if (isPlain(form))
    zeros.resize(ofGroups, form == ScaleForm::Zero ? 0 : middleCode(m.layout));
  if (hasMinimum(form))
    minima.resize(ofScales);
  if (isSuper(form))
    subScales.resize(ofGroups);
  if (form == ScaleForm::SuperMinimum)
    subMinima.resize(ofGroups);
}

float TileCodes::value(const PackedMatrix &m, int64_t lane,
                       int64_t col) const {
  int64_t g = col / m.group, at = kTileRows * g + lane;
  int64_t batch = kTileRows * (g / m.batchGroups()) + lane;
  int code = codes[kTileRows * col + lane];
  switch (scaleForm(m.layout)) {
  case ScaleForm::Zero:
  case ScaleForm::Symmetric:
    return floatFromF16(scales[at]) * static_cast<float>(code - zeros[at]);
  case ScaleForm::Minimum:
    return floatFromF16(scales[at]) * static_cast<float>(code) +
           floatFromF16(minima[at]);
  case ScaleForm::SuperMinimum:
    return floatFromF16(scales[batch]) * subScales[at] *
               static_cast<float>(code) +
           floatFromF16(minima[batch]) * subMinima[at];
  case ScaleForm::Super:
    return floatFromF16(scales[batch]) * static_cast<int8_t>(subScales[at]) *
           static_cast<float>(code - middleCode(m.layout));
  }
  llvm_unreachable("unknown form");
}

static uint32_t load32(const uint8_t *p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
static void store32(uint8_t *p, uint32_t v) { std::memcpy(p, &v, 4); }

/// Codes of columns c .. c+3 of a lane, a byte each.
static uint32_t gather4(const uint8_t *codes, int64_t lane) {
  return codes[lane] | uint32_t(codes[kTileRows + lane]) << 8 |
         uint32_t(codes[2 * kTileRows + lane]) << 16 |
         uint32_t(codes[3 * kTileRows + lane]) << 24;
}
static void scatter4(uint8_t *codes, int64_t lane, uint32_t v) {
  for (int i = 0; i < 4; ++i)
    codes[kTileRows * i + lane] = v >> (8 * i);
}

/// Shape of the code lines of a group: blocks of `perBlock` code lines, each
/// block with a plane line in front if there are extra bits.
struct Blocks {
  explicit Blocks(const PackedMatrix &m)
      : extra(bitsPerWeight(m.layout) - 4), perBlock(extra ? 4 / extra : 1),
        count(m.group / (8 * perBlock)),
        bytes(kLineBytes * (perBlock + (extra ? 1 : 0))),
        firstLine(extra ? kLineBytes : 0), mask(extra * 0x01010101u) {
    if (extra == 2)
      mask = 0x03030303u;
  }
  int extra, perBlock;
  int64_t count, bytes, firstLine;
  uint32_t mask;
};

namespace {
/// A piece of a batch head, and where TileCodes has it.
struct Part {
  int64_t offset;
  void *data;
  int64_t bytes;
};
} // namespace

static std::vector<Part> headParts(const PackedMatrix &m, TileCodes &codes) {
  std::vector<Part> parts;
  ScaleForm form = scaleForm(m.layout);
  constexpr int64_t halves = 2 * kTileRows;
  if (isSuper(form))
    for (int64_t b = 0; b < m.batches(); ++b) {
      int64_t head = m.headOffset(b * m.batchGroups());
      parts.push_back({head, &codes.scales[b * kTileRows], halves});
      if (hasMinimum(form))
        parts.push_back({head + kHeadSuperMinimum, &codes.minima[b * kTileRows],
                         halves});
    }
  for (int64_t g = 0; g < m.groups(); ++g) {
    int64_t at = g * kTileRows;
    if (isSuper(form))
      parts.push_back({m.groupScaleOffset(g), &codes.subScales[at], kTileRows});
    else
      parts.push_back({m.groupScaleOffset(g), &codes.scales[at], halves});
    switch (form) {
    case ScaleForm::Zero:
      parts.push_back({m.groupZeroOffset(g), &codes.zeros[at], kTileRows});
      break;
    case ScaleForm::Minimum:
      parts.push_back({m.groupZeroOffset(g), &codes.minima[at], halves});
      break;
    case ScaleForm::SuperMinimum:
      parts.push_back({m.groupZeroOffset(g), &codes.subMinima[at], kTileRows});
      break;
    case ScaleForm::Super:
    case ScaleForm::Symmetric:
      break;
    }
  }
  return parts;
}

void packCodes(const PackedMatrix &m, const TileCodes &in, uint8_t *tile) {
  assert(isQuantized(m.layout));
  std::memset(tile, 0, m.tileBytes());
  for (const Part &part : headParts(m, const_cast<TileCodes &>(in)))
    std::memcpy(tile + part.offset, part.data, part.bytes);
  bool bytesOnly = bitsPerWeight(m.layout) == 8;
  for (int64_t g = 0; g < m.groups(); ++g) {
    const uint8_t *codes = &in.codes[kTileRows * m.group * g];
    uint8_t *out = tile + m.groupLineOffset(g);
    if (bytesOnly) {
      for (int64_t n = 0; n < m.groupLines(); ++n)
        for (int64_t l = 0; l < kTileRows; ++l)
          store32(out + kLineBytes * n + 4 * l,
                  gather4(codes + 4 * kTileRows * n, l));
      continue;
    }
    const Blocks blocks(m);
    for (int64_t b = 0; b < blocks.count; ++b, out += blocks.bytes)
      for (int i = 0; i < blocks.perBlock; ++i, codes += 8 * kTileRows) {
        uint8_t *line = out + blocks.firstLine + kLineBytes * i;
        for (int64_t l = 0; l < kTileRows; ++l) {
          uint32_t low = gather4(codes, l),
                   high = gather4(codes + 4 * kTileRows, l);
          store32(line + 4 * l, (low & 0x0f0f0f0f) | (high & 0x0f0f0f0f) << 4);
          if (!blocks.extra)
            continue;
          uint32_t plane = ((low >> 4) & blocks.mask) << (blocks.extra * i) |
                           ((high >> 4) & blocks.mask)
                               << (4 + blocks.extra * i);
          store32(out + 4 * l, load32(out + 4 * l) | plane);
        }
      }
  }
}

void unpackCodes(const PackedMatrix &m, const uint8_t *tile, TileCodes &out) {
  assert(isQuantized(m.layout));
  for (const Part &part : headParts(m, out))
    std::memcpy(part.data, tile + part.offset, part.bytes);
  bool bytesOnly = bitsPerWeight(m.layout) == 8;
  for (int64_t g = 0; g < m.groups(); ++g) {
    uint8_t *codes = &out.codes[kTileRows * m.group * g];
    const uint8_t *in = tile + m.groupLineOffset(g);
    if (bytesOnly) {
      for (int64_t n = 0; n < m.groupLines(); ++n)
        for (int64_t l = 0; l < kTileRows; ++l)
          scatter4(codes + 4 * kTileRows * n, l,
                   load32(in + kLineBytes * n + 4 * l));
      continue;
    }
    const Blocks blocks(m);
    for (int64_t b = 0; b < blocks.count; ++b, in += blocks.bytes)
      for (int i = 0; i < blocks.perBlock; ++i, codes += 8 * kTileRows) {
        const uint8_t *line = in + blocks.firstLine + kLineBytes * i;
        for (int64_t l = 0; l < kTileRows; ++l) {
          uint32_t v = load32(line + 4 * l), low = v & 0x0f0f0f0f,
                   high = (v >> 4) & 0x0f0f0f0f;
          if (blocks.extra) {
            uint32_t plane = load32(in + 4 * l) >> (blocks.extra * i);
            low |= (plane & blocks.mask) << 4;
            high |= ((plane >> 4) & blocks.mask) << 4;
          }
          scatter4(codes, l, low);
          scatter4(codes + 4 * kTileRows, l, high);
        }
      }
  }
}

} // namespace sparkc
