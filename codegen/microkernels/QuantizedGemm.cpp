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
// Columns go in chunks. A chunk of three tiles is unpacked once to a panel that
// stays in the L1 cache, one line of bytes for four columns, and all quads of
// tokens pass over it: with 512-bit registers three tiles by four tokens at
// once, with 256 bits one by four. In between f waits in memory.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/QuantizedTile.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

/// Columns of a chunk where groups are no longer than 64. The panel of three
/// tiles, the activations that pass and f share the L1 cache.
static constexpr int64_t kChunk = 256;
/// A chunk has at least as many groups.
static constexpr int64_t kChunkGroups = 4;
/// Lines of each tile's next chunk to prefetch at every quad: all of them are
/// there after 18 quads of 4-bit codes.
static constexpr int64_t kPrefetchLines = 2;

namespace {

class QuantizedGemm : QuantizedTile {
public:
  QuantizedGemm(Emitter &e, const BlockOperands &in, Layout layout, Dot4 kind)
      : QuantizedTile(e, layout, in.cols, in.group, kind), in(in),
        quad(in.cols, in.xGroup), parts(in.group / in.xGroup),
        tilesAtOnce(kind == Dot4::VNNI512 ? kBlockTiles : 1),
        xGroups(std::max(kChunk / in.group, kChunkGroups) * parts),
        stripBytes(xGroups * groupBytes()) {}
  void emit();

private:
  // The panel: for each strip of `tilesAtOnce` tiles and each activation group
  // the lines of w, [column / 4][tile], then a line a tile each of scales, of
  // starts, and of what is multiplied by sum x: integers or minima.
  int64_t groupLines() const { return in.xGroup / 4 * tilesAtOnce; }
  int64_t groupBytes() const {
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

  void clear();
  void unpack(Value firstGroup, Value groups);
  Value unpackGroup(Value lines, int64_t k, Value less, Value out);
  void multiply(Value strip, Value x, Value f, Value xGroup, Value count);
  void weighSums(Value scales, Value sums, Value count);
  SmallVector<Value> group(Value panel, Value xs, Value scales, Value sums,
                           Value weighted, ValueRange f);

  const BlockOperands &in;
  QuadLayout quad;
  /// Activation groups of a group of weights.
  int64_t parts;
  int64_t tilesAtOnce;
  /// Activation groups of a chunk.
  int64_t xGroups;
  int64_t stripBytes;
  Value panel;
  /// x_scale * float(sum x) of a quad, [activation group][token]; of forms with
  /// minima.
  Value weightedSums;
};

} // namespace

/// f = 0.
void QuantizedGemm::clear() {
  e.loop(e.c(0), e.mulC(in.quads, kQuad), 1, [&](Value token) {
    for (int64_t tile = 0; tile < kBlockTiles; ++tile)
      e.store(e.zero16(),
              e.at(in.f, e.addC(e.mulC(token, in.fRow), 64 * tile)));
  });
}

/// One activation group, from column k of `lines` on: code - `less` to the lines
/// at `out`. Returns the sum of the codes.
Value QuantizedGemm::unpackGroup(Value lines, int64_t k, Value less,
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

/// Groups [firstGroup, firstGroup + groups) of the tiles, to the panel.
void QuantizedGemm::unpack(Value firstGroup, Value groups) {
  e.loop(e.c(0), e.c(kBlockTiles), 1, [&](Value tile) {
    // In place of a tile that is not there, the last one.
    Value source = e.umin(tile, e.addC(in.count, -1));
    Value packed = e.at(in.tiles, e.mulC(source, matrix.tileBytes()));
    Value to = e.at(panel, e.add(e.mulC(e.divC(tile, tilesAtOnce), stripBytes),
                                 e.mulC(e.remC(tile, tilesAtOnce), 64)));
    e.loop(e.c(0), groups, 1, [&](Value g) {
      Value index = e.add(firstGroup, g);
      Value batch = e.at(
          packed,
          e.mulC(e.divC(index, matrix.batchGroups()), matrix.batchBytes()));
      Value inBatch = e.remC(index, matrix.batchGroups());
      Factors factors = this->factors(batch);
      Value scale = scales(batch, inBatch, factors);
      Value zero = hasMinimum(form) ? e.c(ints(kLanes), 0)
                                    : zeros(batch, inBatch);
      // What is taken from each code.
      Value less = usesSums() ? e.c(ints(kLanes), 128) : zero;
      Value lines =
          e.at(batch, e.addC(e.mulC(inBatch, 64 * matrix.groupLines()),
                             matrix.headBytes()));
      for (int64_t part = 0; part < parts; ++part) {
        Value out =
            e.at(to, e.mulC(e.addC(e.mulC(g, parts), part), groupBytes()));
        Value sum = unpackGroup(lines, part * in.xGroup, less, out);
        e.store(scale, e.at(out, scaleAt(0)), false, 64);
        Value all = e.mul(less, e.c(ints(kLanes), in.xGroup));
        e.store(e.mul(e.sub(all, sum), e.c(ints(kLanes), 128)),
                e.at(out, startAt(0)), false, 64);
        // Times the negated sum of the quad.
        if (usesSums())
          e.store(e.sub(zero, e.c(ints(kLanes), 128)), e.at(out, factorAt(0)),
                  false, 64);
        if (hasMinimum(form))
          e.store(minima(batch, inBatch, factors), e.at(out, factorAt(0)),
                  false, 64);
      }
    });
  });
}

/// x_scale * float(sum x) for `count` activation groups of a quad. What is
/// stored of a sum is its negative, as an int16.
void QuantizedGemm::weighSums(Value scales, Value sums, Value count) {
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
SmallVector<Value> QuantizedGemm::group(Value panel, Value xs, Value scales,
                                        Value sums, Value weighted,
                                        ValueRange f) {
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

/// A quad's activation groups [xGroup, xGroup + count) times a strip.
void QuantizedGemm::multiply(Value strip, Value x, Value f, Value xGroup,
                             Value count) {
  auto address = [&](int64_t tile, int64_t token) {
    return e.at(f, token * in.fRow + 64 * tile);
  };
  SmallVector<Value> sums;
  for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
    for (int64_t token = 0; token < kQuad; ++token)
      sums.push_back(e.load(e.v16f32(), address(tile, token), false, 64));
  if (hasMinimum(form)) {
    Value first = e.mulC(xGroup, 4 * kQuad);
    weighSums(e.at(x, e.addC(first, quad.scales)),
              e.at(x, e.addC(first, quad.sums)), count);
  }
  sums = e.reduce(e.c(0), count, 1, sums, [&](Value g, ValueRange carried) {
    Value index = e.add(xGroup, g);
    Value word = e.mulC(index, 16);
    return group(e.at(strip, e.mulC(g, groupBytes())),
                 e.at(x, e.mulC(index, 4 * in.xGroup)),
                 e.at(x, e.addC(word, quad.scales)),
                 e.at(x, e.addC(word, quad.sums)),
                 hasMinimum(form) ? e.at(weightedSums, e.mulC(g, 4 * kQuad))
                                  : Value(),
                 carried);
  });
  for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
    for (int64_t token = 0; token < kQuad; ++token)
      e.store(sums[tile * kQuad + token], address(tile, token), false, 64);
}

void QuantizedGemm::emit() {
  int64_t chunk = xGroups / parts;
  panel = e.stack(kBlockTiles / tilesAtOnce * stripBytes);
  if (hasMinimum(form))
    weightedSums = e.stack(xGroups * 4 * kQuad);
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
      Value from = e.at(panel, e.mulC(strip, stripBytes));
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

template <Layout layout, Dot4 kind>
static void gemmQuantized(Emitter &e, const BlockOperands &in) {
  QuantizedGemm(e, in, layout, kind).emit();
}

static const BlockKernel kernels[] = {
    {"gemm_q4_avx2", "tile16_q4", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q4, Dot4::AVX2>},
    {"gemm_q5_avx2", "tile16_q5", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q5, Dot4::AVX2>},
    {"gemm_q6_avx2", "tile16_q6", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q6, Dot4::AVX2>},
    {"gemm_q8_avx2", "tile16_q8", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q8, Dot4::AVX2>},
    {"gemm_q4m_avx2", "tile16_q4m", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q4M, Dot4::AVX2>},
    {"gemm_q5m_avx2", "tile16_q5m", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q5M, Dot4::AVX2>},
    {"gemm_q4k_avx2", "tile16_q4k", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q4K, Dot4::AVX2>},
    {"gemm_q5k_avx2", "tile16_q5k", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q5K, Dot4::AVX2>},
    {"gemm_q6k_avx2", "tile16_q6k", SPARKC_ISA_AVX2,
     gemmQuantized<Layout::Tile16Q6K, Dot4::AVX2>},
    {"gemm_q4_avxvnni", "tile16_q4", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q4, Dot4::VNNI256>},
    {"gemm_q5_avxvnni", "tile16_q5", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q5, Dot4::VNNI256>},
    {"gemm_q6_avxvnni", "tile16_q6", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q6, Dot4::VNNI256>},
    {"gemm_q8_avxvnni", "tile16_q8", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q8, Dot4::VNNI256>},
    {"gemm_q4m_avxvnni", "tile16_q4m", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q4M, Dot4::VNNI256>},
    {"gemm_q5m_avxvnni", "tile16_q5m", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q5M, Dot4::VNNI256>},
    {"gemm_q4k_avxvnni", "tile16_q4k", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q4K, Dot4::VNNI256>},
    {"gemm_q5k_avxvnni", "tile16_q5k", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q5K, Dot4::VNNI256>},
    {"gemm_q6k_avxvnni", "tile16_q6k", SPARKC_ISA_AVXVNNI,
     gemmQuantized<Layout::Tile16Q6K, Dot4::VNNI256>},
    {"gemm_q4_avx512vnni", "tile16_q4", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q4, Dot4::VNNI512>},
    {"gemm_q5_avx512vnni", "tile16_q5", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q5, Dot4::VNNI512>},
    {"gemm_q6_avx512vnni", "tile16_q6", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q6, Dot4::VNNI512>},
    {"gemm_q8_avx512vnni", "tile16_q8", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q8, Dot4::VNNI512>},
    {"gemm_q4m_avx512vnni", "tile16_q4m", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q4M, Dot4::VNNI512>},
    {"gemm_q5m_avx512vnni", "tile16_q5m", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q5M, Dot4::VNNI512>},
    {"gemm_q4k_avx512vnni", "tile16_q4k", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q4K, Dot4::VNNI512>},
    {"gemm_q5k_avx512vnni", "tile16_q5k", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q5K, Dot4::VNNI512>},
    {"gemm_q6k_avx512vnni", "tile16_q6k", SPARKC_ISA_AVX512VNNI,
     gemmQuantized<Layout::Tile16Q6K, Dot4::VNNI512>},
};

ArrayRef<BlockKernel> sparkc::quantizedBlockKernels() { return kernels; }
