//===- Cache.cpp - What lies where in a KV cache --------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layouts that #step.cache defines. A quantized element is code * scale, 7
// bits times 11: exact in float. So attention over int8 is attention over
// floats that happen to be stored so, in the same order and to the same bits,
// and the multiplication is paid once for all heads of a group.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace sparkc;

/// Dims that share a scale, and bytes of a scale, an f16.
static constexpr int64_t kGroup = 16;
static constexpr int64_t kScaleBytes = 2;

CacheAddress::CacheAddress(Emitter &e, step::CacheAttr cache)
    : e(e), attr(cache), heads(cache.getHeads()), dim(cache.getHeadDim()),
      paddedDim(alignTo16(dim)), ring(cache.getPositions()),
      bytes(cache.getElement().getIntOrFloatBitWidth() / 8),
      keyBytes(cache.getKeyBytes()), valueBytes(cache.getValueBytes()),
      groupDims(cache.isQuantized() ? kGroup : dim),
      positions(ring ? e.c(ring) : e.capacity()) {}

Value CacheAddress::slotOf(Value position) {
  return ring ? e.remC(position, ring) : position;
}

Value CacheAddress::key(Value head, Value slot) {
  Value block = e.mulC(e.divC(slot, kLanes), kLanes * keyBytes);
  return e.add(e.mulC(e.mul(head, positions), keyBytes), block);
}

Value CacheAddress::value(Value head, Value slot) {
  Value area = e.mulC(positions, heads * keyBytes);
  Value row = e.add(e.mul(head, positions), slot);
  return e.add(area, e.mulC(row, valueBytes));
}

SmallVector<Value> CacheAddress::reduceGroups(ValueRange init, GroupBody body) {
  int64_t whole = dim / groupDims, rest = dim % groupDims;
  SmallVector<Value> carried(init);
  if (whole == 1)
    carried = body(e.c(0), groupDims, carried);
  else if (whole)
    carried = e.reduce(e.c(0), e.c(whole), 1, carried,
                       [&](Value group, ValueRange values) {
                         return body(group, groupDims, values);
                       });
  if (rest)
    carried = body(e.c(whole), rest, carried);
  return carried;
}

/// The scales of a group of a block's dims; its lines lie behind them.
static Value scalesOf(Emitter &e, Value block, Value group) {
  return e.at(block, e.mulC(group, kLanes * kScaleBytes + kGroup * kLanes));
}

KeyGroup CacheAddress::keyGroup(Value block, Value group) {
  if (!attr.isQuantized())
    return {block, Value()};
  Value scales = scalesOf(e, block, group);
  return {e.at(scales, kLanes * kScaleBytes),
          e.loadAsF32(e.b.getF16Type(), scales, true)};
}

Value CacheAddress::loadKeys(const KeyGroup &group, Value dim) {
  Value keys = e.loadAsF32(
      attr.getElement(), e.at(group.lines, e.mulC(dim, kLanes * bytes)), true);
  return group.scales ? e.fmul(keys, group.scales) : keys;
}

Value CacheAddress::loadValues(Value row, Value i) {
  Value values = e.loadAsF32(attr.getElement(),
                             e.at(row, e.mulC(i, kLanes * bytes)), true);
  if (!attr.isQuantized())
    return values;
  Value scale =
      e.load(e.b.getF16Type(),
             e.at(row, e.addC(e.mulC(i, kScaleBytes), paddedDim)), true);
  return e.fmul(values, buildExtF16(e.b, e.loc, e.broadcast(scale)));
}

namespace {
struct Quantized {
  Value codes; ///< 16 of i8
  Value scale; ///< f16
};
} // namespace

/// 16 dims as #step.cache and step.attention define it.
static Quantized quantize(Emitter &e, Value x) {
  // Magnitudes are ordered as their bits are, infinity and NaN above all
  // others.
  VectorType ints = e.vec(e.i32());
  Value magnitudes = arith::AndIOp::create(
      e.b, e.loc, arith::BitcastOp::create(e.b, e.loc, ints, x),
      e.c(ints, 0x7fffffff));
  Value largest = vector::ReductionOp::create(
      e.b, e.loc, vector::CombiningKind::MAXSI, magnitudes);
  Value finite =
      e.cmp(arith::CmpIPredicate::slt, largest, e.c(e.i32(), 0x7f800000));
  Value max = arith::BitcastOp::create(e.b, e.loc, e.f32(), largest);
  // The larger of two is the second where the first is NaN; so is the smaller.
  auto smaller = [&](Value a, Value b) {
    return e.select(
        arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT, a, b), a,
        b);
  };
  Value scale =
      smaller(e.fdiv(max, e.fconst(e.f32(), 127)), e.fconst(e.f32(), 65504));
  scale = e.select(finite, scale,
                   e.fconst(e.f32(), std::numeric_limits<double>::quiet_NaN()));
  Value half = buildTruncF16(e.b, e.loc, scale);
  // Where the scale is 0, x / 1 rounds to 0.
  Value stored = buildExtF16(e.b, e.loc, half);
  Value divisor =
      e.select(arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ,
                                     stored, e.fconst(e.f32(), 0)),
               e.fconst(e.f32(), 1), stored);
  Value codes =
      math::RoundEvenOp::create(e.b, e.loc, e.fdiv(x, e.broadcast(divisor)));
  codes = buildMax(e.b, e.loc, codes, e.fconst(e.v16f32(), -127));
  codes = smaller(codes, e.fconst(e.v16f32(), 127));
  codes = arith::FPToSIOp::create(e.b, e.loc, ints, codes);
  return {arith::TruncIOp::create(e.b, e.loc, e.vec(e.i8()), codes), half};
}

void sparkc::emitCacheWrite(CacheAddress &cache, Value head, Value slot,
                            const TokenKV &token) {
  Emitter &e = cache.e;
  Value block = e.at(e.kv, cache.key(head, slot));
  Value row = e.at(e.kv, cache.value(head, slot));
  Value lane = e.remC(slot, kLanes);
  cache.reduceGroups({}, [&](Value group, int64_t dims, ValueRange) {
    Value from = e.mulC(group, kGroup * 4);
    auto load = [&](Value x) {
      return quantize(e, e.loadFirst(e.v16f32(), e.at(x, from), dims, true));
    };
    Quantized key = load(token.key), value = load(token.value);
    Value scales = scalesOf(e, block, group);
    e.store(key.scale, e.at(scales, e.mulC(lane, kScaleBytes)), true);
    for (int64_t d = 0; d < dims; ++d)
      e.store(vector::ExtractOp::create(e.b, e.loc, key.codes, d),
              e.at(scales, e.addC(lane, kLanes * (kScaleBytes + d))), true);
    // The padding's codes are 0.
    e.store(value.codes, e.at(row, e.mulC(group, kGroup)), true);
    e.store(value.scale,
            e.at(row, e.addC(e.mulC(group, kScaleBytes), cache.paddedDim)),
            true);
    return SmallVector<Value>();
  });
}
