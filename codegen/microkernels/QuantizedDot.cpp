//===- QuantizedDot.cpp - A tile of codes times int8 activations ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each activation group, in order of K, a lane takes the exact integer
//
//   D = sum (code - zero) * x = sum code * x  -  zero * sum x
//
// and then the one float operation f = fma(scale * x_scale, float(D), f). |D|
// is below 2^24, so float(D) is exact, and every instruction set gives the same
// bits. What differs between them is how four products are added to a lane.
//
// The body reads a tile forward, line by line, as PackedLayout.h lays it out:
// batches of four groups, each batch's scales and zero points first.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "codegen/weights/PackedLayout.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

/// Bytes ahead of the line being read that are prefetched.
static constexpr int64_t kPrefetchAhead = 4096;

namespace {

/// How an instruction set adds four products of bytes to each 32-bit lane.
enum class Dot4 { VNNI512, VNNI256, AVX2 };

/// 16 int32 sums: one vector, or two halves where registers have 256 bits.
using Sums = SmallVector<Value, 2>;

class QuantizedDot {
public:
  QuantizedDot(Emitter &e, const TileOperands &in, Layout layout, Dot4 kind)
      : e(e), in(in), kind(kind),
        matrix(PackedMatrix::plain(layout, kTileRows, in.cols, in.group)),
        qvec(in.cols, in.xGroup), bits(bitsPerWeight(layout)) {}
  Value emit();

private:
  VectorType bytes(int64_t n) { return e.vec(e.i8(), n); }
  VectorType ints(int64_t n) { return e.vec(e.i32(), n); }
  int64_t halves() const { return kind == Dot4::VNNI512 ? 1 : 2; }
  int64_t lanes() const { return kLanes / halves(); }

  /// One vector (or half) of a line, as int32 lanes.
  Value line(Value base, int64_t offset, int64_t half) {
    return e.load(ints(lanes()), e.at(base, offset + 4 * lanes() * half), false,
                  4 * lanes());
  }
  Value mask(Value v, int64_t perByte) {
    return arith::AndIOp::create(
        e.b, e.loc, v, e.c(v.getType(), int32_t(perByte * 0x01010101)));
  }
  Value shift(Value v, int64_t left) {
    if (!left)
      return v;
    Value by = e.c(v.getType(), std::abs(left));
    return left > 0 ? Value(arith::ShLIOp::create(e.b, e.loc, v, by))
                    : Value(arith::ShRUIOp::create(e.b, e.loc, v, by));
  }
  Value either(Value x, Value y) {
    return arith::OrIOp::create(e.b, e.loc, x, y);
  }

  void dot4(Sums &sums, int64_t half, Value codes, Value x);
  Value dot4AVX2(Value codes, Value x);
  /// Four activations, columns k .. k+3 from `xs`, in every lane.
  Value activations(Value xs, int64_t k);
  /// Adds the products of columns [k, k + count) of a group.
  void columns(Sums &low, Sums &high, Value lines, Value xs, int64_t k,
               int64_t count);
  Sums zeroSums() { return Sums(halves(), e.c(ints(lanes()), 0)); }
  Value whole(Sums &sums);
  Value group(Value batch, Value index, int64_t inBatch, Value f);
  Value batchOf(Value batch, Value firstGroup, int64_t groups, Value f);
  void prefetchBatch(Value batch, int64_t groups);

  Emitter &e;
  const TileOperands &in;
  Dot4 kind;
  PackedMatrix matrix;
  QVecLayout qvec;
  unsigned bits;
};

} // namespace

Value QuantizedDot::activations(Value xs, int64_t k) {
  return e.broadcast(e.load(e.i32(), e.at(xs, k)), lanes());
}

/// Without VNNI: pairs in 16 bits, then pairs of pairs. vpmaddubsw saturates
/// for 8-bit codes, which are therefore widened, even and odd bytes apart.
Value QuantizedDot::dot4AVX2(Value codes, Value x) {
  VectorType words = e.vec(e.b.getI16Type(), 16);
  auto cast = [&](VectorType type, Value v) -> Value {
    return vector::BitCastOp::create(e.b, e.loc, type, v);
  };
  auto pairs = [&](Value a, Value b) {
    return e.intrinsic("llvm.x86.avx2.pmadd.wd", ints(8), {a, b});
  };
  if (bits < 8) {
    Value sums = e.intrinsic("llvm.x86.avx2.pmadd.ub.sw", words,
                             {cast(bytes(32), codes), cast(bytes(32), x)});
    return pairs(sums, e.c(words, 1));
  }
  Value eight = e.c(words, 8);
  Value codeWords = cast(words, codes), xWords = cast(words, x);
  Value codeEven =
      arith::AndIOp::create(e.b, e.loc, codeWords, e.c(words, 0x00ff));
  Value codeOdd = arith::ShRUIOp::create(e.b, e.loc, codeWords, eight);
  Value xEven = arith::ShRSIOp::create(
      e.b, e.loc, arith::ShLIOp::create(e.b, e.loc, xWords, eight), eight);
  Value xOdd = arith::ShRSIOp::create(e.b, e.loc, xWords, eight);
  return e.add(pairs(codeEven, xEven), pairs(codeOdd, xOdd));
}

void QuantizedDot::dot4(Sums &sums, int64_t half, Value codes, Value x) {
  Value &sum = sums[half];
  if (kind == Dot4::AVX2) {
    sum = e.add(sum, dot4AVX2(codes, x));
    return;
  }
  int64_t n = 4 * lanes();
  Value codeBytes = vector::BitCastOp::create(e.b, e.loc, bytes(n), codes);
  Value xBytes = vector::BitCastOp::create(e.b, e.loc, bytes(n), x);
  sum = e.intrinsic(kind == Dot4::VNNI512 ? "llvm.x86.avx512.vpdpbusd.512"
                                          : "llvm.x86.avx512.vpdpbusd.256",
                    ints(lanes()), {sum, codeBytes, xBytes});
}

void QuantizedDot::columns(Sums &low, Sums &high, Value lines, Value xs,
                           int64_t k, int64_t count) {
  if (bits == 8) {
    for (int64_t i = 0; i < count; i += 4)
      for (int64_t half = 0; half < halves(); ++half)
        dot4(i % 8 ? high : low, half, line(lines, 64 * ((k + i) / 4), half),
             activations(xs, k + i));
    return;
  }
  // Blocks of `m` code lines, with a plane of their high bits in front.
  int64_t extra = bits - 4, m = extra ? 4 / extra : 1;
  int64_t perBlock = m + (extra ? 1 : 0);
  int64_t highBits = extra == 1 ? 0x10 : 0x30;
  for (int64_t i = 0; i < count; i += 8) {
    int64_t codeLine = (k + i) / 8, block = codeLine / m, inBlock = codeLine % m;
    int64_t at = 64 * (block * perBlock + (extra ? 1 : 0) + inBlock);
    for (int64_t half = 0; half < halves(); ++half) {
      Value v = line(lines, at, half);
      Value lo = mask(v, 0x0f), hi = mask(shift(v, -4), 0x0f);
      if (extra) {
        Value plane = line(lines, 64 * block * perBlock, half);
        lo = either(lo, mask(shift(plane, 4 - extra * inBlock), highBits));
        hi = either(hi, mask(shift(plane, -extra * inBlock), highBits));
      }
      dot4(low, half, lo, activations(xs, k + i));
      dot4(high, half, hi, activations(xs, k + i + 4));
    }
  }
}

Value QuantizedDot::whole(Sums &sums) {
  if (sums.size() == 1)
    return sums[0];
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < kLanes; ++i)
    order.push_back(i);
  return vector::ShuffleOp::create(e.b, e.loc, sums[0], sums[1], order);
}

/// Group `inBatch` of a batch; `index` is its number in the tile.
Value QuantizedDot::group(Value batch, Value index, int64_t inBatch, Value f) {
  Value scales = buildExtF16(
      e.b, e.loc,
      e.load(e.vec(e.b.getF16Type()), e.at(batch, 32 * inBatch), false, 32));
  Value zeros = arith::ExtUIOp::create(
      e.b, e.loc, ints(kLanes),
      e.load(bytes(kLanes), e.at(batch, kBatchZeroOffset + 16 * inBatch), false, 16));
  Value lines =
      e.at(batch, kBatchHeadBytes + 64 * matrix.groupLines() * inBatch);
  int64_t parts = in.group / in.xGroup;
  for (int64_t part = 0; part < parts; ++part) {
    Value xIndex = e.addC(e.mulC(index, parts), part);
    Value xs = e.at(in.x, e.mulC(index, in.group));
    Sums low = zeroSums(), high = zeroSums();
    columns(low, high, lines, xs, part * in.xGroup, in.xGroup);
    Value word = e.mulC(xIndex, 4);
    Value xSum = e.load(e.i32(), e.at(in.x, e.addC(word, qvec.sums)));
    Value xScale = e.load(e.f32(), e.at(in.x, e.addC(word, qvec.scales)));
    Value d = e.sub(e.add(whole(low), whole(high)),
                    e.mul(zeros, e.broadcast(xSum)));
    Value scale = e.fmul(scales, e.broadcast(xScale));
    f = e.fma(scale, arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), d), f);
  }
  return f;
}

void QuantizedDot::prefetchBatch(Value batch, int64_t groups) {
  int64_t bytes = kBatchHeadBytes + 64 * matrix.groupLines() * groups;
  for (int64_t at = 0; at < bytes; at += 64)
    e.prefetch(e.at(batch, kPrefetchAhead + at));
}

Value QuantizedDot::batchOf(Value batch, Value firstGroup, int64_t groups,
                            Value f) {
  prefetchBatch(batch, groups);
  for (int64_t g = 0; g < groups; ++g)
    f = group(batch, e.addC(firstGroup, g), g, f);
  return f;
}

Value QuantizedDot::emit() {
  // Where K is short, all of its activations would be read once for all tiles,
  // to be spilled; behind a fence (no instruction) each tile reads its own,
  // folded into the products.
  LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::seq_cst,
                        "singlethread");
  int64_t groups = matrix.groups(), batches = groups / kBatchGroups;
  SmallVector<Value> f{e.zero16()};
  if (batches)
    f = e.reduce(e.c(0), e.c(batches), 1, f, [&](Value i, ValueRange carried) {
      return SmallVector<Value>{
          batchOf(e.at(in.tile, e.mulC(i, matrix.batchBytes())),
                  e.mulC(i, kBatchGroups), kBatchGroups, carried[0])};
    });
  if (int64_t rest = groups % kBatchGroups)
    f[0] = batchOf(e.at(in.tile, batches * matrix.batchBytes()),
                   e.c(batches * kBatchGroups), rest, f[0]);
  return f[0];
}

template <Layout layout, Dot4 kind>
static Value dotQuantized(Emitter &e, const TileOperands &in) {
  return QuantizedDot(e, in, layout, kind).emit();
}

static const TileKernel kernels[] = {
    {"dot_q4_avx2", "tile16_q4", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q4, Dot4::AVX2>},
    {"dot_q5_avx2", "tile16_q5", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q5, Dot4::AVX2>},
    {"dot_q6_avx2", "tile16_q6", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q6, Dot4::AVX2>},
    {"dot_q8_avx2", "tile16_q8", SPARKC_ISA_AVX2,
     dotQuantized<Layout::Tile16Q8, Dot4::AVX2>},
    {"dot_q4_avxvnni", "tile16_q4", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q4, Dot4::VNNI256>},
    {"dot_q5_avxvnni", "tile16_q5", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q5, Dot4::VNNI256>},
    {"dot_q6_avxvnni", "tile16_q6", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q6, Dot4::VNNI256>},
    {"dot_q8_avxvnni", "tile16_q8", SPARKC_ISA_AVXVNNI,
     dotQuantized<Layout::Tile16Q8, Dot4::VNNI256>},
    {"dot_q4_avx512vnni", "tile16_q4", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q4, Dot4::VNNI512>},
    {"dot_q5_avx512vnni", "tile16_q5", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q5, Dot4::VNNI512>},
    {"dot_q6_avx512vnni", "tile16_q6", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q6, Dot4::VNNI512>},
    {"dot_q8_avx512vnni", "tile16_q8", SPARKC_ISA_AVX512VNNI,
     dotQuantized<Layout::Tile16Q8, Dot4::VNNI512>},
};

ArrayRef<TileKernel> sparkc::quantizedTileKernels() { return kernels; }
