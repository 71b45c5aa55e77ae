//===- TileWalk.h - Reading tiles of codes for one token --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of a tile kernel of an integer layout, whatever the activations are.
// It reads a tile forward, line by line, as PackedLayout.h lays it out: batches
// of groups, each batch's scales and zero points first. Two tiles side by side,
// group by group, are two streams: memory delivers more to them than to one. A
// processor looks some 40 lines ahead of what it waits for, since instructions
// that depend on a line fill its queues; prefetches do not, so with them memory
// has enough to do where its answer takes longer than that.
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
  /// zero points, where its lines begin, and its number in the tile.
  struct Group {
    mlir::Value scales, minima, zeros, lines, index;
  };
  /// Activation group `part` of the group: f with what it adds.
  virtual mlir::Value part(const Group &group, int64_t part, mlir::Value f) = 0;

  const TileOperands &in;

private:
  void prefetch(mlir::Value at, int64_t bytes);
  mlir::Value group(mlir::Value batch, mlir::Value index, int64_t inBatch,
                    Factors factors, mlir::Value f);
  llvm::SmallVector<mlir::Value> batchOf(mlir::Value offset,
                                         mlir::Value firstGroup, int64_t groups,
                                         mlir::ValueRange f);
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_TILEWALK_H
