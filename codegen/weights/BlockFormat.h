//===- BlockFormat.h - Stored blocks of quantized weights -------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A row of a quantized GGUF tensor is blocks of 32 or 256 weights with their
/// scales. Little-endian; d, m, e float16:
///
///   Q4_0  d, 16 bytes: weight j in the low nibble of byte j, j+16 in the high
///         w = d * (q - 8)
///   Q4_1  d, m, then as Q4_0                  w = d * q + m
///   Q5_0  d, 32 bits: the fifth bit of weight j is bit j, then as Q4_0
///         w = d * (q - 16)
///   Q5_1  d, m, then as Q5_0                  w = d * q + m
///   Q8_0  d, 32 int8                          w = d * q
///   Q4_K  d, e, 12 bytes of 6-bit u[8], v[8], 128 bytes: weights 64i + j in
///         the low nibbles of bytes 32i + j, 64i + 32 + j in the high ones
///         w = d * u * q - e * v, u and v of its 32
///   Q5_K  d, e, u, v, 32 bytes: the fifth bit of weight 32i + j is bit i of
///         byte j; 128 bytes as Q4_K           likewise
///   Q6_K  128 bytes: the low 4 bits of weights 128h + 64i + j (low nibbles of
///         bytes 64h + j, i = 0, and high ones, i = 1; j < 64), 64 bytes: the
///         high 2 bits of weight 128h + 32i + j are bits 2i, 2i+1 of byte
///         32h + j; 16 int8 u; d               w = d * u * (q - 32), u of its 16
///
/// Ours, of codes that calibration has chosen; a group of b bits and n columns is
/// a block, C4_64 and the like:
///
///   Cb_n  d, a byte z, n bytes q              w = d * (q - z)
///
/// The 6-bit values of Q4_K: byte i (i < 4) has u[i] and bits 4, 5 of u[i+4],
/// byte 4+i the same of v, byte 8+i the low 4 bits of u[i+4] and v[i+4].
///
/// A group of a row of an AWQ or GPTQ checkpoint is a block as well, of another
/// kind (StoredCodes.cpp): s, z, codes;           w = s * (q - z)
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_BLOCKFORMAT_H
#define SPARKC_CODEGEN_WEIGHTS_BLOCKFORMAT_H

#include "codegen/weights/Grid.h"
#include "codegen/weights/Pack.h"
#include "codegen/weights/TileCodes.h"

namespace sparkc {

/// The most weights of a block.
constexpr int64_t kMaxBlock = 256;

/// What one block holds, in the terms of PackedLayout.h: codes from 0 on, and
/// minima that are added.
struct BlockCodes {
  uint8_t codes[kMaxBlock];
  uint16_t scale;          ///< float16: of the block
  uint16_t minimum;        ///< float16: of the block (forms with minima)
  uint8_t zero;            ///< of the block (form Zero)
  uint8_t subScales[16];   ///< of each group (two-level forms)
  uint8_t subMinima[16];
};

struct BlockFormat {
  SourceType type;
  const char *name; ///< "Q4_K"
  uint32_t number;  ///< in GGUF files; of our own formats 0
  int64_t block;    ///< weights of a block
  int64_t bytes;
  /// The grid whose values these are.
  GridSpec grid;
  /// Bytes of a block to codes, and the inverse; null where blocks are gathered.
  void (*read)(const uint8_t *in, BlockCodes &out);
  void (*write)(const BlockCodes &in, uint8_t *out);

  int64_t groups() const { return block / grid.group; }
  /// Whether each block has a zero point of its own: it may lie on a symmetric
  /// grid or not.
  bool hasZero() const { return number == 0; }
  /// Weight `col` of a block, as float32 as the format defines it.
  float value(const BlockCodes &block, int64_t col) const;
};

/// The format of a type of GGUF; null for others.
const BlockFormat *blockFormat(SourceType type);
const BlockFormat *blockFormat(llvm::StringRef name);
/// The format of a source's blocks; null for single floats.
const BlockFormat *blockFormat(const SourceMatrix &source);
/// GGUF's format whose values lie on `grid`; null where there is none.
const BlockFormat *blockFormatOf(const GridSpec &grid);
/// Our format for codes of a grid of the form Zero.
const BlockFormat &codeFormatOf(const GridSpec &grid);

/// Puts block `index` of a row into a lane of the codes of a tile of `matrix`,
/// whose layout and group are the format's; as much of it as the row has room.
void putBlock(const BlockFormat &format, const PackedMatrix &matrix,
              const BlockCodes &block, int64_t index, int64_t lane,
              TileCodes &codes);
/// And back.
void takeBlock(const BlockFormat &format, const PackedMatrix &matrix,
               const TileCodes &codes, int64_t index, int64_t lane,
               BlockCodes &block);

/// Block `index` of a row of a source that has blocks.
void readBlock(const SourceMatrix &source, int64_t row, int64_t index,
               BlockCodes &out);
/// All of the row, as float32.
void readBlockRow(const SourceMatrix &source, int64_t row, float *out);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_BLOCKFORMAT_H
