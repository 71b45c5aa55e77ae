//===- Barrier.cpp - All threads have arrived -----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sense by generation: the last thread to arrive resets the count, then
// publishes the next generation. A waiter that sleeps announces itself in
// `sleepers` before it reads the generation again (both sequentially
// consistent, as are the publication and the look at `sleepers` after it), so
// no wake is lost.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

using arith::CmpIPredicate;
using LLVM::AtomicBinOp;
using LLVM::AtomicOrdering;

/// Looks at the generation before a thread calls ctx->wait, unless ctx->spins
/// says otherwise.
static constexpr int64_t kSpins = 2000;
/// Lines of its next share that a waiting thread prefetches.
static constexpr int64_t kPrefetchBytes = 4096;

namespace {

/// The words of sparkc_barrier.
struct Words {
  Words(Emitter &e)
      : e(e), base(e.ctxField(e.ptr(), offsetof(sparkc_ctx, barrier))),
        arrived(e.at(base, offsetof(sparkc_barrier, arrived))),
        generation(e.at(base, offsetof(sparkc_barrier, generation))),
        sleepers(e.at(base, offsetof(sparkc_barrier, sleepers))),
        claimed(e.at(base, offsetof(sparkc_barrier, claimed))) {}

  Value read(Value word, AtomicOrdering order) {
    return LLVM::LoadOp::create(e.b, e.loc, e.i32(), word, 4,
                                /*isVolatile=*/false, /*isNonTemporal=*/false,
                                /*isInvariant=*/false,
                                /*isInvariantGroup=*/false, order);
  }
  void write(Value value, Value word, AtomicOrdering order) {
    LLVM::StoreOp::create(e.b, e.loc, value, word, 4, /*isVolatile=*/false,
                          /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                          order);
  }
  Value change(AtomicBinOp op, Value word, AtomicOrdering order) {
    return LLVM::AtomicRMWOp::create(e.b, e.loc, op, word, e.c(e.i32(), 1),
                                     order);
  }
  /// Tells ThreadSanitizer of the meeting at the given generation. Two words
  /// take turns: a thread that leaves one barrier late must not be taken to
  /// have waited for who arrived at the next.
  void tsan(StringRef name, Value seen) {
    if (!e.sanitizeThread)
      return;
    Value odd = arith::AndIOp::create(e.b, e.loc, e.toI64(seen), e.c(1));
    Value word = e.at(base, e.mulC(odd, 4));
    LLVM::CallOp::create(e.b, e.loc, TypeRange{},
                         SymbolRefAttr::get(e.b.getContext(), name),
                         ValueRange{e.at(word, offsetof(sparkc_barrier, pad0))});
  }

  Emitter &e;
  Value base, arrived, generation, sleepers, claimed;
};

} // namespace

void sparkc::emitHostCall(Emitter &e, Value fn, ValueRange args) {
  SmallVector<Type> types(args.getTypes());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(e.b.getContext()), types);
  SmallVector<Value> operands{fn};
  operands.append(args.begin(), args.end());
  LLVM::CallOp::create(e.b, e.loc, type, operands);
}

static Value notNull(Emitter &e, Value pointer) {
  Value null = LLVM::ZeroOp::create(e.b, e.loc, e.ptr());
  return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, pointer, null);
}

static void emitLastToArrive(Emitter &e, Words &words, Value generation) {
  words.write(e.c(e.i32(), 0), words.arrived, AtomicOrdering::monotonic);
  words.write(e.c(e.i32(), 0), words.claimed, AtomicOrdering::monotonic);
  words.write(e.addC(generation, 1), words.generation, AtomicOrdering::seq_cst);
  Value sleepers = words.read(words.sleepers, AtomicOrdering::seq_cst);
  e.ifThen(e.cmp(CmpIPredicate::ne, sleepers, e.c(e.i32(), 0)), [&] {
    Value wake = e.ctxField(e.ptr(), offsetof(sparkc_ctx, wake));
    e.ifThen(notNull(e, wake), [&] { emitHostCall(e, wake, words.generation); });
  });
}

/// Runs `body` while the generation is the one seen and `more(i)` holds;
/// counts i from 0.
static void emitWhileSame(Emitter &e, Words &words, Value generation,
                          llvm::function_ref<Value(Value)> more,
                          llvm::function_ref<void()> body) {
  scf::WhileOp::create(
      e.b, e.loc, TypeRange{e.i64()}, ValueRange{e.c(0)},
      [&](OpBuilder &, Location, ValueRange args) {
        Value now = words.read(words.generation, AtomicOrdering::seq_cst);
        Value same = e.cmp(CmpIPredicate::eq, now, generation);
        Value go = arith::AndIOp::create(e.b, e.loc, same, more(args[0]));
        scf::ConditionOp::create(e.b, e.loc, go, args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        body();
        scf::YieldOp::create(e.b, e.loc, ValueRange{e.addC(args[0], 1)});
      });
}

static void emitWait(Emitter &e, Words &words, Value generation) {
  auto pause = [&] { e.intrinsic("llvm.x86.sse2.pause", {}, {}); };
  Value always = e.c(e.i1(), 1);
  Value wanted = e.ctxField(e.i64(), offsetof(sparkc_ctx, spins));
  Value spins =
      e.select(e.cmp(CmpIPredicate::eq, wanted, e.c(0)), e.c(kSpins), wanted);
  emitWhileSame(
      e, words, generation,
      [&](Value i) { return e.cmp(CmpIPredicate::ult, i, spins); }, pause);
  Value wait = e.ctxField(e.ptr(), offsetof(sparkc_ctx, wait));
  e.ifElse(
      notNull(e, wait),
      [&] {
        Value now = words.read(words.generation, AtomicOrdering::acquire);
        e.ifThen(e.cmp(CmpIPredicate::eq, now, generation), [&] {
          words.change(AtomicBinOp::add, words.sleepers, AtomicOrdering::seq_cst);
          emitWhileSame(
              e, words, generation, [&](Value) { return always; },
              [&] { emitHostCall(e, wait, {words.generation, generation}); });
          words.change(AtomicBinOp::sub, words.sleepers, AtomicOrdering::seq_cst);
        });
      },
      [&] {
        emitWhileSame(
            e, words, generation, [&](Value) { return always; }, pause);
      });
}

Value sparkc::emitClaim(Emitter &e) {
  Words words(e);
  return e.toI64(
      words.change(AtomicBinOp::add, words.claimed, AtomicOrdering::monotonic));
}

void sparkc::emitBarrier(Emitter &e, Value prefetch, Value bytes) {
  Words words(e);
  Value generation = words.read(words.generation, AtomicOrdering::acquire);
  words.tsan("__tsan_release", generation);
  Value before =
      words.change(AtomicBinOp::add, words.arrived, AtomicOrdering::acq_rel);
  Value last = e.cmp(CmpIPredicate::eq, e.toI64(before), e.addC(e.n, -1));
  e.ifElse(
      last, [&] { emitLastToArrive(e, words, generation); },
      [&] {
        auto [lo, hi] = e.share(bytes);
        Value end = e.umin(hi, e.addC(lo, kPrefetchBytes));
        e.loop(lo, end, 64, [&](Value at) {
          e.prefetch(e.at(prefetch, at), Emitter::Locality::All);
        });
        emitWait(e, words, generation);
      });
  words.tsan("__tsan_acquire", generation);
}
