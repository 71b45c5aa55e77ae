//===- Block.cpp - Activations of a block of tokens -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout is that of !step.block: four tokens side by side, word by word, so
// that a block kernel finds the same columns of its four tokens in one line.
// Int8 activations have 128 added, which makes them unsigned, and their sums are
// negated. Those of bf16 are copied as they are. Kernels on tile registers, whose
// A tiles have a token in each row, have each token's !step.qvec copied as it is.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"

using namespace mlir;
using namespace sparkc;

QuadLayout::QuadLayout(int64_t size, int64_t group, bool bf16) {
  int64_t padded = ceilDiv(size, 128) * 128;
  words = !group ? padded : padded / (bf16 ? 2 : 4);
  int64_t perPart = group ? ceilDiv(padded / group, 4) * 64 : 0;
  scales = 16 * words;
  sums = scales + (bf16 ? 0 : perPart);
  bytes = sums + perPart;
}

int64_t BlockKernel::quadBytes(int64_t size, int64_t group) const {
  return byToken ? kQuad * QVecLayout(size, group).bytes
                 : QuadLayout(size, group, pairs).bytes;
}

int64_t sparkc::blockQuadBytes(int64_t size, int64_t group, bool bf16) {
  int64_t bytes = QuadLayout(size, group, bf16).bytes;
  if (!group || bf16)
    return bytes;
  return std::max(bytes, kQuad * QVecLayout(size, group).bytes);
}

void sparkc::emitPut(Emitter &e, Value x, int64_t size, int64_t group,
                     bool bf16, bool byToken, Value block) {
  if (byToken) {
    const int64_t bytes = QVecLayout(size, group).bytes;
    Value own = e.at(block, e.mulC(e.token, bytes));
    e.loop(e.c(0), e.c(bytes), 64, [&](Value i) {
      e.store(e.load(e.vec(e.i32()), e.at(x, i), false, 64), e.at(own, i), true,
              64);
    });
    return;
  }
  QuadLayout quad(size, group, bf16);
  Value lane = e.at(block, e.add(e.mulC(e.divC(e.token, kQuad), quad.bytes),
                                 e.mulC(e.remC(e.token, kQuad), 4)));
  auto copy = [&](int64_t from, int64_t to, int64_t words,
                  llvm::function_ref<Value(Value)> change) {
    e.loop(e.c(0), e.c(words), 1, [&](Value w) {
      Value word = e.load(e.i32(), e.at(x, e.addC(e.mulC(w, 4), from)));
      e.store(change(word), e.at(lane, e.addC(e.mulC(w, 16), to)), true);
    });
  };
  auto same = [](Value word) { return word; };
  if (!group || bf16)
    copy(0, 0, quad.words, same);
  if (!group)
    return;
  QVecLayout qvec(size, group, bf16);
  if (bf16)
    return copy(qvec.sums, quad.sums, qvec.groups, same);
  copy(0, 0, quad.words, [&](Value word) {
    return Value(arith::XOrIOp::create(e.b, e.loc, word,
                                       e.c(e.i32(), int32_t(0x80808080))));
  });
  copy(qvec.scales, quad.scales, qvec.groups, same);
  copy(qvec.sums, quad.sums, qvec.groups, [&](Value sum) {
    return Value(arith::AndIOp::create(e.b, e.loc, e.sub(e.c(e.i32(), 0), sum),
                                       e.c(e.i32(), 0xffff)));
  });
}

void sparkc::emitKeep(Emitter &e, Value x, int64_t size, Value out) {
  int64_t whole = size / kLanes * kLanes;
  e.loop(e.c(0), e.c(whole), kLanes, [&](Value i) {
    Value offset = e.mulC(i, 4);
    e.store(e.load(e.v16f32(), e.at(x, offset)), e.at(out, offset), true);
  });
  if (whole < size)
    e.storeFirst(e.load(e.v16f32(), e.at(x, whole * 4)), e.at(out, whole * 4),
                 size - whole, true);
}
