//===- BlockWalk.h - Reading tiles of codes for a block ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of a block kernel of an integer layout on vectors, whatever the
// activations are. Columns go in chunks. A chunk of three tiles is unpacked once
// to a panel that stays in the L1 cache, and all quads of tokens pass over it:
// with 512-bit registers three tiles by four tokens at once, with 256 bits one
// by four. In between f waits in memory.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_BLOCKWALK_H
#define SPARKC_CODEGEN_MICROKERNELS_BLOCKWALK_H

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/QuantizedTile.h"

namespace sparkc {

class BlockWalk : protected QuantizedTile {
public:
  virtual ~BlockWalk() = default;
  void emit();

protected:
  /// `tilesAtOnce` divides kBlockTiles. A chunk has `chunk` columns, or at least
  /// `chunkGroups` groups where those are longer.
  BlockWalk(Emitter &e, const BlockOperands &in, Layout layout, Dot4 kind,
            int64_t tilesAtOnce, int64_t chunk, int64_t chunkGroups, bool bf16)
      : QuantizedTile(e, layout, in.cols, in.group, kind), in(in),
        quad(in.cols, in.xGroup, bf16), parts(in.group / in.xGroup),
        tilesAtOnce(tilesAtOnce),
        xGroups(std::max(chunk / in.group, chunkGroups) * parts) {}

  /// Bytes that an activation group of `tilesAtOnce` tiles takes in the panel.
  virtual int64_t groupBytes() const = 0;
  /// Unpacks the group at `lines`, number `inBatch` of a batch, to the panel:
  /// its first activation group to `out`, which has the tile's own lines. (The
  /// same lines of other tiles lie between.)
  virtual void unpackGroup(mlir::Value batch, mlir::Value inBatch,
                           mlir::Value lines, mlir::Value out) = 0;
  /// Before a quad at `x` passes over `count` activation groups.
  virtual void prepare(mlir::Value x, mlir::Value xGroup, mlir::Value count) {}
  /// One activation group of the quad at `x`, number `index` of K and `g` of the
  /// chunk: f of [tile][token].
  virtual llvm::SmallVector<mlir::Value>
  group(mlir::Value panel, mlir::Value x, mlir::Value index, mlir::Value g,
        mlir::ValueRange f) = 0;

  const BlockOperands &in;
  QuadLayout quad;
  /// Activation groups of a group of weights.
  int64_t parts;
  int64_t tilesAtOnce;
  /// Activation groups of a chunk.
  int64_t xGroups;

private:
  int64_t stripBytes() const { return xGroups * groupBytes(); }
  void clear();
  void unpack(mlir::Value firstGroup, mlir::Value groups);
  void multiply(mlir::Value strip, mlir::Value x, mlir::Value f,
                mlir::Value xGroup, mlir::Value count);

  mlir::Value panel;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_BLOCKWALK_H
