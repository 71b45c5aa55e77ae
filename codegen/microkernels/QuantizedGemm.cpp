//===- QuantizedGemm.cpp - Tiles of codes times a block of tokens ---------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What QuantizedDot.cpp does for one token, for many: for each activation
// group, in order of K, the exact integer
//
//   D = sum (code - zero) * x
//
// and then f = fma(scale * x_scale, float(D), f). Here the zero point goes into
// the codes when they are unpacked, and what makes activations unsigned into
// the start of the sum, which is then the same for all tokens:
//
//   D = -128 sum w  +  sum w * (x + 128),  w = code - zero
//
// Codes of 8 bits less a zero point would not fit a byte: there w = code - 128,
// and (128 - zero) * sum x is added to the start. Integers do not mind.
//
// Where there is a float minimum instead of a zero, w = code, and
// f = fma(minimum, x_scale * float(sum x), f) follows, of which the second
// factor is computed for a quad beforehand.
//
// The panel has one line of bytes for four columns.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/BlockWalk.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

/// Columns of a chunk where groups are no longer than 64. The panel of three
/// tiles, the activations that pass and f share the L1 cache.
static constexpr int64_t kChunk = 256;
/// A chunk has at least as many groups.
static constexpr int64_t kChunkGroups = 4;

namespace {

class QuantizedGemm : public BlockWalk {
public:
  QuantizedGemm(Emitter &e, const BlockOperands &in, Layout layout, Dot4 kind)
      : BlockWalk(e, in, layout, kind, kind == Dot4::VNNI512 ? kBlockTiles : 1,
                  kChunk, kChunkGroups, /*bf16=*/false) {
    if (hasMinimum(form))
      weightedSums = e.stack(xGroups * 4 * kQuad);
  }

private:
  // The panel: for each strip of `tilesAtOnce` tiles and each activation group
  // the lines of w, [column / 4][tile], then a line a tile each of scales, of
  // starts, and of what is multiplied by sum x: integers or minima.
  int64_t groupLines() const { return in.xGroup / 4 * tilesAtOnce; }
  int64_t groupBytes() const override {
    bool third = usesSums() || hasMinimum(form);
    return 64 * (groupLines() + (third ? 3 : 2) * tilesAtOnce);
  }
  int64_t lineAt(int64_t column, int64_t tile) const {
    return 64 * (column / 4 * tilesAtOnce + tile);
  }
  int64_t scaleAt(int64_t tile) const { return 64 * (groupLines() + tile); }
  int64_t startAt(int64_t tile) const {
    return 64 * (groupLines() + tilesAtOnce + tile);
  }
  int64_t factorAt(int64_t tile) const {
    return 64 * (groupLines() + 2 * tilesAtOnce + tile);
  }
  bool usesSums() const { return bits == 8; }

  void unpackGroup(Value batch, Value inBatch, Value lines,
                   Value out) override;
  Value unpackPart(Value lines, int64_t k, Value less, Value out);
  void prepare(Value x, Value xGroup, Value count) override;
  SmallVector<Value> group(Value panel, Value x, Value index, Value g,
                           ValueRange f) override;

  /// x_scale * float(sum x) of a quad, [activation group][token]; of forms with
  /// minima.
  Value weightedSums;
};

} // namespace

/// One activation group, from column k of `lines` on: code - `less` to the lines
/// at `out`. Returns the sum of the codes.
Value QuantizedGemm::unpackPart(Value lines, int64_t k, Value less,
                                Value out) {
  VectorType wide = ints(kLanes);
  Value pairs = e.c(wide, 0x00ff00ff);
  auto both = [&](Value x, Value mask) -> Value {
    return arith::AndIOp::create(e.b, e.loc, x, mask);
  };
  auto right = [&](Value x, int64_t by) -> Value {
    return arith::ShRUIOp::create(e.b, e.loc, x, e.c(wide, by));
  };
  auto cast = [&](VectorType type, Value x) -> Value {
    return vector::BitCastOp::create(e.b, e.loc, type, x);
  };
  Value lessBytes =
      cast(bytes(4 * kLanes), e.mul(less, e.c(wide, 0x01010101)));
  // As many codes as fit are added byte by byte, then in 16 bits.
  const int64_t fit = 255 / ((1 << bits) - 1);
  Value inBytes, inWords = e.c(wide, 0);
  int64_t added = 0;
  columns(lines, k, in.xGroup, 1, [&](int64_t i, int64_t, Value codes) {
    Value w = arith::SubIOp::create(e.b, e.loc, cast(bytes(4 * kLanes), codes),
                                    lessBytes);
    e.store(cast(wide, w), e.at(out, lineAt(i, 0)), false, 64);
    inBytes = added++ % fit ? e.add(inBytes, codes) : codes;
    if (added % fit && i + 4 < in.xGroup)
      return;
    inWords = e.add(inWords, e.add(both(inBytes, pairs),
                                   both(right(inBytes, 8), pairs)));
  });
  return e.add(both(inWords, e.c(wide, 0xffff)), right(inWords, 16));
}

void QuantizedGemm::unpackGroup(Value batch, Value inBatch, Value lines,
                                Value to) {
  Factors factors = this->factors(batch);
  Value scale = scales(batch, inBatch, factors);
  Value zero =
      hasMinimum(form) ? e.c(ints(kLanes), 0) : zeros(batch, inBatch);
  // What is taken from each code.
  Value less = usesSums() ? e.c(ints(kLanes), 128) : zero;
  for (int64_t part = 0; part < parts; ++part) {
    Value out = e.at(to, part * groupBytes());
    Value sum = unpackPart(lines, part * in.xGroup, less, out);
    e.store(scale, e.at(out, scaleAt(0)), false, 64);
    Value all = e.mul(less, e.c(ints(kLanes), in.xGroup));
    e.store(e.mul(e.sub(all, sum), e.c(ints(kLanes), 128)),
            e.at(out, startAt(0)), false, 64);
    // Times the negated sum of the quad.
    if (usesSums())
      e.store(e.sub(zero, e.c(ints(kLanes), 128)), e.at(out, factorAt(0)),
              false, 64);
    if (hasMinimum(form))
      e.store(minima(batch, inBatch, factors), e.at(out, factorAt(0)), false,
              64);
  }
}

/// x_scale * float(sum x) for `count` activation groups of a quad. What is
/// stored of a sum is its negative, as an int16.
void QuantizedGemm::prepare(Value x, Value xGroup, Value count) {
  if (!hasMinimum(form))
    return;
  Value first = e.mulC(xGroup, 4 * kQuad);
  Value scales = e.at(x, e.addC(first, quad.scales));
  Value sums = e.at(x, e.addC(first, quad.sums));
  VectorType four = e.vec(e.i32(), kQuad), floats = e.vec(e.f32(), kQuad);
  Value sixteen = e.c(four, 16);
  e.loop(e.c(0), count, 1, [&](Value g) {
    Value word = e.mulC(g, 4 * kQuad);
    Value sum = e.load(four, e.at(sums, word), true);
    sum = arith::ShRSIOp::create(
        e.b, e.loc, arith::ShLIOp::create(e.b, e.loc, sum, sixteen), sixteen);
    sum = e.sub(e.c(four, 0), sum);
    Value scale = e.load(floats, e.at(scales, word), true);
    e.store(e.fmul(scale, arith::SIToFPOp::create(e.b, e.loc, floats, sum)),
            e.at(weightedSums, word));
  });
}

/// One activation group: f of [tile][token].
SmallVector<Value> QuantizedGemm::group(Value panel, Value x, Value index,
                                        Value g, ValueRange f) {
  Value xs = e.at(x, e.mulC(index, 4 * in.xGroup)), word = e.mulC(index, 16);
  Value scales = e.at(x, e.addC(word, quad.scales));
  Value sums = e.at(x, e.addC(word, quad.sums));
  Value weighted;
  if (hasMinimum(form))
    weighted = e.at(weightedSums, e.mulC(g, 4 * kQuad));
  int64_t n = tilesAtOnce * kQuad;
  SmallVector<Sums> d(n);
  for (int64_t token = 0; token < kQuad; ++token)
    for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
      for (int64_t half = 0; half < halves(); ++half) {
        Value start = line(panel, startAt(tile), half, lanes());
        if (usesSums()) {
          Value sum = e.load(e.i32(), e.at(sums, 4 * token), true);
          start = e.add(start,
                        pairs16(line(panel, factorAt(tile), half, lanes()),
                                e.broadcast(sum, lanes())));
        }
        d[tile * kQuad + token].push_back(start);
      }
  for (int64_t k = 0; k < in.xGroup; k += 4)
    for (int64_t half = 0; half < halves(); ++half) {
      SmallVector<Value> w;
      for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
        w.push_back(line(panel, lineAt(k, tile), half, lanes()));
      for (int64_t token = 0; token < kQuad; ++token) {
        Value x = e.broadcast(
            e.load(e.i32(), e.at(xs, 4 * k + 4 * token), true), lanes());
        for (int64_t tile = 0; tile < tilesAtOnce; ++tile) {
          Value &sum = d[tile * kQuad + token][half];
          sum = dot4(sum, x, w[tile]);
        }
      }
    }
  SmallVector<Value> next;
  for (int64_t tile = 0; tile < tilesAtOnce; ++tile) {
    Value scale = e.load(e.v16f32(), e.at(panel, scaleAt(tile)), false, 64);
    for (int64_t token = 0; token < kQuad; ++token) {
      Value xScale =
          e.broadcast(e.load(e.f32(), e.at(scales, 4 * token), true));
      int64_t i = tile * kQuad + token;
      next.push_back(e.fma(
          e.fmul(scale, xScale),
          arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), whole(d[i])), f[i]));
    }
    if (!hasMinimum(form))
      continue;
    Value minimum = e.load(e.v16f32(), e.at(panel, factorAt(tile)), false, 64);
    for (int64_t token = 0; token < kQuad; ++token) {
      Value &sum = next[tile * kQuad + token];
      sum = e.fma(minimum,
                  e.broadcast(e.load(e.f32(), e.at(weighted, 4 * token))), sum);
    }
  }
  return next;
}

template <Layout layout, Dot4 kind>
static void gemmQuantized(Emitter &e, const BlockOperands &in) {
  QuantizedGemm(e, in, layout, kind).emit();
}

static const BlockKernel quantizedGemms[] = {
#define INTEGER_LAYOUT(name, layout)                                           \
  {"gemm_" name "_avx2", "tile16_" name, SPARKC_ISA_AVX2,                      \
   gemmQuantized<Layout::layout, Dot4::AVX2>},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"gemm_" name "_avxvnni", "tile16_" name, SPARKC_ISA_AVXVNNI,                \
   gemmQuantized<Layout::layout, Dot4::VNNI256>},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"gemm_" name "_avx512vnni", "tile16_" name, SPARKC_ISA_AVX512VNNI,          \
   gemmQuantized<Layout::layout, Dot4::VNNI512>},
#include "codegen/microkernels/IntegerLayouts.def"
};

ArrayRef<BlockKernel> sparkc::quantizedBlockKernels() { return quantizedGemms; }
