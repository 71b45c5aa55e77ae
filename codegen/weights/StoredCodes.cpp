//===- StoredCodes.cpp - Blocks of any source of codes --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of GGUF follow each other in a row. Those of AWQ and GPTQ are the
// groups of a row, gathered from three tensors that hold the transpose of the
// matrix: dialect/import/StoredCodes.h has their layouts.
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/BlockFormat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"

using namespace sparkc;

/// A group of 4-bit codes with a zero point; gathered, so without functions.
static constexpr BlockFormat groups[] = {
    {SourceType::AWQ4, "", 0, 32, 0, {4, 32, false}, nullptr, nullptr},
    {SourceType::AWQ4, "", 0, 64, 0, {4, 64, false}, nullptr, nullptr},
    {SourceType::AWQ4, "", 0, 128, 0, {4, 128, false}, nullptr, nullptr},
};

bool sparkc::isTransposed(SourceType type) {
  return type == SourceType::AWQ4 || type == SourceType::GPTQ4 ||
         type == SourceType::GPTQ4_V2;
}

const BlockFormat *sparkc::blockFormat(const SourceMatrix &source) {
  if (!isTransposed(source.type))
    return blockFormat(source.type);
  return llvm::find_if(groups, [&](const BlockFormat &format) {
    return format.block == source.group;
  });
}

/// Code `at` of a word.
static uint8_t nibble(const uint8_t *words, int64_t word, int64_t at) {
  return llvm::support::endian::read32le(words + 4 * word) >> (4 * at) & 15;
}

/// Where in its word AWQ has row i of eight.
static constexpr int64_t awqOrder[] = {0, 4, 1, 5, 2, 6, 3, 7};

static void gatherGroup(const SourceMatrix &source, int64_t row, int64_t group,
                        BlockCodes &out) {
  const int64_t rows = source.rows, first = group * source.group;
  const bool awq = source.type == SourceType::AWQ4;
  const int64_t place = awq ? awqOrder[row % 8] : row % 8;
  for (int64_t i = 0; i < source.group; ++i) {
    int64_t col = first + i;
    out.codes[i] = awq ? nibble(source.data, (col * rows + row) / 8, place)
                       : nibble(source.data, col / 8 * rows + row, col % 8);
  }
  out.scale = llvm::support::endian::read16le(source.scales +
                                              2 * (group * rows + row));
  out.zero = nibble(source.zeros, (group * rows + row) / 8, place);
  if (source.type == SourceType::GPTQ4)
    out.zero = (out.zero + 1) & 15;
}

void sparkc::readBlock(const SourceMatrix &source, int64_t row, int64_t index,
                       BlockCodes &out) {
  if (isTransposed(source.type))
    return gatherGroup(source, row, index, out);
  const BlockFormat &format = *blockFormat(source.type);
  format.read(rowData(source, row) + index * format.bytes, out);
}

void sparkc::readBlockRow(const SourceMatrix &source, int64_t row, float *out) {
  const BlockFormat &format = *blockFormat(source);
  BlockCodes block;
  for (int64_t c = 0; c < source.cols; c += format.block) {
    readBlock(source, row, c / format.block, block);
    for (int64_t i = 0; i < format.block; ++i)
      out[c + i] = format.value(block, i);
  }
}
