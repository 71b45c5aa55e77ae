//===- QuantizedTile.h - Codes of a packed tile, in registers ---*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels of the integer layouts share: how codes come out of the
// lines of a group, as PackedLayout.h lays them out, and how an instruction set
// adds four products of bytes to each 32-bit lane.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_QUANTIZEDTILE_H
#define SPARKC_CODEGEN_MICROKERNELS_QUANTIZEDTILE_H

#include "codegen/microkernels/Emitter.h"
#include "codegen/weights/PackedLayout.h"

namespace sparkc {

enum class Dot4 { VNNI512, VNNI256, AVX2 };

/// 16 int32 sums: one vector, or two halves where registers have 256 bits.
using Sums = llvm::SmallVector<mlir::Value, 2>;

class QuantizedTile {
public:
  QuantizedTile(Emitter &e, Layout layout, int64_t cols, int64_t group,
                Dot4 kind)
      : e(e), kind(kind),
        matrix(PackedMatrix::plain(layout, kTileRows, cols, group)),
        form(scaleForm(layout)), bits(bitsPerWeight(layout)) {}

protected:
  mlir::VectorType bytes(int64_t n) { return e.vec(e.i8(), n); }
  mlir::VectorType ints(int64_t n) { return e.vec(e.i32(), n); }
  int64_t halves() const { return kind == Dot4::VNNI512 ? 1 : 2; }
  int64_t lanes() const { return kLanes / halves(); }

  /// `count` int32 lanes of a line, from lane count * part on.
  mlir::Value line(mlir::Value base, int64_t offset, int64_t part,
                   int64_t count) {
    return e.load(ints(count), e.at(base, offset + 4 * count * part), false,
                  4 * count);
  }

  /// Columns whose codes fill whole lines, and how many lines; eights of columns,
  /// since sums and chains of pairs take turns within eight.
  int64_t blockColumns() const {
    return bits == 4 || bits == 8 ? 8 : 32 / (bits - 4);
  }
  int64_t blockLines() const { return blockColumns() * bits / 32; }

  /// Walks columns [k, k + count) of a group whose lines begin at `lines`,
  /// four at a time and in `parts` parts of the 16 rows: codes of columns
  /// k + i .. k + i + 3 to `use(i, part, codes)`.
  using Use = llvm::function_ref<void(int64_t i, int64_t part, mlir::Value)>;
  void columns(mlir::Value lines, int64_t k, int64_t count, int64_t parts,
               Use use) {
    columns(lines, k, count, parts, kLanes / parts, use);
  }
  /// The same for `parts` parts of `lanes` rows each.
  void columns(mlir::Value lines, int64_t k, int64_t count, int64_t parts,
               int64_t lanes, Use use);

  /// sum + the four products of each lane, of unsigned `u` and signed `s`. For
  /// layouts below 8 bits one of them is below 64 in magnitude.
  mlir::Value dot4(mlir::Value sum, mlir::Value u, mlir::Value s);

  /// The sum of two products of int16 in each lane.
  mlir::Value pairs16(mlir::Value x, mlir::Value y);
  /// The 16 sums of the halves.
  mlir::Value whole(llvm::ArrayRef<mlir::Value> sums);

  /// What the groups of a batch have in common: factors of the scales and of
  /// the minima of two-level forms (f32); else null.
  struct Factors {
    mlir::Value scale, minimum;
  };
  Factors factors(mlir::Value batch);
  /// Scales and minima (f32) of group `inBatch` of a batch, whose number may be
  /// known only at run time.
  mlir::Value scales(mlir::Value batch, mlir::Value inBatch, Factors factors);
  mlir::Value minima(mlir::Value batch, mlir::Value inBatch, Factors factors);
  /// Zero points (int32) of forms without minima.
  mlir::Value zeros(mlir::Value batch, mlir::Value inBatch);

  Emitter &e;
  Dot4 kind;
  PackedMatrix matrix;
  ScaleForm form;
  unsigned bits;

private:
  mlir::Value halves16(mlir::Value batch, mlir::Value offset);
  mlir::Value bytes16(mlir::Value batch, mlir::Value offset);
  mlir::Value dot4AVX2(mlir::Value u, mlir::Value s);
  mlir::Value mask(mlir::Value v, int64_t perByte);
  mlir::Value shift(mlir::Value v, int64_t left);
  mlir::Value either(mlir::Value x, mlir::Value y);
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_QUANTIZEDTILE_H
