//===- TileWalk.cpp - Reading tiles of codes for one token ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/TileWalk.h"

using namespace mlir;
using namespace sparkc;

void TileWalk::prefetch(Value at, int64_t bytes) {
  for (int64_t i = 0; in.ahead && i < bytes; i += 64)
    e.prefetch(e.at(at, i + in.ahead), in.once ? Emitter::Locality::Once
                                               : Emitter::Locality::All);
}

/// Group `inBatch` of a batch; `index` is its number in the tile.
Value TileWalk::group(Value batch, Value index, int64_t inBatch,
                      Factors factors, Value f) {
  // Groups do not mix, or there were more sums than registers; and where K is
  // short, all of its activations would be read once for all tiles, to be
  // spilled. Behind a fence (no instruction) each group of each tile reads its
  // own, folded into the products.
  LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::seq_cst,
                        "singlethread");
  Group group;
  group.index = index;
  group.scales = scales(batch, e.c(inBatch), factors);
  if (hasMinimum(form))
    group.minima = minima(batch, e.c(inBatch), factors);
  else
    group.zeros = zeros(batch, e.c(inBatch));
  group.lines =
      e.at(batch, matrix.headBytes() + 64 * matrix.groupLines() * inBatch);
  prefetch(group.lines, 64 * matrix.groupLines());
  for (int64_t i = 0; i < in.group / in.xGroup; ++i)
    f = part(group, i, f);
  return f;
}

/// The batch at `offset` of every tile.
SmallVector<Value> TileWalk::batchOf(Value offset, Value firstGroup,
                                     int64_t groups, ValueRange f) {
  SmallVector<Value> next(f), batches;
  SmallVector<Factors> factors;
  for (Value tile : in.tiles) {
    batches.push_back(e.at(tile, offset));
    prefetch(batches.back(), matrix.headBytes());
    factors.push_back(this->factors(batches.back()));
  }
  for (int64_t g = 0; g < groups; ++g)
    for (auto [batch, common, sum] : llvm::zip_equal(batches, factors, next))
      sum = group(batch, e.addC(firstGroup, g), g, common, sum);
  return next;
}

SmallVector<Value> TileWalk::emit() {
  const int64_t perBatch = matrix.batchGroups();
  int64_t groups = matrix.groups(), batches = groups / perBatch;
  SmallVector<Value> f(in.tiles.size(), e.zero16());
  if (batches)
    f = e.reduce(e.c(0), e.c(batches), 1, f, [&](Value i, ValueRange carried) {
      return batchOf(e.mulC(i, matrix.batchBytes()), e.mulC(i, perBatch),
                     perBatch, carried);
    });
  if (int64_t rest = groups % perBatch)
    f = batchOf(e.c(batches * matrix.batchBytes()), e.c(batches * perBatch),
                rest, f);
  return f;
}
