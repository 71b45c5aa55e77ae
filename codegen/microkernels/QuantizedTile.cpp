//===- QuantizedTile.cpp - Codes of a packed tile, in registers -----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/QuantizedTile.h"
#include "codegen/microkernels/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sparkc;

Value QuantizedTile::mask(Value v, int64_t perByte) {
  return arith::AndIOp::create(e.b, e.loc, v,
                               e.c(v.getType(), int32_t(perByte * 0x01010101)));
}

Value QuantizedTile::shift(Value v, int64_t left) {
  if (!left)
    return v;
  Value by = e.c(v.getType(), std::abs(left));
  return left > 0 ? Value(arith::ShLIOp::create(e.b, e.loc, v, by))
                  : Value(arith::ShRUIOp::create(e.b, e.loc, v, by));
}

Value QuantizedTile::either(Value x, Value y) {
  return arith::OrIOp::create(e.b, e.loc, x, y);
}

void QuantizedTile::columns(Value lines, int64_t k, int64_t count,
                            int64_t parts, int64_t lanes, Use use) {
  if (bits == 8) {
    for (int64_t i = 0; i < count; i += 4)
      for (int64_t part = 0; part < parts; ++part)
        use(i, part, line(lines, 64 * ((k + i) / 4), part, lanes));
    return;
  }
  // Blocks of `m` code lines, with a plane of their high bits in front.
  int64_t extra = bits - 4, m = blockColumns() / 8, perBlock = blockLines();
  int64_t highBits = extra == 1 ? 0x10 : 0x30;
  for (int64_t i = 0; i < count; i += 8) {
    int64_t codeLine = (k + i) / 8, block = codeLine / m,
            inBlock = codeLine % m;
    int64_t at = 64 * (block * perBlock + (extra ? 1 : 0) + inBlock);
    for (int64_t part = 0; part < parts; ++part) {
      Value v = line(lines, at, part, lanes);
      Value lo = mask(v, 0x0f), hi = mask(shift(v, -4), 0x0f);
      if (extra) {
        Value plane = line(lines, 64 * block * perBlock, part, lanes);
        lo = either(lo, mask(shift(plane, 4 - extra * inBlock), highBits));
        hi = either(hi, mask(shift(plane, -extra * inBlock), highBits));
      }
      use(i, part, lo);
      use(i + 4, part, hi);
    }
  }
}

/// Without VNNI: pairs in 16 bits, then pairs of pairs. vpmaddubsw saturates
/// for 8-bit codes, which are therefore widened, even and odd bytes apart.
Value QuantizedTile::dot4AVX2(Value u, Value s) {
  VectorType words = e.vec(e.b.getI16Type(), 16);
  auto cast = [&](VectorType type, Value v) -> Value {
    return vector::BitCastOp::create(e.b, e.loc, type, v);
  };
  auto pairs = [&](Value a, Value b) {
    return e.intrinsic("llvm.x86.avx2.pmadd.wd", ints(8), {a, b});
  };
  if (bits < 8) {
    Value sums = e.intrinsic("llvm.x86.avx2.pmadd.ub.sw", words,
                             {cast(bytes(32), u), cast(bytes(32), s)});
    return pairs(sums, e.c(words, 1));
  }
  Value eight = e.c(words, 8);
  Value uWords = cast(words, u), sWords = cast(words, s);
  Value uEven =
      arith::AndIOp::create(e.b, e.loc, uWords, e.c(words, 0x00ff));
  Value uOdd = arith::ShRUIOp::create(e.b, e.loc, uWords, eight);
  Value sEven = arith::ShRSIOp::create(
      e.b, e.loc, arith::ShLIOp::create(e.b, e.loc, sWords, eight), eight);
  Value sOdd = arith::ShRSIOp::create(e.b, e.loc, sWords, eight);
  return e.add(pairs(uEven, sEven), pairs(uOdd, sOdd));
}

Value QuantizedTile::dot4(Value sum, Value u, Value s) {
  if (kind == Dot4::AVX2)
    return e.add(sum, dot4AVX2(u, s));
  int64_t n = 4 * lanes();
  Value uBytes = vector::BitCastOp::create(e.b, e.loc, bytes(n), u);
  Value sBytes = vector::BitCastOp::create(e.b, e.loc, bytes(n), s);
  return e.intrinsic(kind == Dot4::VNNI512 ? "llvm.x86.avx512.vpdpbusd.512"
                                           : "llvm.x86.avx512.vpdpbusd.256",
                     ints(lanes()), {sum, uBytes, sBytes});
}

Value QuantizedTile::whole(ArrayRef<Value> sums) {
  if (sums.size() == 1)
    return sums[0];
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < kLanes; ++i)
    order.push_back(i);
  return vector::ShuffleOp::create(e.b, e.loc, sums[0], sums[1], order);
}

Value QuantizedTile::pairs16(Value x, Value y) {
  VectorType words = e.vec(e.b.getI16Type(), 2 * lanes());
  auto cast = [&](Value v) -> Value {
    return vector::BitCastOp::create(e.b, e.loc, words, v);
  };
  return e.intrinsic(kind == Dot4::VNNI512 ? "llvm.x86.avx512.pmaddw.d.512"
                                           : "llvm.x86.avx2.pmadd.wd",
                     ints(lanes()), {cast(x), cast(y)});
}

/// 16 float16 of a batch head, as f32.
Value QuantizedTile::halves16(Value batch, Value offset) {
  return buildExtF16(
      e.b, e.loc,
      e.load(e.vec(e.b.getF16Type()), e.at(batch, offset), false, 32));
}

Value QuantizedTile::bytes16(Value batch, Value offset) {
  return e.load(bytes(kLanes), e.at(batch, offset), false, 16);
}

QuantizedTile::Factors QuantizedTile::factors(Value batch) {
  if (!isSuper(form))
    return {};
  return {halves16(batch, e.c(0)),
          hasMinimum(form) ? halves16(batch, e.c(kHeadSuperMinimum)) : Value()};
}

Value QuantizedTile::scales(Value batch, Value inBatch, Factors factors) {
  if (!isSuper(form))
    return halves16(batch, e.mulC(inBatch, 32));
  Value codes = bytes16(batch, e.addC(e.mulC(inBatch, 16), kHeadSubScales));
  // Those of minimum forms are below 64.
  Value wide = arith::ExtSIOp::create(e.b, e.loc, ints(kLanes), codes);
  return e.fmul(factors.scale,
                arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), wide));
}

Value QuantizedTile::minima(Value batch, Value inBatch, Factors factors) {
  if (!isSuper(form))
    return halves16(batch, e.addC(e.mulC(inBatch, 32), matrix.headZeros()));
  Value codes = bytes16(batch, e.addC(e.mulC(inBatch, 16), kHeadSubMinima));
  Value wide = arith::ExtSIOp::create(e.b, e.loc, ints(kLanes), codes);
  return e.fmul(factors.minimum,
                arith::SIToFPOp::create(e.b, e.loc, e.v16f32(), wide));
}

Value QuantizedTile::zeros(Value batch, Value inBatch) {
  if (form != ScaleForm::Zero)
    return e.c(ints(kLanes), middleCode(matrix.layout));
  Value codes = bytes16(batch, e.addC(e.mulC(inBatch, 16), matrix.headZeros()));
  return arith::ExtUIOp::create(e.b, e.loc, ints(kLanes), codes);
}
