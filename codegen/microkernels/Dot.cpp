//===- Dot.cpp - Tiles of floats times activations ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are rows, so no sum crosses lanes. The products of column k go to chain
// k mod 4, in order of k; the result is (c0 + c1) + (c2 + c3). So a bf16 weight
// gives the same bits stored as bf16 or as f32, and a token the same bits alone
// or in a block.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "codegen/weights/PackedLayout.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

/// Columns k .. k+count-1 of a tile of floats, k a multiple of 4.
static SmallVector<Value> loadColumns(Emitter &e, Layout layout, Value tile,
                                      Value k, int64_t count) {
  SmallVector<Value> columns;
  if (layout == Layout::Tile16F32) {
    Value line = e.at(tile, e.mulC(k, 64));
    for (int64_t i = 0; i < count; ++i)
      columns.push_back(e.load(e.v16f32(), e.at(line, 64 * i), false, 64));
    return columns;
  }
  VectorType ints = e.vec(e.i32());
  Value line = e.at(tile, e.mulC(k, 32));
  for (int64_t i = 0; i < count; i += 2) {
    // Column k in the low half of each lane, k + 1 in the high one.
    Value pair = e.load(ints, e.at(line, 32 * i), false, 64);
    Value low = arith::ShLIOp::create(e.b, e.loc, pair, e.c(ints, 16));
    Value high =
        arith::AndIOp::create(e.b, e.loc, pair, e.c(ints, int32_t(0xffff0000)));
    for (Value half : {low, high})
      columns.push_back(arith::BitcastOp::create(e.b, e.loc, e.v16f32(), half));
  }
  columns.resize(count);
  return columns;
}

/// A tile times `tokens` activations, whose elements of one column lie side by
/// side, columns `stride` bytes apart.
static SmallVector<Value> emitProducts(Emitter &e, Layout layout, Value tile,
                                       int64_t cols, Value x, int64_t stride,
                                       int64_t tokens, bool shared) {
  auto add = [&](Value k, int64_t count, SmallVectorImpl<Value> &chains) {
    SmallVector<Value> columns = loadColumns(e, layout, tile, k, count);
    Value xs = e.at(x, e.mulC(k, stride));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t token = 0; token < tokens; ++token) {
        Value &chain = chains[4 * token + i];
        Value value = e.load(e.f32(), e.at(xs, i * stride + 4 * token), shared);
        chain = e.fma(columns[i], e.broadcast(value), chain);
      }
  };
  SmallVector<Value> chains(4 * tokens, e.zero16());
  chains = e.reduceUnrolled(cols / 4, tokens == 1 ? 4 : 1, chains,
                            [&](Value i, ValueRange in) {
                              SmallVector<Value> next(in);
                              add(e.mulC(i, 4), 4, next);
                              return next;
                            });
  if (cols % 4)
    add(e.c(cols / 4 * 4), cols % 4, chains);
  SmallVector<Value> sums;
  for (int64_t token = 0; token < tokens; ++token) {
    ArrayRef<Value> c = ArrayRef(chains).slice(4 * token, 4);
    sums.push_back(e.fadd(e.fadd(c[0], c[1]), e.fadd(c[2], c[3])));
  }
  return sums;
}

template <Layout layout>
static SmallVector<Value> dot(Emitter &e, const TileOperands &in) {
  return emitProducts(e, layout, in.tiles.front(), in.cols, in.x, 4, 1, false);
}

/// `together` tokens of a quad at once: as many as there are registers for.
template <Layout layout, int64_t together>
static void gemm(Emitter &e, const BlockOperands &in) {
  QuadLayout quad(in.cols, 0);
  int64_t tileBytes =
      PackedMatrix::plain(layout, kTileRows, in.cols).tileBytes();
  e.loop(e.c(0), in.count, 1, [&](Value tile) {
    Value packed = e.at(in.tiles, e.mulC(tile, tileBytes));
    Value out = e.at(in.f, e.mulC(tile, 64));
    e.loop(e.c(0), e.mulC(in.quads, kQuad), together, [&](Value token) {
      Value x = e.at(in.x, e.add(e.mulC(e.divC(token, kQuad), quad.bytes),
                                 e.mulC(e.remC(token, kQuad), 4)));
      SmallVector<Value> sums = emitProducts(e, layout, packed, in.cols, x,
                                             4 * kQuad, together, true);
      for (int64_t i = 0; i < together; ++i)
        e.store(sums[i], e.at(out, e.mulC(e.addC(token, i), in.fRow)));
    });
  });
}

static const TileKernel tiles[] = {
    {"dot_f32", "tile16_f32", SPARKC_ISA_AVX2, 1, dot<Layout::Tile16F32>},
    {"dot_bf16", "tile16_bf16", SPARKC_ISA_AVX2, 1, dot<Layout::Tile16BF16>},
};

static const BlockKernel blocks[] = {
    {"gemm_f32_avx2", "tile16_f32", SPARKC_ISA_AVX2,
     gemm<Layout::Tile16F32, 1>},
    {"gemm_bf16_avx2", "tile16_bf16", SPARKC_ISA_AVX2,
     gemm<Layout::Tile16BF16, 1>},
    {"gemm_f32_avx512", "tile16_f32", SPARKC_ISA_AVX512,
     gemm<Layout::Tile16F32, kQuad>},
    {"gemm_bf16_avx512", "tile16_bf16", SPARKC_ISA_AVX512,
     gemm<Layout::Tile16BF16, kQuad>},
};

ArrayRef<TileKernel> sparkc::floatTileKernels() { return tiles; }
ArrayRef<BlockKernel> sparkc::floatBlockKernels() { return blocks; }
