//===- TileWalk.h - Reading tiles of codes for one token --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of a tile kernel of an integer layout, whatever the activations are.
// It reads a tile forward, line by line, as PackedLayout.h lays it out: batches
// of groups, each batch's scales and zero points first. A processor looks some 40
// lines ahead of what it waits for, since instructions that depend on a line fill
// its queues; prefetches do not, so with them memory has enough to do where its
// answer takes longer than that. All are loops, the innermost over blocks of
// codes, one of each tile in turn (over groups where one is a block): few instructions read memory, each at an even
// pace, which hardware prefetchers learn. Two tiles side by side are two streams,
// from which memory delivers more than from one on some processors, and on others
// less (weightStreams).
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_TILEWALK_H
#define SPARKC_CODEGEN_MICROKERNELS_TILEWALK_H

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/QuantizedTile.h"

namespace sparkc {

class TileWalk : protected QuantizedTile {
public:
  TileWalk(Emitter &e, const TileOperands &in, Layout layout, Dot4 kind)
      : QuantizedTile(e, layout, in.cols, in.group, kind), in(in) {}
  virtual ~TileWalk() = default;
  llvm::SmallVector<mlir::Value> emit();

protected:
  /// What is known of a group of weights: its scales, its minima or (int32)
  /// zero points.
  struct Group {
    mlir::Value scales, minima, zeros;
  };
  /// Sums over columns of a tile, not yet scaled.
  using Partial = llvm::SmallVector<mlir::Value, 4>;

  /// Bytes of an activation.
  virtual int64_t xBytes() const = 0;
  /// Sums of no columns.
  virtual Partial none() = 0;
  /// `partial` with columns [k, k + columns) of the codes at `lines`, whose
  /// activations are at `xs`.
  virtual void accumulate(mlir::Value lines, int64_t k, mlir::Value xs,
                          int64_t columns,
                          llvm::MutableArrayRef<mlir::Value> partial) = 0;
  /// f with the sums of activation group `xIndex`.
  virtual mlir::Value finish(const Group &group, mlir::Value xIndex,
                             llvm::ArrayRef<mlir::Value> partial,
                             mlir::Value f) = 0;

  const TileOperands &in;

private:
  /// A batch of every tile.
  struct Batch {
    llvm::SmallVector<mlir::Value> at;
    llvm::SmallVector<Factors> factors;
    /// The number of its first group.
    mlir::Value first;
    int64_t groups;
  };
  using Values = llvm::SmallVector<mlir::Value>;
  void prefetch(mlir::Value at, int64_t bytes);
  Group groupOf(const Batch &batch, int64_t tile, mlir::Value inBatch);
  Values groups(const Batch &batch, mlir::ValueRange f);
  void block(mlir::ValueRange lines, int64_t k, mlir::Value xs,
             int64_t columns, llvm::MutableArrayRef<mlir::Value> partial);
  Values partials(mlir::ValueRange lines, int64_t k, mlir::Value xIndex);
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_TILEWALK_H
