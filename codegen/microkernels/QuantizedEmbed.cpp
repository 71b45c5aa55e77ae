//===- QuantizedEmbed.cpp - A row of codes as floats ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A token's row of an embedding whose codes lie in tiles: one lane of a tile,
// four columns at a time. Each float is rounded once, as the format defines it.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "codegen/microkernels/QuantizedTile.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sparkc;

namespace {

class QuantizedRow : QuantizedTile {
public:
  QuantizedRow(Emitter &e, Layout layout, int64_t cols, int64_t group)
      : QuantizedTile(e, layout, cols, group, Dot4::AVX2) {}
  void emit(Value weight, Value token, Value out);

private:
  void group(Value tile, Value lane, Value index, Value out);
  Value half(Value at);
  Value subCode(Value at);
};

} // namespace

/// The float16 at an address, as f32.
Value QuantizedRow::half(Value at) {
  Value vector = vector::BroadcastOp::create(
      e.b, e.loc, e.vec(e.b.getF16Type(), 4), e.load(e.b.getF16Type(), at));
  return buildExtF16(e.b, e.loc, vector);
}

/// The int8 at an address, as f32 in four lanes.
Value QuantizedRow::subCode(Value at) {
  Value wide = arith::ExtSIOp::create(e.b, e.loc, e.i32(), e.load(e.i8(), at));
  return e.broadcast(arith::SIToFPOp::create(e.b, e.loc, e.f32(), wide), 4);
}

/// Group `index` of lane `lane`.
void QuantizedRow::group(Value tile, Value lane, Value index, Value out) {
  const int64_t perBatch = matrix.batchGroups();
  Value batch = e.at(tile, e.mulC(e.divC(index, perBatch), matrix.batchBytes()));
  Value inBatch = e.remC(index, perBatch);
  auto inHead = [&](int64_t start, int64_t ofGroup, int64_t size) {
    Value at = e.add(e.addC(e.mulC(inBatch, ofGroup), start),
                     e.mulC(lane, size));
    return e.at(batch, at);
  };
  Value scale, minimum, zero = e.c(e.i32(), middleCode(matrix.layout));
  if (isSuper(form)) {
    scale = e.fmul(half(inHead(0, 0, 2)), subCode(inHead(kHeadSubScales, 16, 1)));
    if (hasMinimum(form))
      minimum = e.fmul(half(inHead(kHeadSuperMinimum, 0, 2)),
                       subCode(inHead(kHeadSubMinima, 16, 1)));
  } else {
    scale = half(inHead(0, 32, 2));
    if (hasMinimum(form))
      minimum = half(inHead(matrix.headZeros(), 32, 2));
    else if (form == ScaleForm::Zero)
      zero = arith::ExtUIOp::create(
          e.b, e.loc, e.i32(), e.load(e.i8(), inHead(matrix.headZeros(), 16, 1)));
  }
  Value lines = e.at(batch, e.add(e.addC(e.mulC(inBatch, 64 * matrix.groupLines()),
                                         matrix.headBytes()),
                                  e.mulC(lane, 4)));
  Value to = e.at(out, e.mulC(index, 4 * matrix.group));
  columns(lines, 0, matrix.group, 1, 1, [&](int64_t i, int64_t, Value codes) {
    Value four = vector::BitCastOp::create(e.b, e.loc, bytes(4), codes);
    Value wide = arith::ExtUIOp::create(e.b, e.loc, ints(4), four);
    if (!minimum)
      wide = e.sub(wide, e.broadcast(zero, 4));
    Value w = e.fmul(
        scale, arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32(), 4), wide));
    if (minimum)
      w = e.fadd(w, minimum);
    e.store(w, e.at(to, 4 * i), /*shared=*/true);
  });
}

void QuantizedRow::emit(Value weight, Value token, Value out) {
  Value tile =
      e.at(weight, e.mulC(e.divC(token, kTileRows), matrix.tileBytes()));
  Value lane = e.remC(token, kTileRows);
  // Whole groups to each thread.
  Value groups = e.c(matrix.groups());
  auto [lo, hi] = e.token ? std::pair{e.c(0), groups} : e.share(groups);
  e.loop(lo, hi, 1, [&](Value g) { group(tile, lane, g, out); });
}

void sparkc::emitEmbedQuantized(Emitter &e, Value weight, StringRef layout,
                                int64_t hidden, int64_t group, Value token,
                                Value out) {
  QuantizedRow(e, *layoutFromName(layout), hidden, group)
      .emit(weight, token, out);
}
