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

TileWalk::Group TileWalk::groupOf(const Batch &batch, int64_t tile,
                                  Value inBatch) {
  Value at = batch.at[tile];
  Factors factors = batch.factors[tile];
  Group group;
  group.scales = scales(at, inBatch, factors);
  if (hasMinimum(form))
    group.minima = minima(at, inBatch, factors);
  else
    group.zeros = zeros(at, inBatch);
  return group;
}

/// `partial`, a few sums of each tile, with columns [k, k + columns) of the
/// blocks of codes at `lines`.
void TileWalk::block(ValueRange lines, int64_t k, Value xs, int64_t columns,
                     MutableArrayRef<Value> partial) {
  const int64_t perTile = partial.size() / lines.size();
  for (auto [tile, at] : llvm::enumerate(lines)) {
    // Behind a fence (no instruction) each tile reads the activations anew,
    // folded into its products, rather than keep them for the next.
    LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::seq_cst,
                          "singlethread");
    if (k == 0)
      prefetch(at, 64 * blockLines());
    accumulate(at, k, xs, columns, partial.slice(tile * perTile, perTile));
  }
}

/// Unscaled sums of activation group `xIndex`, whose codes begin in column `k`
/// of the blocks at `lines`: of each tile, one after the other.
TileWalk::Values TileWalk::partials(ValueRange lines, int64_t k, Value xIndex) {
  Value xs = e.at(in.x, e.mulC(xIndex, in.xGroup * xBytes()));
  Values sums;
  for (size_t tile = 0; tile < lines.size(); ++tile)
    llvm::append_range(sums, none());
  if (in.xGroup <= blockColumns()) {
    block(lines, k, xs, in.xGroup, sums);
    return sums;
  }
  return e.reduceRolled(
      in.xGroup / blockColumns(), sums, [&](Value i, ValueRange carried) {
        Values next(carried), at;
        for (Value tile : lines)
          at.push_back(e.at(tile, e.mulC(i, 64 * blockLines())));
        block(at, 0, e.at(xs, e.mulC(i, blockColumns() * xBytes())),
              blockColumns(), next);
        return next;
      });
}

/// Groups of a batch, and in them groups of activations; where these are less
/// than a block of codes, a block.
TileWalk::Values TileWalk::groups(const Batch &batch, ValueRange f) {
  const int64_t columns = std::max(in.xGroup, blockColumns());
  const int64_t parts = in.group / columns, perPart = columns / in.xGroup;
  return e.reduceRolled(batch.groups, f, [&](Value g, ValueRange carried) {
    auto part = [&](Value i, ValueRange before) {
      Value offset =
          e.add(e.mulC(g, 64 * matrix.groupLines()),
                e.addC(e.mulC(i, columns / blockColumns() * blockLines() * 64),
                       matrix.headBytes()));
      Values lines, next(before);
      for (Value at : batch.at)
        lines.push_back(e.at(at, offset));
      Value index = e.mulC(e.add(e.mulC(e.add(batch.first, g), parts), i),
                           perPart);
      for (int64_t at = 0; at < perPart; ++at) {
        Value xIndex = e.addC(index, at);
        Values sums = partials(lines, at * in.xGroup, xIndex);
        const int64_t perTile = sums.size() / lines.size();
        // Scales are read behind the codes: before, they would take registers.
        for (auto [tile, sum] : llvm::enumerate(next))
          sum = finish(groupOf(batch, tile, g), xIndex,
                       ArrayRef(sums).slice(tile * perTile, perTile), sum);
      }
      return next;
    };
    return parts == 1 ? part(e.c(0), carried)
                      : e.reduceRolled(parts, carried, part);
  });
}

SmallVector<Value> TileWalk::emit() {
  const int64_t perBatch = matrix.batchGroups();
  int64_t batches = matrix.groups() / perBatch;
  auto batchAt = [&](Value offset, Value first, int64_t count, ValueRange f) {
    Batch batch{{}, {}, first, count};
    for (Value tile : in.tiles) {
      batch.at.push_back(e.at(tile, offset));
      prefetch(batch.at.back(), matrix.headBytes());
      batch.factors.push_back(factors(batch.at.back()));
    }
    return groups(batch, f);
  };
  SmallVector<Value> f(in.tiles.size(), e.zero16());
  if (batches)
    f = e.reduceRolled(batches, f, [&](Value i, ValueRange carried) {
      return batchAt(e.mulC(i, matrix.batchBytes()), e.mulC(i, perBatch),
                     perBatch, carried);
    });
  if (int64_t rest = matrix.groups() % perBatch)
    f = batchAt(e.c(batches * matrix.batchBytes()), e.c(batches * perBatch),
                rest, f);
  return f;
}
