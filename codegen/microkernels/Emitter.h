//===- Emitter.h - What kernel builders have at hand ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An Emitter wraps a builder that stands in one generated function, with the
// values that every such function has: ctx, tid, n, the base of its weights and
// of its KV cache. It has short names for the arithmetic kernels use, and all
// loads and stores of kernels go through it, so that `--sanitize=thread` can
// announce each access to shared memory.
//
// Integers are i64, addresses !llvm.ptr, offsets bytes.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_EMITTER_H
#define SPARKC_CODEGEN_MICROKERNELS_EMITTER_H

#include "dialect/step/Step.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace sparkc {

/// Rows of a tile, lanes of a vector: every reduction is over 16 lanes.
constexpr int64_t kLanes = 16;

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t alignTo16(int64_t n) { return ceilDiv(n, kLanes) * kLanes; }

class Emitter {
public:
  using Body = llvm::function_ref<void(mlir::Value i)>;
  using Reduction = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value i, mlir::ValueRange carried)>;

  /// The builder stands in the entry block of a function.
  Emitter(mlir::OpBuilder &b, mlir::Location loc)
      : b(b), loc(loc), entry(b.getInsertionBlock()) {}

  mlir::OpBuilder &b;
  mlir::Location loc;

  /// Arguments of the function.
  mlir::Value ctx, tid, n, weights, kv;
  /// Which token of the block this is for; null where a call has one token.
  mlir::Value token;
  /// Announce accesses to shared memory to ThreadSanitizer.
  bool sanitizeThread = false;

  //===--- Types ---------------------------------------------------------===//
  mlir::Type i1() { return b.getI1Type(); }
  mlir::Type i8() { return b.getI8Type(); }
  mlir::Type i32() { return b.getI32Type(); }
  mlir::Type i64() { return b.getI64Type(); }
  mlir::Type f32() { return b.getF32Type(); }
  mlir::Type ptr();
  mlir::VectorType vec(mlir::Type element, int64_t lanes = kLanes);
  mlir::VectorType v16f32() { return vec(f32()); }

  //===--- Arithmetic ----------------------------------------------------===//
  mlir::Value c(int64_t value) { return c(i64(), value); }
  mlir::Value c(mlir::Type type, int64_t value);
  mlir::Value fconst(mlir::Type type, double value);
  mlir::Value zero16() { return fconst(v16f32(), 0.0); }
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value addC(mlir::Value x, int64_t y);
  mlir::Value mulC(mlir::Value x, int64_t y);
  /// Unsigned division and remainder by a positive constant.
  mlir::Value divC(mlir::Value x, int64_t y);
  mlir::Value remC(mlir::Value x, int64_t y);
  mlir::Value udiv(mlir::Value x, mlir::Value y);
  mlir::Value umin(mlir::Value x, mlir::Value y);
  mlir::Value umax(mlir::Value x, mlir::Value y);
  mlir::Value cmp(mlir::arith::CmpIPredicate p, mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value cond, mlir::Value x, mlir::Value y);
  mlir::Value fadd(mlir::Value x, mlir::Value y);
  mlir::Value fsub(mlir::Value x, mlir::Value y);
  mlir::Value fmul(mlir::Value x, mlir::Value y);
  mlir::Value fdiv(mlir::Value x, mlir::Value y);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes = kLanes);
  mlir::Value toI64(mlir::Value x);
  mlir::Value toIndex(mlir::Value x);
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result,
                        mlir::ValueRange args);

  //===--- Memory --------------------------------------------------------===//
  mlir::Value at(mlir::Value base, mlir::Value offset);
  mlir::Value at(mlir::Value base, int64_t offset);
  /// `shared`: other threads may write or read it (KV, arena, logits).
  mlir::Value load(mlir::Type type, mlir::Value address, bool shared = false,
                   unsigned align = 0);
  void store(mlir::Value value, mlir::Value address, bool shared = false,
             unsigned align = 0);
  /// Loads lanes [0, count) of a vector, the rest 0.
  mlir::Value loadFirst(mlir::VectorType type, mlir::Value address,
                        int64_t count, bool shared);
  /// Stores lanes [0, count) of a vector.
  void storeFirst(mlir::Value value, mlir::Value address, int64_t count,
                  bool shared);
  /// f32 lanes from `element` (f32, f16 or i8) in memory.
  mlir::Value loadAsF32(mlir::Type element, mlir::Value address, bool shared,
                        int64_t lanes = kLanes);
  /// And back, to f32 or f16.
  void storeFromF32(mlir::Type element, mlir::Value value, mlir::Value address,
                    bool shared);
  /// 64-byte aligned room in the stack frame, made at the function's entry.
  mlir::Value stack(int64_t bytes);
  /// LLVM's locality: to the L1 cache on the way past the others, which what is
  /// read once would only fill; to the L2 cache; to all caches.
  enum class Locality { Once = 0, L2 = 2, All = 3 };
  void prefetch(mlir::Value address, Locality locality);

  //===--- Control -------------------------------------------------------===//
  void loop(mlir::Value lo, mlir::Value hi, int64_t step, Body body);
  /// Returns the carried values after the last iteration.
  llvm::SmallVector<mlir::Value> reduce(mlir::Value lo, mlir::Value hi,
                                        int64_t step, mlir::ValueRange init,
                                        Reduction body);
  /// The same for i = 0 .. count-1, as a loop that LLVM does not unroll; at least
  /// one value is carried.
  llvm::SmallVector<mlir::Value> reduceRolled(int64_t count,
                                              mlir::ValueRange init,
                                              Reduction body);
  /// i = 0 .. count-1, `unroll` at a time; the rest unrolled.
  llvm::SmallVector<mlir::Value> reduceUnrolled(int64_t count, int64_t unroll,
                                                mlir::ValueRange init,
                                                Reduction body);
  void ifThen(mlir::Value cond, llvm::function_ref<void()> then);
  void ifElse(mlir::Value cond, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);

  //===--- ctx -----------------------------------------------------------===//
  mlir::Value ctxField(mlir::Type type, size_t offset);
  mlir::Value arena();
  /// Position of the token.
  mlir::Value pos();
  mlir::Value tokenCount();
  mlir::Value capacity();
  /// a + b * capacity.
  mlir::Value affine(step::AffineAttr attr);
  /// This thread's contiguous share [lo, hi) of `total` items.
  std::pair<mlir::Value, mlir::Value> share(mlir::Value total);

private:
  /// Where stack frames are made: loops under construction have no parent yet.
  mlir::Block *entry;
  /// A mask of the first `count` lanes.
  mlir::Value firstLanes(int64_t lanes, int64_t count);
  void announce(mlir::Value address, int64_t bytes, bool write);
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_EMITTER_H
