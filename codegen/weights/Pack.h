//===- Pack.h - From checkpoint rows to packed tiles ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Fills a PackedMatrix, tile by tile, from row-major matrices that are mapped
/// from a checkpoint. Memory is bounded by a few megabytes of tiles, whatever
/// the size of the matrix.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_PACK_H
#define SPARKC_CODEGEN_WEIGHTS_PACK_H

#include "codegen/weights/PackedLayout.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <memory>

namespace sparkc {

/// Types of stored weights; from Q4_0 on those of BlockFormat.h, from C4_32 on
/// codes that calibration chose.
enum class SourceType {
  F32, BF16, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K,
  AWQ4, GPTQ4, GPTQ4_V2,
  C4_32, C4_64, C4_128, C5_32, C5_64, C5_128,
  C6_32, C6_64, C6_128, C8_32, C8_64, C8_128
};

/// Whether the bytes are those of the transpose (AWQ, GPTQ): rows have none of
/// their own.
bool isTransposed(SourceType type);

/// Bytes of a row of other types; `cols` is a multiple of the type's block.
int64_t sourceRowBytes(SourceType type, int64_t cols);

/// A [rows, cols] matrix in memory, row-major unless its type is transposed;
/// little-endian, any alignment.
struct SourceMatrix {
  const uint8_t *data = nullptr;
  SourceType type = SourceType::BF16;
  int64_t rows = 0;
  int64_t cols = 0;
  /// Named in errors; may be empty.
  std::string name = {};
  /// Called with byte ranges that will not be needed soon, so that a file's
  /// mapping can drop its pages (the bytes must stay readable). May be empty.
  std::function<void(const uint8_t *begin, int64_t bytes)> release = {};
  /// The file it lies in; named in errors unless empty.
  std::string file = {};
  /// Of transposed types: columns a scale, scales and zero points.
  int64_t group = 0;
  const uint8_t *scales = nullptr, *zeros = nullptr;
  /// What is done to a row once it is read, [cols] floats; any thread calls it.
  /// May be empty.
  std::function<void(float *row)> transform = {};
  /// What `data` lies in, where that is no mapped file.
  std::shared_ptr<const void> owner = {};
};

/// "FILE: tensor 'NAME'", for errors.
std::string describe(const SourceMatrix &source);

/// The bytes of row `row`; not of transposed types.
const uint8_t *rowData(const SourceMatrix &source, int64_t row);
/// Reads row `row` of `source`, transformed, as float32 into out[0 .. cols).
void readRow(const SourceMatrix &source, int64_t row, float *out);

/// Writes tile `tile` of a float layout (of a row-major one: row `tile`) into
/// out[0 .. tileBytes()). To float32 every source is exact; to bfloat16 a
/// bfloat16 source that is not transformed is copied, others round to nearest
/// even. Padding is zero.
/// Expects `matrix.verify` to have passed.
void packFloatTile(const PackedMatrix &matrix, int64_t tile,
                   llvm::ArrayRef<SourceMatrix> sources, uint8_t *out);

/// Takes the next bytes of a matrix, in order.
using PackSink = llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t>)>;

/// Verifies `matrix` against `sources` (columns must agree) and hands its
/// matrix.bytes() bytes to `sink`, in order, in chunks of whole tiles. Tiles
/// are packed on all processors; the bytes do not depend on their number. A
/// weight that is NaN or infinite, or would be as bfloat16, is an error that
/// names the source and the place.
llvm::Error packFloatMatrix(const PackedMatrix &matrix,
                            llvm::ArrayRef<SourceMatrix> sources,
                            PackSink sink);

/// The frame of packFloatMatrix for any tile packer: `packTile` runs on many
/// threads at once, each call with its own tile and output.
llvm::Error
packTiles(const PackedMatrix &matrix, llvm::ArrayRef<SourceMatrix> sources,
          llvm::function_ref<void(int64_t tile, uint8_t *out)> packTile,
          PackSink sink);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_PACK_H
