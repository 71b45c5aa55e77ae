//===- PairGemm.cpp - Tiles of codes times a block in bf16 ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What PairDot.cpp does for one token, for many, by the same operations in the
// same order. The panel has a line of pairs of bf16, or two of floats, for each
// two columns.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/BlockWalk.h"
#include "codegen/microkernels/PairCodes.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

/// Pairs of columns in an iteration of the loop over a group.
static constexpr int64_t kUnrolled = 8;

namespace {

class PairGemm : public BlockWalk {
public:
  PairGemm(Emitter &e, const BlockOperands &in, Layout layout, PairDot how)
      : BlockWalk(e, in, layout, partsOf(how),
                  how == PairDot::BF16x32 ? kBlockTiles : 1,
                  how == PairDot::BF16x32 ? 256 : 128, /*chunkGroups=*/1,
                  /*bf16=*/true),
        codes(e, layout, in.cols, in.group, how) {}

private:
  // The panel: for each strip of tiles and each activation group the lines of
  // pairs, [pair][vector of the pair][tile], then a line a tile each of scales
  // and of what is multiplied by sum x.
  int64_t pairBytes() const { return 64 * codes.perPair() * tilesAtOnce; }
  int64_t scaleAt(int64_t tile) const {
    return pairBytes() * in.xGroup / 2 + 64 * tile;
  }
  int64_t factorAt(int64_t tile) const {
    return scaleAt(tile) + 64 * tilesAtOnce;
  }
  int64_t groupBytes() const override {
    return pairBytes() * in.xGroup / 2 + 2 * 64 * tilesAtOnce;
  }
  void unpackGroup(Value batch, Value inBatch, Value lines,
                   Value out) override;
  SmallVector<Value> group(Value panel, Value x, Value index, Value g,
                           ValueRange f) override;
  SmallVector<Value> chains(Value panel, Value xs, int64_t half);

  PairCodes codes;
};

} // namespace

void PairGemm::unpackGroup(Value batch, Value inBatch, Value lines, Value to) {
  Factors factors = this->factors(batch);
  Value scale = scales(batch, inBatch, factors), zero, minimum;
  if (hasMinimum(form))
    minimum = minima(batch, inBatch, factors);
  else
    zero = zeros(batch, inBatch);
  Value factor = codes.sumFactor(zero, minimum);
  for (int64_t part = 0; part < parts; ++part) {
    Value out = e.at(to, part * groupBytes());
    codes.pairs(lines, part * in.xGroup, in.xGroup,
                [&](int64_t i, int64_t half, const Pair &pair) {
                  for (auto [at, v] : llvm::enumerate(pair))
                    e.store(v,
                            e.at(out, i * pairBytes() + 64 * at * tilesAtOnce +
                                          half * 4 * lanes()),
                            false, 4 * lanes());
                });
    e.store(scale, e.at(out, scaleAt(0)), false, 64);
    e.store(factor, e.at(out, factorAt(0)), false, 64);
  }
}

/// Both chains of [tile][token] over one activation group, of a part of the rows.
SmallVector<Value> PairGemm::chains(Value panel, Value xs, int64_t half) {
  int64_t n = tilesAtOnce * kQuad, pairs = in.xGroup / 2;
  SmallVector<Value> zeros(2 * n, e.fconst(e.vec(e.f32(), lanes()), 0.0));
  return e.reduce(
      e.c(0), e.c(pairs), kUnrolled, zeros, [&](Value first, ValueRange sums) {
        SmallVector<Value> next(sums);
        Value lines = e.at(panel, e.mulC(first, pairBytes()));
        Value words = e.at(xs, e.mulC(first, 4 * kQuad));
        for (int64_t i = 0; i < kUnrolled; ++i) {
          SmallVector<Pair> w(tilesAtOnce);
          for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
            for (int64_t at = 0; at < codes.perPair(); ++at)
              w[tile].push_back(
                  e.load(codes.type(),
                         e.at(lines, i * pairBytes() +
                                         64 * (at * tilesAtOnce + tile) +
                                         half * 4 * lanes()),
                         false, 4 * lanes()));
          for (int64_t token = 0; token < kQuad; ++token) {
            Value x = e.load(e.i32(),
                             e.at(words, 4 * (i * kQuad + token)), true);
            for (int64_t tile = 0; tile < tilesAtOnce; ++tile) {
              Value &sum = next[i % 2 * n + tile * kQuad + token];
              sum = codes.multiply(sum, w[tile], x);
            }
          }
        }
        return next;
      });
}

/// One activation group: f of [tile][token].
SmallVector<Value> PairGemm::group(Value panel, Value x, Value index, Value,
                                   ValueRange f) {
  int64_t n = tilesAtOnce * kQuad;
  Value xs = e.at(x, e.mulC(index, 2 * kQuad * in.xGroup));
  SmallVector<Sums> parts(2 * n);
  for (int64_t half = 0; half < halves(); ++half)
    for (auto [all, sum] : llvm::zip_equal(parts, chains(panel, xs, half)))
      all.push_back(sum);
  Value sums = e.at(x, e.addC(e.mulC(index, 4 * kQuad), quad.sums));
  SmallVector<Value> next;
  for (int64_t tile = 0; tile < tilesAtOnce; ++tile) {
    Value scale = e.load(e.v16f32(), e.at(panel, scaleAt(tile)), false, 64);
    Value factor = e.load(e.v16f32(), e.at(panel, factorAt(tile)), false, 64);
    for (int64_t token = 0; token < kQuad; ++token) {
      int64_t i = tile * kQuad + token;
      Value xSum = e.load(e.f32(), e.at(sums, 4 * token), true);
      next.push_back(codes.fold(scale, factor,
                                e.fadd(whole(parts[i]), whole(parts[n + i])),
                                e.broadcast(xSum), f[i]));
    }
  }
  return next;
}

template <Layout layout, PairDot how>
static void gemm(Emitter &e, const BlockOperands &in) {
  PairGemm(e, in, layout, how).emit();
}

static const BlockKernel pairGemms[] = {
#define INTEGER_LAYOUT(name, layout)                                           \
  {"gemm_" name "_a16_avx2", "tile16_" name, SPARKC_ISA_AVX2,                  \
   gemm<Layout::layout, PairDot::F32x8>, /*onHost=*/false, /*pairs=*/true},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"gemm_" name "_a16_avx512", "tile16_" name, SPARKC_ISA_AVX512,              \
   gemm<Layout::layout, PairDot::F32x16>, /*onHost=*/false, /*pairs=*/true},
#include "codegen/microkernels/IntegerLayouts.def"
#define INTEGER_LAYOUT(name, layout)                                           \
  {"gemm_" name "_a16_avx512bf16", "tile16_" name, SPARKC_ISA_AVX512VNNI,      \
   gemm<Layout::layout, PairDot::BF16x32>, /*onHost=*/false, /*pairs=*/true,   \
   SPARKC_CPU_AVX512BF16},
#include "codegen/microkernels/IntegerLayouts.def"
};

ArrayRef<BlockKernel> sparkc::pairBlockKernels() { return pairGemms; }
