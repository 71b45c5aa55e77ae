//===- Prologue.cpp - Norm, gate, rope table, embedding -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "codegen/weights/PackedLayout.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

Value sparkc::emitVec(Emitter &e, int64_t size) {
  int64_t padded = ceilDiv(size, 128) * 128;
  Value out = e.stack(padded * 4);
  for (int64_t i = size / kLanes * kLanes; i < padded; i += kLanes)
    e.store(e.zero16(), e.at(out, i * 4));
  return out;
}

void sparkc::emitRmsNorm(Emitter &e, Value x, Value weight, int64_t size,
                         double eps, Value out) {
  int64_t vectors = ceilDiv(size, kLanes);
  // Four chains of squares, vector i in chain i mod 4.
  SmallVector<Value> chains(4, e.zero16());
  auto square = [&](Value i, Value sum) {
    Value v = e.load(e.v16f32(), e.at(x, e.mulC(i, 64)), /*shared=*/true);
    return e.fma(v, v, sum);
  };
  int64_t fours = vectors / 4;
  if (fours)
    chains = e.reduce(e.c(0), e.c(fours * 4), 4, chains,
                      [&](Value i, ValueRange sums) {
                        SmallVector<Value> next;
                        for (int64_t u = 0; u < 4; ++u)
                          next.push_back(square(e.addC(i, u), sums[u]));
                        return next;
                      });
  for (int64_t i = fours * 4; i < vectors; ++i)
    chains[i % 4] = square(e.c(i), chains[i % 4]);
  Value sum = buildHorizontalSum16(
      e.b, e.loc,
      e.fadd(e.fadd(chains[0], chains[1]), e.fadd(chains[2], chains[3])));
  Value mean = e.fdiv(sum, e.fconst(e.f32(), double(size)));
  Value scale = e.broadcast(
      buildRsqrt(e.b, e.loc, e.fadd(mean, e.fconst(e.f32(), eps))));
  e.loop(e.c(0), e.c(vectors), 1, [&](Value i) {
    Value offset = e.mulC(i, 64);
    Value v = e.load(e.v16f32(), e.at(x, offset), /*shared=*/true);
    Value w = e.load(e.v16f32(), e.at(weight, offset));
    e.store(e.fmul(e.fmul(v, scale), w), e.at(out, offset));
  });
}

QVecLayout::QVecLayout(int64_t size, int64_t group, bool bf16) {
  int64_t padded = ceilDiv(size, 128) * 128;
  groups = padded / group;
  int64_t perPart = ceilDiv(groups * 4, 64) * 64;
  scales = padded * (bf16 ? 2 : 1);
  sums = scales + (bf16 ? 0 : perPart);
  bytes = sums + perPart;
}

void sparkc::emitRoundBF16(Emitter &e, Value x, int64_t size, int64_t group,
                           Value out) {
  QVecLayout layout(size, group, /*bf16=*/true);
  VectorType ints = e.vec(e.i32());
  auto both = [&](Value a, int64_t mask) -> Value {
    return arith::AndIOp::create(e.b, e.loc, a, e.c(ints, int32_t(mask)));
  };
  auto right16 = [&](Value a) -> Value {
    return arith::ShRUIOp::create(e.b, e.loc, a, e.c(ints, 16));
  };
  // Of each four elements the middle two change places.
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < kLanes; i += 4)
    order.append({i, i + 2, i + 1, i + 3});
  e.loop(e.c(0), e.c(layout.groups), 1, [&](Value g) {
    Value from = e.at(x, e.mulC(g, group * 4));
    Value to = e.at(out, e.mulC(g, group * 2));
    Value sum;
    for (int64_t i = 0; i < group / kLanes; ++i) {
      Value v = e.load(e.v16f32(), e.at(from, i * 64), /*shared=*/true);
      // In integers: the conversion of AVX512-BF16 flushes denormals.
      Value bits = arith::BitcastOp::create(e.b, e.loc, ints, v);
      Value even = e.add(e.add(bits, e.c(ints, 0x7fff)),
                         both(right16(bits), 1));
      Value isNaN =
          e.cmp(arith::CmpIPredicate::ugt, both(bits, 0x7fffffff),
                e.c(ints, 0x7f800000));
      Value quiet =
          arith::OrIOp::create(e.b, e.loc, bits, e.c(ints, 0x00400000));
      Value rounded = both(e.select(isNaN, quiet, even), 0xffff0000);
      Value f = arith::BitcastOp::create(e.b, e.loc, e.v16f32(), rounded);
      sum = sum ? e.fadd(sum, f) : f;
      Value halves = arith::TruncIOp::create(
          e.b, e.loc, e.vec(e.b.getI16Type()), right16(rounded));
      e.store(vector::ShuffleOp::create(e.b, e.loc, halves, halves, order),
              e.at(to, i * 32));
    }
    e.store(buildHorizontalSum16(e.b, e.loc, sum),
            e.at(out, e.addC(e.mulC(g, 4), layout.sums)));
  });
}

void sparkc::emitQuantize(Emitter &e, Value x, int64_t size, int64_t group,
                          Value out) {
  QVecLayout layout(size, group);
  VectorType ints = e.vec(e.i32());
  e.loop(e.c(0), e.c(layout.groups), 1, [&](Value g) {
    Value from = e.at(x, e.mulC(g, group * 4));
    SmallVector<Value> values;
    // Magnitudes are ordered as their bits are, NaN above all others: so the
    // scale of a group with a NaN is none either.
    Value largest;
    for (int64_t i = 0; i < group / kLanes; ++i) {
      Value v = e.load(e.v16f32(), e.at(from, i * 64), /*shared=*/true);
      values.push_back(v);
      Value bits = arith::AndIOp::create(
          e.b, e.loc, arith::BitcastOp::create(e.b, e.loc, ints, v),
          e.c(ints, 0x7fffffff));
      largest = largest ? Value(arith::MaxSIOp::create(e.b, e.loc, largest, bits))
                        : bits;
    }
    Value max = arith::BitcastOp::create(
        e.b, e.loc, e.f32(),
        vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::MAXSI,
                                    largest));
    // 127 / max must not overflow.
    Value empty = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT,
                                        max, e.fconst(e.f32(), 0x1p-120));
    Value inverse = e.select(empty, e.fconst(e.f32(), 0),
                             e.fdiv(e.fconst(e.f32(), 127), max));
    Value sum;
    for (auto [i, v] : llvm::enumerate(values)) {
      Value scaled = math::RoundEvenOp::create(
          e.b, e.loc, e.fmul(v, e.broadcast(inverse)));
      Value code = arith::FPToSIOp::create(e.b, e.loc, ints, scaled);
      e.store(arith::TruncIOp::create(e.b, e.loc, e.vec(e.i8()), code),
              e.at(out, e.addC(e.mulC(g, group), i * kLanes)));
      sum = sum ? e.add(sum, code) : code;
    }
    Value word = e.mulC(g, 4);
    e.store(e.fdiv(max, e.fconst(e.f32(), 127)),
            e.at(out, e.addC(word, layout.scales)));
    e.store(vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD, sum),
            e.at(out, e.addC(word, layout.sums)));
  });
}

void sparkc::emitHeadGate(Emitter &e, Value in, Value gate, int64_t heads,
                          int64_t headDim, Value out) {
  Value sigmoids = e.stack(alignTo16(heads) * 4);
  for (int64_t i = 0; i < heads; i += kLanes)
    e.store(buildSigmoid(e.b, e.loc,
                         e.load(e.v16f32(), e.at(gate, i * 4), /*shared=*/true)),
            e.at(sigmoids, i * 4));
  // Heads in order: where headDim is no multiple of 16 the last vector of a
  // head spills into the next one, which then writes its own.
  e.loop(e.c(0), e.c(heads), 1, [&](Value h) {
    Value scale =
        e.broadcast(e.load(e.f32(), e.at(sigmoids, e.mulC(h, 4))));
    Value base = e.mulC(h, headDim * 4);
    for (int64_t d = 0; d < headDim; d += kLanes) {
      Value offset = e.addC(base, d * 4);
      Value v = e.load(e.v16f32(), e.at(in, offset), /*shared=*/true);
      e.store(e.fmul(v, scale), e.at(out, offset));
    }
  });
}

void sparkc::emitRopeTable(Emitter &e, Value frequencies, int64_t period,
                           Value out) {
  Type f64 = e.b.getF64Type();
  Value position =
      e.broadcast(arith::UIToFPOp::create(e.b, e.loc, f64, e.pos()));
  e.loop(e.c(0), e.c(period), kLanes, [&](Value i) {
    Value frequency =
        e.load(e.vec(f64), e.at(frequencies, e.mulC(i, 8)));
    SinCos sc = buildSinCos(e.b, e.loc, e.fmul(position, frequency));
    Value offset = e.mulC(i, 4);
    e.store(sc.cos, e.at(out, offset));
    e.store(sc.sin, e.at(out, e.addC(offset, period * 4)));
  });
}

void sparkc::emitEmbed(Emitter &e, Value weight, StringRef layoutName,
                       int64_t hidden, int64_t group, Value out) {
  Layout layout = *layoutFromName(layoutName);
  Value tokens = e.ctxField(e.ptr(), offsetof(sparkc_ctx, tokens));
  if (e.token)
    tokens = e.at(tokens, e.mulC(e.token, 4));
  Value token = e.toI64(e.load(e.i32(), tokens));
  if (isQuantized(layout))
    return emitEmbedQuantized(e, weight, layoutName, hidden, group, token, out);
  // Whole vectors of the row to each thread.
  Value vectors = e.c(ceilDiv(hidden, kLanes));
  auto [lo, hi] = e.token ? std::pair{e.c(0), vectors} : e.share(vectors);
  Value begin = e.mulC(lo, kLanes);
  Value end = e.umin(e.mulC(hi, kLanes), e.c(hidden));
  bool tiled = isTiled(layout);
  PackedMatrix matrix =
      tiled ? PackedMatrix::plain(layout, kLanes, hidden)
            : PackedMatrix::rowMajor(layout, 1, hidden);
  Value row = tiled ? e.add(e.mulC(e.divC(token, kLanes), matrix.tileBytes()),
                            e.mulC(e.remC(token, kLanes), 4))
                    : e.mulC(token, matrix.tileBytes());
  Value source = e.at(weight, row);
  e.loop(begin, end, 1, [&](Value k) {
    Value offset;
    bool bf16 = layout == Layout::Tile16BF16 || layout == Layout::RowsBF16;
    if (layout == Layout::Tile16F32)
      offset = e.mulC(k, 64);
    else if (layout == Layout::Tile16BF16)
      offset = e.add(e.mulC(e.divC(k, 2), 64), e.mulC(e.remC(k, 2), 2));
    else
      offset = e.mulC(k, bf16 ? 2 : 4);
    Value x = bf16 ? buildExtBF16(e.b, e.loc,
                                  e.load(e.b.getI16Type(), e.at(source, offset)))
                   : e.load(e.f32(), e.at(source, offset));
    e.store(x, e.at(out, e.mulC(k, 4)), /*shared=*/true);
  });
}
