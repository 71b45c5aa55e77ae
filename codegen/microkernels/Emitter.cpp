//===- Emitter.cpp - What kernel builders have at hand --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Emitter.h"
#include "codegen/microkernels/Math.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

Type Emitter::ptr() { return LLVM::LLVMPointerType::get(b.getContext()); }

VectorType Emitter::vec(Type element, int64_t lanes) {
  return VectorType::get({lanes}, element);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::c(Type type, int64_t value) {
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

Value Emitter::fconst(Type type, double value) {
  return buildSplat(b, loc, type, value);
}

Value Emitter::add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value Emitter::sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
Value Emitter::mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
Value Emitter::addC(Value x, int64_t y) { return y ? add(x, c(x.getType(), y)) : x; }
Value Emitter::mulC(Value x, int64_t y) {
  return y == 1 ? x : mul(x, c(x.getType(), y));
}
Value Emitter::divC(Value x, int64_t y) {
  return y == 1 ? x
               : Value(arith::DivUIOp::create(b, loc, x, c(x.getType(), y)));
}
Value Emitter::remC(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, c(x.getType(), y));
}
Value Emitter::udiv(Value x, Value y) { return arith::DivUIOp::create(b, loc, x, y); }
Value Emitter::umin(Value x, Value y) { return arith::MinUIOp::create(b, loc, x, y); }
Value Emitter::umax(Value x, Value y) { return arith::MaxUIOp::create(b, loc, x, y); }
Value Emitter::cmp(arith::CmpIPredicate p, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, p, x, y);
}
Value Emitter::select(Value cond, Value x, Value y) {
  return arith::SelectOp::create(b, loc, cond, x, y);
}
Value Emitter::fadd(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
Value Emitter::fsub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
Value Emitter::fmul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
Value Emitter::fdiv(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
Value Emitter::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}

Value Emitter::broadcast(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(b, loc, vec(scalar.getType(), lanes), scalar);
}

Value Emitter::toI64(Value x) {
  if (x.getType().isIndex())
    return arith::IndexCastOp::create(b, loc, i64(), x);
  if (x.getType() == i64())
    return x;
  return arith::ExtUIOp::create(b, loc, i64(), x);
}

Value Emitter::toIndex(Value x) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), x);
}

Value Emitter::intrinsic(StringRef name, Type result, ValueRange args) {
  if (!result) {
    LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(name), args);
    return {};
  }
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), args)
      .getResults();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::at(Value base, Value offset) {
  return LLVM::GEPOp::create(b, loc, ptr(), i8(), base,
                             ArrayRef<LLVM::GEPArg>{offset},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value Emitter::at(Value base, int64_t offset) {
  return offset ? at(base, c(offset)) : base;
}

static int64_t bytesOf(Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return 8;
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * bytesOf(vector.getElementType());
  return (type.getIntOrFloatBitWidth() + 7) / 8;
}

/// Alignment that an access of this type may rely on: that of its elements.
static unsigned naturalAlign(Type type, unsigned align) {
  return align ? align : bytesOf(getElementTypeOrSelf(type));
}

Value Emitter::load(Type type, Value address, bool shared, unsigned align) {
  if (shared)
    announce(address, bytesOf(type), /*write=*/false);
  return LLVM::LoadOp::create(b, loc, type, address, naturalAlign(type, align));
}

void Emitter::store(Value value, Value address, bool shared, unsigned align) {
  if (shared)
    announce(address, bytesOf(value.getType()), /*write=*/true);
  LLVM::StoreOp::create(b, loc, value, address,
                        naturalAlign(value.getType(), align));
}

Value Emitter::firstLanes(int64_t lanes, int64_t count) {
  SmallVector<bool> first(lanes);
  std::fill_n(first.begin(), count, true);
  auto type = vec(i1(), lanes);
  return arith::ConstantOp::create(
      b, loc, type, DenseElementsAttr::get(type, ArrayRef<bool>(first)));
}

void Emitter::storeFirst(Value value, Value address, int64_t count, bool shared) {
  auto type = cast<VectorType>(value.getType());
  if (count == type.getNumElements())
    return store(value, address, shared);
  Type element = type.getElementType();
  if (shared)
    announce(address, count * bytesOf(element), /*write=*/true);
  LLVM::MaskedStoreOp::create(b, loc, value, address,
                              firstLanes(type.getNumElements(), count),
                              b.getI32IntegerAttr(bytesOf(element)));
}

Value Emitter::loadFirst(VectorType type, Value address, int64_t count,
                         bool shared) {
  if (count == type.getNumElements())
    return load(type, address, shared);
  Type element = type.getElementType();
  if (shared)
    announce(address, count * bytesOf(element), /*write=*/false);
  Value rest = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return LLVM::MaskedLoadOp::create(
      b, loc, type, address, firstLanes(type.getNumElements(), count), rest,
      b.getI32IntegerAttr(bytesOf(element)), UnitAttr());
}

Value Emitter::loadAsF32(Type element, Value address, bool shared, int64_t lanes) {
  Value x = load(vec(element, lanes), address, shared);
  if (element.isInteger())
    return arith::SIToFPOp::create(b, loc, vec(f32(), lanes), x);
  return element.isF16() ? buildExtF16(b, loc, x) : x;
}

void Emitter::storeFromF32(Type element, Value value, Value address, bool shared) {
  store(element.isF16() ? buildTruncF16(b, loc, value) : value, address, shared);
}

Value Emitter::stack(int64_t bytes) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  Value size = c(bytes);
  return LLVM::AllocaOp::create(b, loc, ptr(), i8(), size, /*alignment=*/64u);
}

void Emitter::prefetch(Value address, Locality locality) {
  LLVM::Prefetch::create(b, loc, address, /*rw=*/0, /*hint=*/int(locality),
                         /*cache=*/1);
}

void Emitter::announce(Value address, int64_t bytes, bool write) {
  if (!sanitizeThread)
    return;
  LLVM::CallOp::create(
      b, loc, TypeRange{},
      SymbolRefAttr::get(b.getContext(), write ? "__tsan_write_range"
                                               : "__tsan_read_range"),
      ValueRange{address, c(bytes)});
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Emitter::loop(Value lo, Value hi, int64_t step, Body body) {
  scf::ForOp::create(b, loc, lo, hi, c(step), ValueRange{},
                     [&](OpBuilder &, Location, Value i, ValueRange) {
                       body(i);
                       scf::YieldOp::create(b, loc);
                     });
}

SmallVector<Value> Emitter::reduce(Value lo, Value hi, int64_t step,
                                   ValueRange init, Reduction body) {
  auto loop = scf::ForOp::create(
      b, loc, lo, hi, c(step), init,
      [&](OpBuilder &, Location, Value i, ValueRange carried) {
        scf::YieldOp::create(b, loc, body(i, carried));
      });
  return llvm::to_vector(llvm::map_range(loop.getResults(),
                                         [](OpResult r) { return Value(r); }));
}

SmallVector<Value> Emitter::reduceRolled(int64_t count, ValueRange init,
                                         Reduction body) {
  SmallVector<Value> results = reduce(c(0), c(count), 1, init, body);
  MLIRContext *context = b.getContext();
  auto yes = BoolAttr::get(context, true);
  auto unroll = LLVM::LoopUnrollAttr::get(context, /*disable=*/yes, {}, {}, {},
                                          {}, {}, {});
  auto loop = results[0].getDefiningOp<scf::ForOp>();
  loop->setAttr("loop_annotation",
                LLVM::LoopAnnotationAttr::get(
                    context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {},
                    {}, {}, {}));
  return results;
}

SmallVector<Value> Emitter::reduceUnrolled(int64_t count, int64_t unroll,
                                           ValueRange init, Reduction body) {
  SmallVector<Value> carried(init);
  int64_t whole = count / unroll * unroll;
  if (whole)
    carried = reduce(c(0), c(whole), unroll, carried,
                     [&](Value i, ValueRange values) {
                       SmallVector<Value> inner(values);
                       for (int64_t u = 0; u < unroll; ++u)
                         inner = body(addC(i, u), inner);
                       return inner;
                     });
  for (int64_t i = whole; i < count; ++i)
    carried = body(c(i), carried);
  return carried;
}

void Emitter::ifThen(Value cond, llvm::function_ref<void()> then) {
  scf::IfOp::create(b, loc, cond, [&](OpBuilder &, Location) {
    then();
    scf::YieldOp::create(b, loc);
  });
}

void Emitter::ifElse(Value cond, llvm::function_ref<void()> then,
                     llvm::function_ref<void()> otherwise) {
  scf::IfOp::create(
      b, loc, cond,
      [&](OpBuilder &, Location) {
        then();
        scf::YieldOp::create(b, loc);
      },
      [&](OpBuilder &, Location) {
        otherwise();
        scf::YieldOp::create(b, loc);
      });
}

//===----------------------------------------------------------------------===//
// ctx
//===----------------------------------------------------------------------===//

Value Emitter::ctxField(Type type, size_t offset) {
  return load(type, at(ctx, offset));
}
Value Emitter::arena() { return ctxField(ptr(), offsetof(sparkc_ctx, arena)); }
Value Emitter::pos() {
  Value first = ctxField(i64(), offsetof(sparkc_ctx, pos));
  return token ? add(first, token) : first;
}
Value Emitter::tokenCount() {
  return toI64(ctxField(i32(), offsetof(sparkc_ctx, n_tokens)));
}
Value Emitter::capacity() {
  return ctxField(i64(), offsetof(sparkc_ctx, capacity));
}

Value Emitter::affine(step::AffineAttr attr) {
  Value constant = c(attr.getConstant());
  if (!attr.getPerPosition())
    return constant;
  return add(constant, mulC(capacity(), attr.getPerPosition()));
}

std::pair<Value, Value> Emitter::share(Value total) {
  Value lo = udiv(mul(total, tid), n);
  Value hi = udiv(mul(total, addC(tid, 1)), n);
  return {lo, hi};
}
