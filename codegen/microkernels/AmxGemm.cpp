//===- AmxGemm.cpp - Tiles of codes times a block of tokens, by AMX -------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// QuantizedGemm.cpp on tile registers. An unpacked line, 16 rows of weights by
// four columns, is one row of a B tile as it lies there; so the packed layout
// needs no other order. A tile of A is 16 tokens by up to 64 columns. For each
// activation group, in order of K, the product is the exact integer
//
//   D = sum (code - zero) * x
//
// and then f = fma(scale * x_scale, float(D), f): the bits of the other kernels.
// Up to six bits, codes are unpacked with their zero point subtracted, as signed
// bytes; codes of eight bits are unsigned, and zero * sum x comes off
// afterwards.
//
// Columns go in chunks. A chunk of the row tiles is unpacked once to a panel;
// all tokens pass over it, 32 at a time, whose columns of the chunk are first
// laid out token by token (blocks have four tokens side by side, word by word,
// with 128 added, which is taken off again).
// Two tiles of A by two of B make four sums: all eight tile registers.
//
// Tiles are only ever loaded from this function's own stack frame, in full; where
// there are fewer than 32 tokens or an odd number of row tiles, what has no use
// is computed of whatever lies there, and dropped. LLVM configures the tiles
// where the function begins and releases them where it ends.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/AmxGemm.h"
#include "codegen/microkernels/QuantizedTile.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

/// Tokens of a round: two tiles of A.
static constexpr int64_t kTokens = 32;
/// Columns of a chunk, where a batch of groups has no more.
static constexpr int64_t kChunk = 256;
/// Rows of a tile register, bytes of a row.
static constexpr int64_t kRows = 16, kRowBytes = 64;

namespace {

class AmxGemm : QuantizedTile {
public:
  AmxGemm(Emitter &e, const BlockOperands &in, Layout layout)
      : QuantizedTile(e, layout, in.cols, in.group, Dot4::VNNI512), in(in),
        quad(in.cols, in.xGroup), parts(in.group / in.xGroup),
        xGroups(std::max(kChunk / in.group, matrix.batchGroups()) * parts),
        isFolded(bits < 8), converter(e.b.getContext()) {
    assert(in.xGroup >= 32 && "arranged by 32 columns");
  }
  void emit();

private:
  // The panel: for each row tile and each activation group the lines of codes,
  // then scales, then zero points where they are not folded into the codes.
  int64_t lineBytes() const { return 16 * in.xGroup; }
  int64_t groupBytes() const { return lineBytes() + (isFolded ? 64 : 128); }
  int64_t tileBytes() const { return xGroups * groupBytes(); }
  // The round's activations: for each activation group, rows of tokens.
  int64_t tokenBytes() const { return kTokens * in.xGroup; }

  Value pairs() { return e.divC(e.addC(in.count, 1), 2); }
  void clear();
  void unpack(Value firstGroup, Value groups);
  void arrange(Value x, Value quads, Value xGroup, Value count);
  void multiply(Value pair, Value x, Value f, Value quads, Value xGroup,
                Value count, int64_t tokenTiles);
  void products(Value g, Value pair, int64_t tokenTiles);
  void rescale(Value g, Value pair, Value x, Value f, Value quads,
               Value xGroup);

  /// rows x cols elements at `address`, as the amx dialect names memory.
  Value memory(Value address, int64_t rows, int64_t cols, Type element,
               int64_t stride);
  Value load(Value address, int64_t rows, int64_t cols, int64_t stride);
  Value index0() { return arith::ConstantIndexOp::create(e.b, e.loc, 0); }

  const BlockOperands &in;
  QuadLayout quad;
  /// Activation groups of a group of weights; of a chunk.
  int64_t parts, xGroups;
  bool isFolded;
  LLVMTypeConverter converter;
  Value panel, tokens, sums;
};

} // namespace

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value AmxGemm::memory(Value address, int64_t rows, int64_t cols, Type element,
                      int64_t stride) {
  auto layout =
      StridedLayoutAttr::get(e.b.getContext(), 0, {stride, int64_t(1)});
  auto type = MemRefType::get({rows, cols}, element, layout);
  Value descriptor = MemRefDescriptor::fromStaticShape(e.b, e.loc, converter,
                                                       type, address);
  return UnrealizedConversionCastOp::create(e.b, e.loc, TypeRange{type},
                                            ValueRange{descriptor})
      .getResult(0);
}

Value AmxGemm::load(Value address, int64_t rows, int64_t cols,
                    int64_t stride) {
  auto type = amx::TileType::get({rows, cols}, e.i8());
  return amx::TileLoadOp::create(e.b, e.loc, type,
                                 memory(address, rows, cols, e.i8(), stride),
                                 ValueRange{index0(), index0()});
}

/// One activation group of 16 or 32 tokens by two row tiles: int32 sums, rows of
/// tokens, the two tiles of a token side by side.
void AmxGemm::products(Value g, Value pair, int64_t tokenTiles) {
  auto sumType = amx::TileType::get({kRows, kRows}, e.i32());
  Value a = e.at(tokens, e.mulC(g, tokenBytes()));
  Value b = e.at(panel, e.add(e.mulC(pair, 2 * tileBytes()),
                              e.mulC(g, groupBytes())));
  SmallVector<Value> sum;
  for (int64_t i = 0; i < 2 * tokenTiles; ++i)
    sum.push_back(amx::TileZeroOp::create(e.b, e.loc, sumType));
  int64_t depth = std::min(in.xGroup, kRowBytes);
  for (int64_t k = 0; k < in.xGroup; k += depth) {
    SmallVector<Value> as, bs;
    for (int64_t i = 0; i < tokenTiles; ++i)
      as.push_back(load(e.at(a, i * kRows * in.xGroup + k), kRows, depth,
                        in.xGroup));
    for (int64_t j = 0; j < 2; ++j)
      bs.push_back(load(e.at(b, j * tileBytes() + 16 * k), depth / 4,
                        kRowBytes, kRowBytes));
    for (int64_t i = 0; i < tokenTiles; ++i)
      for (int64_t j = 0; j < 2; ++j)
        sum[2 * i + j] = amx::TileMulIOp::create(
            e.b, e.loc, sumType, as[i], bs[j], sum[2 * i + j],
            /*isZextLhs=*/false, /*isZextRhs=*/!isFolded);
  }
  for (int64_t i = 0; i < tokenTiles; ++i)
    for (int64_t j = 0; j < 2; ++j)
      amx::TileStoreOp::create(
          e.b, e.loc,
          memory(e.at(sums, 128 * kRows * i + 64 * j), kRows, kRows, e.i32(),
                 32),
          ValueRange{index0(), index0()}, sum[2 * i + j]);
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// f = 0.
void AmxGemm::clear() {
  e.loop(e.c(0), e.mulC(in.quads, kQuad), 1, [&](Value token) {
    for (int64_t tile = 0; tile < kAmxTiles; ++tile)
      e.store(e.zero16(),
              e.at(in.f, e.addC(e.mulC(token, in.fRow), 64 * tile)));
  });
}

/// Groups [firstGroup, firstGroup + groups) of the row tiles, to the panel.
void AmxGemm::unpack(Value firstGroup, Value groups) {
  e.loop(e.c(0), e.mulC(pairs(), 2), 1, [&](Value tile) {
    // In place of a tile that is not there, the last one.
    Value source = e.umin(tile, e.addC(in.count, -1));
    Value packed = e.at(in.tiles, e.mulC(source, matrix.tileBytes()));
    Value to = e.at(panel, e.mulC(tile, tileBytes()));
    e.loop(e.c(0), groups, 1, [&](Value g) {
      Value index = e.add(firstGroup, g);
      Value batch = e.at(
          packed, e.mulC(e.divC(index, matrix.batchGroups()), matrix.batchBytes()));
      Value inBatch = e.remC(index, matrix.batchGroups());
      Value scale = scales(batch, inBatch, {}), zero = zeros(batch, inBatch);
      Value lines =
          e.at(batch, e.addC(e.mulC(inBatch, 64 * matrix.groupLines()),
                             matrix.headBytes()));
      VectorType bytes = this->bytes(kRowBytes);
      auto asBytes = [&](Value v) -> Value {
        return vector::BitCastOp::create(e.b, e.loc, bytes, v);
      };
      Value zeroBytes = asBytes(e.mul(zero, e.c(zero.getType(), 0x01010101)));
      for (int64_t part = 0; part < parts; ++part) {
        Value out =
            e.at(to, e.mulC(e.addC(e.mulC(g, parts), part), groupBytes()));
        columns(lines, part * in.xGroup, in.xGroup, 1,
                [&](int64_t i, int64_t, Value codes) {
                  Value line = asBytes(codes);
                  if (isFolded)
                    line = e.sub(line, zeroBytes);
                  e.store(line, e.at(out, 16 * i), false, 64);
                });
        e.store(scale, e.at(out, lineBytes()), false, 64);
        if (!isFolded)
          e.store(zero, e.at(out, lineBytes() + 64), false, 64);
      }
    });
  });
}

/// Activation groups [xGroup, xGroup + count) of the quads at `x`, to rows of
/// tokens: eight words of the four tokens of a quad at a time.
void AmxGemm::arrange(Value x, Value quads, Value xGroup, Value count) {
  VectorType words = e.vec(e.i32());
  auto mixed = [&](Value a, Value b, int64_t token) -> Value {
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < kLanes; ++i)
      order.push_back(i % 8 * kQuad + token + i / 8);
    return vector::ShuffleOp::create(e.b, e.loc, a, b, order);
  };
  // Less the 128 that blocks have added.
  auto asSigned = [&](Value v) -> Value {
    return arith::XOrIOp::create(e.b, e.loc, v,
                                 e.c(words, int32_t(0x80808080)));
  };
  auto half = [&](Value v, int64_t which) -> Value {
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < 8; ++i)
      order.push_back(8 * which + i);
    return vector::ShuffleOp::create(e.b, e.loc, v, v, order);
  };
  e.loop(e.c(0), quads, 1, [&](Value q) {
    Value from = e.at(e.at(x, e.mulC(q, quad.bytes)),
                      e.mulC(xGroup, 4 * in.xGroup));
    Value to = e.at(tokens, e.mulC(q, kQuad * in.xGroup));
    e.loop(e.c(0), count, 1, [&](Value g) {
      Value source = e.at(from, e.mulC(g, 4 * in.xGroup));
      Value out = e.at(to, e.mulC(g, tokenBytes()));
      for (int64_t k = 0; k < in.xGroup; k += 32) {
        Value a = asSigned(e.load(words, e.at(source, 4 * k), true));
        Value b = asSigned(e.load(words, e.at(source, 4 * k + 64), true));
        for (int64_t token = 0; token < kQuad; token += 2) {
          Value two = mixed(a, b, token);
          for (int64_t i = 0; i < 2; ++i)
            e.store(half(two, i), e.at(out, (token + i) * in.xGroup + k),
                    false, 32);
        }
      }
    });
  });
}

/// f of the round's tokens, and of a pair of row tiles: one activation group.
void AmxGemm::rescale(Value g, Value pair, Value x, Value f, Value quads,
                      Value xGroup) {
  Value head = e.at(panel, e.add(e.mulC(pair, 2 * tileBytes()),
                                 e.addC(e.mulC(g, groupBytes()), lineBytes())));
  SmallVector<Value> scale, zero;
  for (int64_t j = 0; j < 2; ++j) {
    Value at = e.at(head, j * tileBytes());
    scale.push_back(e.load(e.v16f32(), at, false, 64));
    if (!isFolded)
      zero.push_back(e.load(ints(kLanes), e.at(at, 64), false, 64));
  }
  Value word = e.mulC(e.add(xGroup, g), 4 * kQuad);
  e.loop(e.c(0), quads, 1, [&](Value q) {
    Value own = e.at(x, e.add(e.mulC(q, quad.bytes), word));
    Value d = e.at(sums, e.mulC(q, 128 * kQuad));
    Value row = e.at(f, e.mulC(q, kQuad * in.fRow));
    for (int64_t token = 0; token < kQuad; ++token) {
      Value xScale = e.broadcast(
          e.load(e.f32(), e.at(own, quad.scales + 4 * token), true));
      Value sum;
      if (!isFolded) // minus the sum of x, in 16 bits
        sum = e.broadcast(
            e.load(e.i32(), e.at(own, quad.sums + 4 * token), true));
      for (int64_t j = 0; j < 2; ++j) {
        Value product = e.load(ints(kLanes), e.at(d, 128 * token + 64 * j),
                               false, 64);
        if (!isFolded)
          product = e.add(product, pairs16(zero[j], sum));
        Value at = e.at(row, token * in.fRow + 64 * j);
        Value old = e.load(e.v16f32(), at, false, 64);
        e.store(e.fma(e.fmul(scale[j], xScale),
                      arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), product),
                      old),
                at, false, 64);
      }
    }
  });
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

/// The round's tokens times a pair of row tiles, over a chunk.
void AmxGemm::multiply(Value pair, Value x, Value f, Value quads, Value xGroup,
                       Value count, int64_t tokenTiles) {
  e.loop(e.c(0), count, 1, [&](Value g) {
    products(g, pair, tokenTiles);
    rescale(g, pair, x, f, quads, xGroup);
  });
}

void AmxGemm::emit() {
  int64_t chunk = xGroups / parts, round = kTokens / kQuad;
  panel = e.stack(kAmxTiles * tileBytes());
  tokens = e.stack(xGroups * tokenBytes());
  sums = e.stack(kTokens * 128);
  clear();
  e.loop(e.c(0), e.c(matrix.groups()), chunk, [&](Value first) {
    Value groups = e.umin(e.sub(e.c(matrix.groups()), first), e.c(chunk));
    unpack(first, groups);
    Value xGroup = e.mulC(first, parts), count = e.mulC(groups, parts);
    e.loop(e.c(0), in.quads, round, [&](Value q) {
      Value quads = e.umin(e.sub(in.quads, q), e.c(round));
      Value x = e.at(in.x, e.mulC(q, quad.bytes));
      Value f = e.at(in.f, e.mulC(q, kQuad * in.fRow));
      arrange(x, quads, xGroup, count);
      e.loop(e.c(0), pairs(), 1, [&](Value pair) {
        Value of = e.at(f, e.mulC(pair, 128));
        auto tokenTiles = [&](int64_t n) {
          multiply(pair, x, of, quads, xGroup, count, n);
        };
        e.ifElse(
            e.cmp(arith::CmpIPredicate::ugt, quads, e.c(round / 2)),
            [&] { tokenTiles(2); }, [&] { tokenTiles(1); });
      });
    });
  });
}

template <Layout layout>
static void gemmAmx(Emitter &e, const BlockOperands &in) {
  AmxGemm(e, in, layout).emit();
}

static const BlockKernel amxKernels[] = {
#define PLAIN_LAYOUT(name, layout)                                             \
  {"gemm_" name "_amx", "tile16_" name, SPARKC_ISA_AMX,                        \
   gemmAmx<Layout::layout>},
#include "codegen/microkernels/IntegerLayouts.def"
};

ArrayRef<BlockKernel> sparkc::amxBlockKernels() { return amxKernels; }

int64_t sparkc::tilesOfCall(const BlockKernel &kernel) {
  return kernel.onHost || kernel.isa == SPARKC_ISA_AMX ? kAmxTiles
                                                       : kBlockTiles;
}
