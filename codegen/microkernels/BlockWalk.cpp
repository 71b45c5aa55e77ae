//===- BlockWalk.cpp - Reading tiles of codes for a block -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/BlockWalk.h"

using namespace mlir;
using namespace sparkc;

/// Lines of each tile's next chunk to prefetch at every quad: all of them are
/// there after 18 quads of 4-bit codes.
static constexpr int64_t kPrefetchLines = 2;

/// f = 0.
void BlockWalk::clear() {
  e.loop(e.c(0), e.mulC(in.quads, kQuad), 1, [&](Value token) {
    for (int64_t tile = 0; tile < kBlockTiles; ++tile)
      e.store(e.zero16(),
              e.at(in.f, e.addC(e.mulC(token, in.fRow), 64 * tile)));
  });
}

/// Groups [firstGroup, firstGroup + groups) of the tiles, to the panel.
void BlockWalk::unpack(Value firstGroup, Value groups) {
  e.loop(e.c(0), e.c(kBlockTiles), 1, [&](Value tile) {
    // In place of a tile that is not there, the last one.
    Value source = e.umin(tile, e.addC(in.count, -1));
    Value packed = e.at(in.tiles, e.mulC(source, matrix.tileBytes()));
    Value to =
        e.at(panel, e.add(e.mulC(e.divC(tile, tilesAtOnce), stripBytes()),
                          e.mulC(e.remC(tile, tilesAtOnce), 64)));
    e.loop(e.c(0), groups, 1, [&](Value g) {
      Value index = e.add(firstGroup, g);
      Value batch = e.at(
          packed,
          e.mulC(e.divC(index, matrix.batchGroups()), matrix.batchBytes()));
      Value inBatch = e.remC(index, matrix.batchGroups());
      Value lines =
          e.at(batch, e.addC(e.mulC(inBatch, 64 * matrix.groupLines()),
                             matrix.headBytes()));
      unpackGroup(batch, inBatch, lines,
                  e.at(to, e.mulC(g, parts * groupBytes())));
    });
  });
}

/// A quad's activation groups [xGroup, xGroup + count) times a strip.
void BlockWalk::multiply(Value strip, Value x, Value f, Value xGroup,
                         Value count) {
  auto address = [&](int64_t tile, int64_t token) {
    return e.at(f, token * in.fRow + 64 * tile);
  };
  SmallVector<Value> sums;
  for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
    for (int64_t token = 0; token < kQuad; ++token)
      sums.push_back(e.load(e.v16f32(), address(tile, token), false, 64));
  prepare(x, xGroup, count);
  sums = e.reduce(e.c(0), count, 1, sums, [&](Value g, ValueRange carried) {
    return group(e.at(strip, e.mulC(g, groupBytes())), x, e.add(xGroup, g), g,
                 carried);
  });
  for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
    for (int64_t token = 0; token < kQuad; ++token)
      e.store(sums[tile * kQuad + token], address(tile, token), false, 64);
}

void BlockWalk::emit() {
  int64_t chunk = xGroups / parts;
  panel = e.stack(kBlockTiles / tilesAtOnce * stripBytes());
  clear();
  e.loop(e.c(0), e.c(matrix.groups()), chunk, [&](Value first) {
    Value groups = e.umin(e.sub(e.c(matrix.groups()), first), e.c(chunk));
    unpack(first, groups);
    Value xGroup = e.mulC(first, parts), count = e.mulC(groups, parts);
    // What is unpacked next: of these tiles, or of those behind them.
    Value next = e.addC(first, chunk);
    Value ahead = e.select(
        e.cmp(arith::CmpIPredicate::ult, next, e.c(matrix.groups())),
        e.mulC(e.divC(next, matrix.batchGroups()), matrix.batchBytes()),
        e.c(kBlockTiles * matrix.tileBytes()));
    e.loop(e.c(0), e.c(kBlockTiles / tilesAtOnce), 1, [&](Value strip) {
      Value from = e.at(panel, e.mulC(strip, stripBytes()));
      Value coming = e.at(
          in.tiles,
          e.add(ahead, e.mulC(strip, tilesAtOnce * matrix.tileBytes())));
      e.loop(e.c(0), in.quads, 1, [&](Value q) {
        for (int64_t i = 0; i < tilesAtOnce * kPrefetchLines; ++i)
          e.prefetch(e.at(coming, e.addC(e.mulC(q, 64 * kPrefetchLines),
                                         i / kPrefetchLines *
                                                 matrix.tileBytes() +
                                             i % kPrefetchLines * 64)),
                     Emitter::Locality::L2);
        multiply(from, e.at(in.x, e.mulC(q, quad.bytes)),
                 e.at(in.f, e.add(e.mulC(q, kQuad * in.fRow),
                                  e.mulC(strip, 64 * tilesAtOnce))),
                 xGroup, count);
      });
    });
  });
}
