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
// Columns go in chunks, row tiles in pairs. A chunk of a pair is unpacked once to
// a panel that stays in the L1 cache; all tokens pass over it, 32 at a time. Two
// tiles of A by two of B make four sums: all eight tile registers. Of a few
// groups first all products are made, then f is changed by each in turn while it
// stays in registers: side by side they took longer.
//
// Tiles are only ever loaded in full: of A from the block, which lies token by
// token, or where fewer than 32 tokens are left from a copy of their columns in
// this function's stack frame; of B from the panel. What there has no use is
// computed of whatever lies there, and dropped; so is the second tile where
// there is an odd number of them. LLVM configures the tiles where the function
// begins and releases them where it ends.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/QuantizedTile.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

#include <deque>
#include <numeric>

using namespace mlir;
using namespace sparkc;

/// Tokens of a round: two tiles of A.
static constexpr int64_t kTokens = 32;
/// Columns of a chunk, where a batch of groups has no more.
static constexpr int64_t kChunk = 256;
/// Rows of a tile register, bytes of a row.
static constexpr int64_t kRows = 16, kRowBytes = 64;
/// Bytes of the sums of an activation group.
static constexpr int64_t kSumBytes = kTokens * 128;
/// Sums under way at most.
static constexpr size_t kUnderWay = 4;

namespace {

class AmxGemm : QuantizedTile {
public:
  AmxGemm(Emitter &e, const BlockOperands &in, Layout layout)
      : QuantizedTile(e, layout, in.cols, in.group, Dot4::VNNI512), in(in),
        qvec(in.cols, in.xGroup), parts(in.group / in.xGroup),
        xGroups(std::max(kChunk / in.group, matrix.batchGroups()) * parts),
        sumGroups(std::gcd(std::gcd(matrix.groups() * parts, xGroups), 4)),
        isFolded(bits < 8), converter(e.b.getContext()) {
    assert(in.xGroup >= 32 && "tiles have rows of 32 bytes at least");
  }
  void emit();

private:
  // The panel: for each row tile and each activation group the lines of codes,
  // then scales, then zero points where they are not folded into the codes.
  int64_t lineBytes() const { return 16 * in.xGroup; }
  int64_t groupBytes() const { return lineBytes() + (isFolded ? 64 : 128); }
  int64_t tileBytes() const { return xGroups * groupBytes(); }
  // Columns of a chunk.
  int64_t chunkBytes() const { return xGroups * in.xGroup; }
  /// Codes of a round's tokens: of the chunk's first group, and bytes a token.
  struct Rows {
    Value at, stride;
  };

  void clear();
  void unpack(Value firstTile, Value firstGroup, Value groups);
  void copy(Value x, Value quads, Value xGroup, Value count);
  void multiply(Rows codes, Value x, Value f, Value quads, Value xGroup,
                Value count, int64_t tokenTiles);
  void products(Value g, Rows codes, int64_t tokenTiles);
  void rescale(Value g, Value x, Value f, Value quads, Value xGroup);

  /// rows x cols elements at `address`, as the amx dialect names memory.
  Value memory(Value address, int64_t rows, int64_t cols, Type element,
               Value stride);
  Value load(Value address, int64_t rows, int64_t cols, Value stride);
  Value index0() { return arith::ConstantIndexOp::create(e.b, e.loc, 0); }

  const BlockOperands &in;
  QVecLayout qvec;
  /// Activation groups of a group of weights; of a chunk; those whose sums are
  /// there at a time, of which any chunk has a whole number.
  int64_t parts, xGroups, sumGroups;
  bool isFolded;
  LLVMTypeConverter converter;
  Value panel, tokens, sums;
};

} // namespace

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value AmxGemm::memory(Value address, int64_t rows, int64_t cols, Type element,
                      Value stride) {
  auto layout = StridedLayoutAttr::get(e.b.getContext(), 0,
                                       {ShapedType::kDynamic, int64_t(1)});
  auto type = MemRefType::get({rows, cols}, element, layout);
  Value descriptor = MemRefDescriptor::pack(
      e.b, e.loc, converter, type,
      {address, address, e.c(0), e.c(rows), e.c(cols), stride, e.c(1)});
  return UnrealizedConversionCastOp::create(e.b, e.loc, TypeRange{type},
                                            ValueRange{descriptor})
      .getResult(0);
}

Value AmxGemm::load(Value address, int64_t rows, int64_t cols, Value stride) {
  auto type = amx::TileType::get({rows, cols}, e.i8());
  return amx::TileLoadOp::create(e.b, e.loc, type,
                                 memory(address, rows, cols, e.i8(), stride),
                                 ValueRange{index0(), index0()});
}

/// `sumGroups` activation groups of 16 or 32 tokens by two row tiles: int32 sums,
/// for each group rows of tokens, the two tiles of a token side by side. A sum is
/// stored while those after it are under way: a store that waits for its own
/// holds up all that follows.
void AmxGemm::products(Value g, Rows codes, int64_t tokenTiles) {
  auto sumType = amx::TileType::get({kRows, kRows}, e.i32());
  Value a = e.at(codes.at, e.mulC(g, in.xGroup));
  Value b = e.at(panel, e.mulC(g, groupBytes()));
  Value second = e.at(a, e.mulC(codes.stride, kRows));
  int64_t depth = std::min(in.xGroup, kRowBytes);
  struct Sum {
    Value tile;
    int64_t at;
  };
  std::deque<Sum> pending;
  auto storeFirst = [&] {
    auto [tile, at] = pending.front();
    pending.pop_front();
    amx::TileStoreOp::create(
        e.b, e.loc, memory(e.at(sums, at), kRows, kRows, e.i32(), e.c(32)),
        ValueRange{index0(), index0()}, tile);
  };
  for (int64_t group = 0; group < sumGroups; ++group) {
    SmallVector<Value> sum(2 * tokenTiles);
    for (int64_t k = 0; k < in.xGroup; k += depth) {
      Value as, bs[2];
      bool isLast = k + depth == in.xGroup;
      for (int64_t i = 0; i < tokenTiles; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          if (k == 0 && pending.size() == kUnderWay)
            storeFirst();
          if (j == 0)
            as = load(e.at(i ? second : a, group * in.xGroup + k), kRows, depth,
                      codes.stride);
          if (i == 0)
            bs[j] = load(
                e.at(b, group * groupBytes() + j * tileBytes() + 16 * k),
                depth / 4, kRowBytes, e.c(kRowBytes));
          Value &own = sum[2 * i + j];
          if (k == 0)
            own = amx::TileZeroOp::create(e.b, e.loc, sumType);
          own = amx::TileMulIOp::create(e.b, e.loc, sumType, as, bs[j], own,
                                        /*isZextLhs=*/false,
                                        /*isZextRhs=*/!isFolded);
          if (isLast)
            pending.push_back(
                {own, group * kSumBytes + 128 * kRows * i + 64 * j});
        }
    }
  }
  while (!pending.empty())
    storeFirst();
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// f = 0.
void AmxGemm::clear() {
  e.loop(e.c(0), e.mulC(in.quads, kQuad), 1, [&](Value token) {
    for (int64_t tile = 0; tile < kMacroTiles; ++tile)
      e.store(e.zero16(),
              e.at(in.f, e.addC(e.mulC(token, in.fRow), 64 * tile)));
  });
}

/// Groups [firstGroup, firstGroup + groups) of the pair of row tiles from
/// `firstTile` on, to the panel.
void AmxGemm::unpack(Value firstTile, Value firstGroup, Value groups) {
  const int64_t chunkPacked =
      xGroups / parts / matrix.batchGroups() * matrix.batchBytes();
  e.loop(e.c(0), e.c(2), 1, [&](Value tile) {
    // In place of a tile that is not there, the last one.
    Value source = e.umin(e.add(firstTile, tile), e.addC(in.count, -1));
    Value packed = e.at(in.tiles, e.mulC(source, matrix.tileBytes()));
    Value to = e.at(panel, e.mulC(tile, tileBytes()));
    e.loop(e.c(0), groups, 1, [&](Value g) {
      Value index = e.add(firstGroup, g);
      Value batch = e.at(packed, e.mulC(e.divC(index, matrix.batchGroups()),
                                        matrix.batchBytes()));
      Value inBatch = e.remC(index, matrix.batchGroups());
      Value scale = scales(batch, inBatch, {}), zero = zeros(batch, inBatch);
      Value lines =
          e.at(batch, e.addC(e.mulC(inBatch, 64 * matrix.groupLines()),
                             matrix.headBytes()));
      // Those of the next chunk.
      for (int64_t i = 0; i < matrix.groupLines(); ++i)
        e.prefetch(e.at(lines, chunkPacked + 64 * i), Emitter::Locality::L2);
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

/// `count` activation groups from xGroup on, of the tokens of `quads` quads at
/// `x`, to `tokens`. A multiple of 128 codes is there of each.
void AmxGemm::copy(Value x, Value quads, Value xGroup, Value count) {
  e.loop(e.c(0), e.mulC(quads, kQuad), 1, [&](Value token) {
    Value from = e.at(x, e.add(e.mulC(token, qvec.bytes),
                               e.mulC(xGroup, in.xGroup)));
    Value to = e.at(tokens, e.mulC(token, chunkBytes()));
    e.loop(e.c(0), e.mulC(count, in.xGroup), kRowBytes, [&](Value i) {
      e.store(e.load(bytes(kRowBytes), e.at(from, i), true), e.at(to, i), false,
              64);
    });
  });
}

/// f of the round's tokens, and of a pair of row tiles: `sumGroups` activation
/// groups from g of the chunk on, whose sums are there.
void AmxGemm::rescale(Value g, Value x, Value f, Value quads, Value xGroup) {
  Value head = e.at(panel, e.addC(e.mulC(g, groupBytes()), lineBytes()));
  Value word = e.mulC(e.add(xGroup, g), 4);
  e.loop(e.c(0), quads, 1, [&](Value q) {
    Value own = e.at(x, e.add(e.mulC(q, kQuad * qvec.bytes), word));
    Value d = e.at(sums, e.mulC(q, 128 * kQuad));
    Value row = e.at(f, e.mulC(q, kQuad * in.fRow));
    auto cell = [&](int64_t i) {
      return e.at(row, i / 2 * in.fRow + i % 2 * 64);
    };
    SmallVector<Value> old;
    for (int64_t i = 0; i < 2 * kQuad; ++i)
      old.push_back(e.load(e.v16f32(), cell(i), false, 64));
    auto group = [&](Value h, ValueRange carried) {
      Value scales[2], zeros[2];
      Value at = e.at(head, e.mulC(h, groupBytes()));
      for (int64_t j = 0; j < 2; ++j) {
        scales[j] = e.load(e.v16f32(), e.at(at, j * tileBytes()), false, 64);
        if (!isFolded)
          zeros[j] = e.load(ints(kLanes), e.at(at, j * tileBytes() + 64), false,
                            64);
      }
      Value words = e.at(own, e.mulC(h, 4));
      Value products = e.at(d, e.mulC(h, kSumBytes));
      SmallVector<Value> next;
      for (int64_t token = 0; token < kQuad; ++token) {
        auto word = [&](Type type, int64_t part) {
          return e.broadcast(e.load(type, e.at(words, part + token * qvec.bytes), true));
        };
        Value xScale = word(e.f32(), qvec.scales);
        Value sum = isFolded ? Value() : word(e.i32(), qvec.sums);
        for (int64_t j = 0; j < 2; ++j) {
          Value product = e.load(
              ints(kLanes), e.at(products, 128 * token + 64 * j), false, 64);
          if (!isFolded)
            product = e.sub(product, pairs16(zeros[j], sum));
          next.push_back(e.fma(
              e.fmul(scales[j], xScale),
              arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), product),
              carried[2 * token + j]));
        }
      }
      return next;
    };
    SmallVector<Value> now = e.reduceRolled(sumGroups, old, group);
    for (int64_t i = 0; i < 2 * kQuad; ++i)
      e.store(now[i], cell(i), false, 64);
  });
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

/// The round's tokens times the row tiles, over a chunk.
void AmxGemm::multiply(Rows codes, Value x, Value f, Value quads, Value xGroup,
                       Value count, int64_t tokenTiles) {
  e.loop(e.c(0), count, sumGroups, [&](Value g) {
    products(g, codes, tokenTiles);
    rescale(g, x, f, quads, xGroup);
  });
}

void AmxGemm::emit() {
  int64_t chunk = xGroups / parts, round = kTokens / kQuad;
  panel = e.stack(2 * tileBytes());
  tokens = e.stack(kTokens * chunkBytes());
  sums = e.stack(sumGroups * kSumBytes);
  clear();
  e.loop(e.c(0), e.c(matrix.groups()), chunk, [&](Value first) {
    Value groups = e.umin(e.sub(e.c(matrix.groups()), first), e.c(chunk));
    Value xGroup = e.mulC(first, parts), count = e.mulC(groups, parts);
    // Tokens that are no whole round come last.
    Value rest = e.remC(in.quads, round);
    copy(e.at(in.x, e.mulC(e.sub(in.quads, rest), kQuad * qvec.bytes)), rest,
         xGroup, count);
    e.loop(e.c(0), in.count, 2, [&](Value tile) {
      unpack(tile, first, groups);
      e.loop(e.c(0), in.quads, round, [&](Value q) {
        Value quads = e.umin(e.sub(in.quads, q), e.c(round));
        Value x = e.at(in.x, e.mulC(q, kQuad * qvec.bytes));
        Value f = e.at(in.f, e.add(e.mulC(q, kQuad * in.fRow),
                                   e.mulC(tile, kRowBytes)));
        Value isWhole = e.cmp(arith::CmpIPredicate::eq, quads, e.c(round));
        Rows codes{
            e.select(isWhole, e.at(x, e.mulC(xGroup, in.xGroup)), tokens),
            e.select(isWhole, e.c(qvec.bytes), e.c(chunkBytes()))};
        auto tokenTiles = [&](int64_t n) {
          multiply(codes, x, f, quads, xGroup, count, n);
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
   gemmAmx<Layout::layout>, /*onHost=*/false, /*pairs=*/false,                 \
   /*features=*/0, kMacroTiles, /*byToken=*/true},
#include "codegen/microkernels/IntegerLayouts.def"
};

ArrayRef<BlockKernel> sparkc::amxBlockKernels() { return amxKernels; }
