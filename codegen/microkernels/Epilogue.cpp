//===- Epilogue.cpp - From accumulators to memory -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

using arith::CmpIPredicate;

/// The element that lane number `j` stands for.
static Value elementOf(Emitter &e, Value j, step::LanesAttr lanes) {
  if (lanes.getHeads() == 1)
    return e.addC(j, lanes.getBase());
  Value head = e.divC(j, lanes.getWidth());
  Value rest = e.remC(j, lanes.getWidth());
  return e.addC(e.add(e.mulC(head, lanes.getStride()), rest), lanes.getBase());
}

static Value extractLane(Emitter &e, Value vector, int64_t lane) {
  return vector::ExtractOp::create(e.b, e.loc, vector, lane);
}

/// Calls `body(lane, element)` for every valid lane.
static void forEachLane(Emitter &e, Value j, step::LanesAttr lanes,
                        llvm::function_ref<void(int64_t, Value)> body) {
  bool whole = lanes.getCount() % kLanes == 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    Value number = e.addC(j, lane);
    auto visit = [&] { body(lane, elementOf(e, number, lanes)); };
    if (whole)
      visit();
    else
      e.ifThen(e.cmp(CmpIPredicate::ult, number, e.c(lanes.getCount())), visit);
  }
}

/// Contiguous lanes: `body(element, count)` once, with the valid lanes of the
/// tile.
static void forTile(Emitter &e, Value j, step::LanesAttr lanes,
                    llvm::function_ref<void(Value, int64_t)> body) {
  int64_t rest = lanes.getCount() % kLanes;
  if (!rest)
    return body(elementOf(e, j, lanes), kLanes);
  if (lanes.getCount() < kLanes)
    return body(elementOf(e, j, lanes), rest);
  e.ifElse(
      e.cmp(CmpIPredicate::ult, j, e.c(lanes.getCount() - rest)),
      [&] { body(elementOf(e, j, lanes), kLanes); },
      [&] { body(elementOf(e, j, lanes), rest); });
}

Value sparkc::emitLoadLanes(Emitter &e, Value base, Value j,
                            step::LanesAttr lanes) {
  // Slots are zero past their last element and padded, so a whole vector may be
  // read where the lanes lie side by side.
  if (lanes.isContiguous())
    return e.load(e.v16f32(), e.at(base, e.mulC(elementOf(e, j, lanes), 4)),
                  true);
  Value room = e.stack(64);
  e.store(e.zero16(), room);
  forEachLane(e, j, lanes, [&](int64_t lane, Value element) {
    e.store(e.load(e.f32(), e.at(base, e.mulC(element, 4)), true),
            e.at(room, lane * 4));
  });
  return e.load(e.v16f32(), room);
}

void sparkc::emitStoreLanes(Emitter &e, Value value, Value base, Value j,
                            step::LanesAttr lanes) {
  if (lanes.isContiguous())
    return forTile(e, j, lanes, [&](Value element, int64_t count) {
      e.storeFirst(value, e.at(base, e.mulC(element, 4)), count, true);
    });
  forEachLane(e, j, lanes, [&](int64_t lane, Value element) {
    e.store(extractLane(e, value, lane), e.at(base, e.mulC(element, 4)), true);
  });
}

void sparkc::emitKVStore(Emitter &e, Value value, step::KVKind kind, Value j,
                         step::CacheAttr attr, step::LanesAttr lanes) {
  CacheAddress cache(e, attr);
  Value slot = cache.slotOf(e.pos());
  assert(!attr.isQuantized() && "written by attention");
  Value stored = attr.getElement().isF16() ? buildTruncF16(e.b, e.loc, value)
                                           : value;
  bool key = kind == step::KVKind::key;
  // Bytes of one dim's step and the address of an element.
  int64_t dimBytes = key ? kLanes * cache.bytes : cache.bytes;
  auto address = [&](Value element) {
    Value head = e.divC(element, cache.dim);
    Value dim = e.remC(element, cache.dim);
    Value base = key ? e.add(cache.key(head, slot),
                             e.mulC(e.remC(slot, kLanes), cache.bytes))
                     : cache.value(head, slot);
    return e.at(e.kv, e.add(base, e.mulC(dim, dimBytes)));
  };
  bool oneHead = lanes.isContiguous() &&
                 (lanes.getHeads() > 1 ||
                  lanes.getBase() % cache.dim + lanes.getCount() <= cache.dim);
  if (!oneHead)
    return forEachLane(e, j, lanes, [&](int64_t lane, Value element) {
      e.store(extractLane(e, stored, lane), address(element), true);
    });
  // The lanes are consecutive dims of one head.
  forTile(e, j, lanes, [&](Value element, int64_t count) {
    Value first = address(element);
    if (!key)
      return e.storeFirst(stored, first, count, true);
    for (int64_t lane = 0; lane < count; ++lane)
      e.store(extractLane(e, stored, lane), e.at(first, lane * dimBytes), true);
  });
}

std::pair<Value, Value> sparkc::emitRotate(Emitter &e, Value a, Value b,
                                           Value table, int64_t period,
                                           Value j) {
  Value entry = e.mulC(e.remC(j, period), 4);
  Value cos = e.load(e.v16f32(), e.at(table, entry));
  Value sin = e.load(e.v16f32(), e.at(table, e.addC(entry, period * 4)));
  Value minusB = arith::NegFOp::create(e.b, e.loc, b);
  return {e.fma(minusB, sin, e.fmul(a, cos)), e.fma(a, sin, e.fmul(b, cos))};
}
