//===- Dot.cpp - A tile of rows times the activation ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are rows, so no sum crosses lanes. The products of column k go to chain
// k mod 4, in order of k; the result is (c0 + c1) + (c2 + c3). So a bf16 weight
// gives the same bits stored as bf16 or as f32.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

static Value sumChains(Emitter &e, ValueRange c) {
  return e.fadd(e.fadd(c[0], c[1]), e.fadd(c[2], c[3]));
}

static Value activation(Emitter &e, Value x, Value k) {
  return e.broadcast(e.load(e.f32(), e.at(x, e.mulC(k, 4))));
}

/// Walks the columns four at a time; `group` adds columns k .. k+count-1 to the
/// chains.
static Value
emitColumns(Emitter &e, int64_t cols,
            llvm::function_ref<void(Value k, int64_t count,
                                    SmallVectorImpl<Value> &chains)>
                group) {
  SmallVector<Value> chains(4, e.zero16());
  chains = e.reduceUnrolled(cols / 4, 4, chains, [&](Value i, ValueRange in) {
    SmallVector<Value> next(in);
    group(e.mulC(i, 4), 4, next);
    return next;
  });
  if (cols % 4)
    group(e.c(cols / 4 * 4), cols % 4, chains);
  return sumChains(e, chains);
}

static Value dotF32(Emitter &e, const TileOperands &in) {
  return emitColumns(
      e, in.cols, [&](Value k, int64_t count, SmallVectorImpl<Value> &chains) {
        Value line = e.at(in.tile, e.mulC(k, 64));
        Value xs = e.at(in.x, e.mulC(k, 4));
        for (int64_t i = 0; i < count; ++i)
          chains[i] = e.fma(e.load(e.v16f32(), e.at(line, 64 * i), false, 64),
                            activation(e, xs, e.c(i)), chains[i]);
      });
}

static Value dotBF16(Emitter &e, const TileOperands &in) {
  VectorType ints = e.vec(e.i32());
  return emitColumns(
      e, in.cols, [&](Value k, int64_t count, SmallVectorImpl<Value> &chains) {
        Value line = e.at(in.tile, e.mulC(k, 32));
        Value xs = e.at(in.x, e.mulC(k, 4));
        for (int64_t i = 0; i < count; i += 2) {
          // Column k in the low half of each lane, k + 1 in the high one.
          Value pair = e.load(ints, e.at(line, 32 * i), false, 64);
          Value low = arith::ShLIOp::create(e.b, e.loc, pair, e.c(ints, 16));
          Value high = arith::AndIOp::create(e.b, e.loc, pair,
                                             e.c(ints, int32_t(0xffff0000)));
          Value halves[] = {low, high};
          for (int64_t c = i; c < std::min(i + 2, count); ++c)
            chains[c] = e.fma(
                arith::BitcastOp::create(e.b, e.loc, e.v16f32(), halves[c - i]),
                activation(e, xs, e.c(c)), chains[c]);
        }
      });
}

static constexpr std::pair<StringLiteral, unsigned> isas[] = {
    {"avx2", SPARKC_ISA_AVX2},
    {"avxvnni", SPARKC_ISA_AVXVNNI},
    {"avx512", SPARKC_ISA_AVX512},
    {"avx512vnni", SPARKC_ISA_AVX512VNNI},
    {"amx", SPARKC_ISA_AMX},
};

std::optional<unsigned> sparkc::isaFromName(StringRef name) {
  for (auto &[known, isa] : isas)
    if (name == known)
      return isa;
  return std::nullopt;
}

StringRef sparkc::isaName(unsigned isa) {
  for (auto &[name, known] : isas)
    if (isa == known)
      return name;
  return "unknown";
}

static SmallVector<TileKernel> makeTable() {
  SmallVector<TileKernel> table{
      {"dot_f32", "tile16_f32", SPARKC_ISA_AVX2, dotF32},
      {"dot_bf16", "tile16_bf16", SPARKC_ISA_AVX2, dotBF16},
  };
  table.append(quantizedTileKernels().begin(), quantizedTileKernels().end());
  return table;
}

ArrayRef<TileKernel> sparkc::tileKernels() {
  static const SmallVector<TileKernel> table = makeTable();
  return table;
}

const TileKernel *sparkc::findTileKernel(StringRef name) {
  for (const TileKernel &kernel : tileKernels())
    if (name == kernel.name)
      return &kernel;
  return nullptr;
}

/// AVX-512 machines without VNNI have no AVX-VNNI either.
static bool runsOn(unsigned kernel, unsigned machine) {
  return machine >= kernel &&
         !(machine == SPARKC_ISA_AVX512 && kernel == SPARKC_ISA_AVXVNNI);
}

const TileKernel *sparkc::selectTileKernel(StringRef layout, unsigned isa) {
  const TileKernel *best = nullptr;
  for (const TileKernel &kernel : tileKernels())
    if (layout == kernel.layout && runsOn(kernel.isa, isa))
      best = &kernel;
  return best;
}
