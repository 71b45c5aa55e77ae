//===- StepLowerToLLVM.cpp - From the schedule to functions ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every step.func becomes a function, every phase one of its own (so that perf
// and gdb see phases), every barrier a call of one private function. Of phases of
// several kinds of layers that do the same, the functions jump to the first. What
// ops do is emitted by the builders in codegen/microkernels, as arith, vector, scf
// and LLVM ops; the standard conversions take these to the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Passes.h"
#include "passes/StepChecks.h"
#include "passes/StepLowering.h"
#include "sparkc_abi.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace sparkc;

namespace sparkc {
#define GEN_PASS_DEF_STEPLOWERTOLLVM
#include "passes/Passes.h.inc"
} // namespace sparkc

int64_t sparkc::countBarriers(ModuleOp module) {
  SymbolTable symbols(module);
  std::function<int64_t(step::FuncOp)> count = [&](step::FuncOp func) {
    int64_t barriers = 0;
    for (Operation &op : func.getBody().front()) {
      barriers += isa<step::BarrierOp>(op);
      if (auto call = dyn_cast<step::CallOp>(op))
        barriers += count(symbols.lookup<step::FuncOp>(call.getCallee()));
    }
    return barriers;
  };
  int64_t total = 0;
  for (auto func : module.getOps<step::FuncOp>())
    if (func.getEntry() && func.getSymName() == "step")
      total += count(func);
  return total;
}

namespace {

/// The timestamps of a profile entry: events of this thread, one a phase.
struct Profile {
  Profile(Emitter &e, Value counter, Value layer)
      : e(e), counter(counter), layer(layer) {}
  void begin(int64_t phase);
  void end() { stamp(pending.back(), offsetof(sparkc_profile_event, end)); }
  void resumed();

private:
  void stamp(Value event, int64_t offset) {
    e.store(e.intrinsic("llvm.x86.rdtsc", e.i64(), {}), e.at(event, offset));
  }

  Emitter &e;
  Value counter, layer;
  /// Events since the last barrier.
  SmallVector<Value> pending;
};

} // namespace

LLVM::LLVMFuncOp StepLowering::makeFunction(StringRef name, ArrayRef<Type> args,
                                            Location loc, Type result) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(
      result ? result : LLVM::LLVMVoidType::get(b.getContext()), args);
  std::string unique = name.str();
  while (module.lookupSymbol(unique))
    unique += "x";
  auto function =
      LLVM::LLVMFuncOp::create(b, loc, unique, type, LLVM::Linkage::Internal);
  function.setNoInline(true);
  // The only indirect branches are the calls of ctx->wait, wake and gemm.
  Attribute noTables = b.getStrArrayAttr({"no-jump-tables", "true"});
  function.setPassthroughAttr(b.getArrayAttr(noTables));
  function.addEntryBlock(b);
  return function;
}

Emitter StepLowering::open(LLVM::LLVMFuncOp function) {
  Block &block = function.getBody().front();
  b.setInsertionPointToStart(&block);
  LLVM::ReturnOp::create(b, function.getLoc(), ValueRange{});
  b.setInsertionPointToStart(&block);
  Emitter e(b, function.getLoc());
  e.ctx = block.getArgument(0);
  e.tid = block.getArgument(1);
  e.n = block.getArgument(2);
  if (block.getNumArguments() > 4) {
    e.weights = block.getArgument(3);
    e.kv = block.getArgument(4);
  }
  e.sanitizeThread = sanitizeThread;
  return e;
}

void StepLowering::declareSanitizer() {
  if (!sanitizeThread)
    return;
  b.setInsertionPointToEnd(module.getBody());
  auto declare = [&](StringRef name, ArrayRef<Type> args) {
    LLVM::LLVMFuncOp::create(
        b, module.getLoc(), name,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    args));
  };
  declare("__tsan_read_range", {ptr(), b.getI64Type()});
  declare("__tsan_write_range", {ptr(), b.getI64Type()});
  declare("__tsan_acquire", {ptr()});
  declare("__tsan_release", {ptr()});
}

void StepLowering::makeBarrier() {
  Type i64 = b.getI64Type();
  barrier =
      makeFunction("barrier", {ptr(), i64, i64, ptr(), i64}, module.getLoc());
  Emitter e = open(barrier);
  Block &block = barrier.getBody().front();
  emitBarrier(e, block.getArgument(3), block.getArgument(4));
}

Value StepLowering::frequencies(Emitter &e, spark::RopeAttr rope) {
  double base = rope.getTheta().convertToDouble();
  int64_t half = rope.getWidth() / 2,
          period = step::ropePeriod(rope.getWidth());
  std::string name = llvm::formatv("frequencies.{0}.{1:x}", rope.getWidth(),
                                   llvm::bit_cast<uint64_t>(base));
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    // In long double, rounded once: nothing of the host's libm is left.
    SmallVector<double> values(period);
    for (int64_t i = 0; i < period; ++i)
      values[i] =
          double(std::pow((long double)base, -2.0L * (long double)(i % half) /
                                                 (long double)rope.getWidth()));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    auto dense =
        DenseElementsAttr::get(RankedTensorType::get({period}, b.getF64Type()),
                               ArrayRef<double>(values));
    global = LLVM::GlobalOp::create(
        b, e.loc, LLVM::LLVMArrayType::get(b.getF64Type(), period),
        /*isConstant=*/true, LLVM::Linkage::Internal, name, dense,
        /*alignment=*/64);
  }
  return LLVM::AddressOfOp::create(e.b, e.loc, global);
}

void StepLowering::lowerRopeTable(Emitter &e, step::RopeTableOp table) {
  int64_t period = step::ropePeriod(table.getRope().getWidth());
  Value out = e.stack(2 * period * 4);
  emitRopeTable(e, frequencies(e, table.getRope()), period, out);
  map.map(table.getTable(), out);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void Profile::begin(int64_t phase) {
  Value index = e.load(e.i64(), counter);
  e.store(e.addC(index, 1), counter);
  Value capacity = e.ctxField(e.i64(), offsetof(sparkc_ctx, profile_capacity));
  Value events = e.ctxField(e.ptr(), offsetof(sparkc_ctx, profile));
  Value at = e.mulC(e.add(e.mul(e.tid, capacity), index),
                    sizeof(sparkc_profile_event));
  // Events past the capacity go nowhere.
  Value event =
      e.select(e.cmp(arith::CmpIPredicate::ult, index, capacity),
               e.at(events, at), e.stack(sizeof(sparkc_profile_event)));
  e.store(e.c(e.i32(), phase),
          e.at(event, offsetof(sparkc_profile_event, phase)));
  e.store(arith::TruncIOp::create(e.b, e.loc, e.i32(), layer),
          e.at(event, offsetof(sparkc_profile_event, layer)));
  pending.push_back(event);
  stamp(event, offsetof(sparkc_profile_event, begin));
}

void Profile::resumed() {
  for (Value event : pending)
    stamp(event, offsetof(sparkc_profile_event, resumed));
  pending.clear();
}

Value StepLowering::rowAddress(Emitter &e, StringRef name, Value token) {
  auto slot = symbols.lookup<step::SlotOp>(name);
  Value base = e.at(e.arena(), *slot.getOffset());
  if (!token || !slot.getRow())
    return base;
  return e.at(base, e.mulC(token, *slot.getRow()));
}

/// Makes a phase's weight offsets start at 0; gives what they started at. So
/// phases that differ in where their weights lie are one function.
static int64_t rebaseWeights(step::PhaseOp phase) {
  int64_t base = INT64_MAX;
  auto each = [&](function_ref<int64_t(int64_t)> change) {
    phase.walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<step::StreamOp, step::TilesOp>(
              [&](auto op) { op.setOffset(change(op.getOffset())); })
          .Case<step::RmsNormOp, step::EmbedOp>(
              [&](auto op) { op.setWeight(change(op.getWeight())); });
    });
  };
  each([&](int64_t offset) {
    base = std::min(base, offset);
    return offset;
  });
  if (base == INT64_MAX)
    return 0;
  each([&](int64_t offset) { return offset - base; });
  return base;
}

/// The function of a phase that does the same, of another kind of layers; null if
/// there is none. What they use from above may differ (tables of a rope).
LLVM::LLVMFuncOp StepLowering::sharedFunction(step::PhaseOp phase,
                                              size_t captured) {
  for (auto &[other, shared] : outlined) {
    if (shared.captured.size() != captured)
      continue;
    llvm::DenseMap<Value, Value> same;
    auto check = [&](Value x, Value y) {
      return success(x.getType() == y.getType() &&
                     same.try_emplace(x, y).first->second == y);
    };
    auto mark = [&](Value x, Value y) { same[x] = y; };
    if (OperationEquivalence::isEquivalentTo(
            other, phase, check, mark, OperationEquivalence::IgnoreLocations))
      return shared.function;
  }
  return {};
}

/// Both of a function's forms call the same phases.
FailureOr<Outlined> StepLowering::outline(step::PhaseOp phase, StringRef name) {
  auto it = outlined.find(phase);
  if (it != outlined.end())
    return it->second;
  Outlined result;
  llvm::SetVector<Value> captured;
  phase.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (operand.getParentRegion() == phase->getParentRegion())
        captured.insert(operand);
  });
  result.captured = captured.takeVector();
  Type i64 = b.getI64Type();
  SmallVector<Type> types{ptr(), i64, i64, ptr(), ptr()};
  types.append(result.captured.size(), ptr());
  result.function = makeFunction(name, types, phase.getLoc());
  result.index = phases.size();
  result.weights = rebaseWeights(phase);
  int64_t bytes = 0;
  for (auto stream : phase.getBody().getOps<step::StreamOp>())
    bytes += stream.getBytes();
  phases.push_back(b.getDictionaryAttr(
      {b.getNamedAttr("name", result.function.getSymNameAttr()),
       b.getNamedAttr("kind", b.getI64IntegerAttr(int64_t(phase.getKind()))),
       b.getNamedAttr("bytes", b.getI64IntegerAttr(bytes))}));

  LLVM::LLVMFuncOp shared = sharedFunction(phase, result.captured.size());
  OpBuilder::InsertionGuard guard(b);
  if (shared) {
    // A jump there: every phase has a symbol.
    open(result.function);
    LLVM::CallOp::create(b, phase.getLoc(), shared,
                         result.function.getArguments());
  } else {
    IRMapping outer = map;
    LogicalResult done = lowerPhase(phase, result.function, result.captured);
    map = outer;
    if (failed(done))
      return failure();
  }
  outlined[phase] = result;
  return result;
}

LogicalResult StepLowering::lowerFunc(step::FuncOp func, StringRef scheduled,
                                      bool profile) {
  Block &body = func.getBody().front();
  Type i64 = b.getI64Type();
  std::string name = (func.getEntry() ? "sparkc_" : "") + scheduled.str() +
                     (profile ? func.getEntry() ? "_profile" : ".profile" : "");
  // (ctx, tid, n, weights, kv, tables..., counter and layer if profiled)
  SmallVector<Type> args{ptr(), i64, i64, ptr(), ptr()};
  args.append(body.getNumArguments(), ptr());
  if (profile)
    args.append({ptr(), i64});
  if (func.getEntry())
    args = {ptr(), b.getI32Type(), b.getI32Type()};
  LLVM::LLVMFuncOp function = makeFunction(name, args, func.getLoc());
  lowered[scheduled.str() + (profile ? ".profile" : "")] = function;
  Emitter e = open(function);
  Block &block = function.getBody().front();
  map.clear();
  Value mxcsr, counter, layer;
  if (func.getEntry()) {
    e.tid = e.toI64(e.tid);
    e.n = e.toI64(e.n);
    e.weights = e.ctxField(ptr(), offsetof(sparkc_ctx, weights));
    e.kv = e.ctxField(ptr(), offsetof(sparkc_ctx, kv));
    // The default floating-point environment, whatever the host's.
    mxcsr = e.stack(8);
    e.intrinsic("llvm.x86.sse.stmxcsr", {}, mxcsr);
    Value standard = e.at(mxcsr, 4);
    e.store(e.c(e.i32(), 0x1f80), standard);
    e.intrinsic("llvm.x86.sse.ldmxcsr", {}, standard);
    if (profile) {
      counter = e.stack(8);
      e.store(e.c(0), counter);
      layer = e.c(UINT32_MAX);
    }
  } else if (profile) {
    counter = block.getArgument(block.getNumArguments() - 2);
    layer = block.getArgument(block.getNumArguments() - 1);
  }
  for (auto [i, arg] : llvm::enumerate(body.getArguments()))
    map.map(arg, block.getArgument(5 + i));
  Profile events(e, counter, layer);

  for (Operation &op : body) {
    e.loc = op.getLoc();
    if (auto table = dyn_cast<step::RopeTableOp>(op)) {
      lowerRopeTable(e, table);
    } else if (auto phase = dyn_cast<step::PhaseOp>(op)) {
      FailureOr<Outlined> callee =
          outline(phase, (scheduled + "." + phase.getName()).str());
      if (failed(callee))
        return failure();
      SmallVector<Value> operands{e.ctx, e.tid, e.n,
                                  e.at(e.weights, callee->weights), e.kv};
      for (Value value : callee->captured)
        operands.push_back(map.lookup(value));
      if (profile)
        events.begin(callee->index);
      LLVM::CallOp::create(b, op.getLoc(), callee->function, operands);
      if (profile)
        events.end();
    } else if (auto bar = dyn_cast<step::BarrierOp>(op)) {
      Value address = e.at(e.weights, bar.getPrefetch().value_or(0));
      LLVM::CallOp::create(b, op.getLoc(), barrier,
                           ValueRange{e.ctx, e.tid, e.n, address,
                                      e.c(bar.getPrefetchBytes().value_or(0))});
      if (profile)
        events.resumed();
    } else if (auto call = dyn_cast<step::CallOp>(op)) {
      LLVM::LLVMFuncOp callee = lowered.lookup(
          (call.getCallee() + (profile ? ".profile" : "")).str());
      SmallVector<Value> operands{e.ctx, e.tid, e.n,
                                  e.at(e.weights, int64_t(call.getWeights())),
                                  e.at(e.kv, e.affine(call.getKv()))};
      for (Value operand : call.getOperands())
        operands.push_back(map.lookup(operand));
      if (profile)
        operands.append({counter, e.c(int64_t(call.getLayer()))});
      // What no barrier has followed so far waits for none.
      if (profile)
        events.resumed();
      LLVM::CallOp::create(b, op.getLoc(), callee, operands);
    } else if (!isa<step::ReturnOp>(op)) {
      return op.emitOpError("cannot be lowered here");
    }
  }
  if (mxcsr)
    e.intrinsic("llvm.x86.sse.ldmxcsr", {}, mxcsr);
  return success();
}

LogicalResult StepLowering::run() {
  WalkResult decided = module.walk([](Operation *op) {
    return failed(checkDecided(op)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
  });
  if (decided.wasInterrupted() || failed(checkBounds(module)))
    return failure();
  for (auto descriptor : module.getOps<step::DescriptorOp>())
    descriptor.setBarriers(countBarriers(module));
  // Callees first.
  SmallVector<step::FuncOp> functions(module.getOps<step::FuncOp>());
  llvm::stable_sort(functions, [](step::FuncOp x, step::FuncOp y) {
    return !x.getEntry() && y.getEntry();
  });
  // The functions take the schedule's names, which none of it may have now.
  SmallVector<std::string> names;
  for (step::FuncOp func : functions) {
    names.push_back(func.getSymName().str());
    func.setSymName("sparkc_scheduled." + names.back());
  }
  declareSanitizer();
  makeBarrier();
  for (bool profile : {false, true})
    for (auto [func, name] : llvm::zip(functions, names))
      if (failed(lowerFunc(func, name, profile)))
        return failure();
  for (auto descriptor : module.getOps<step::DescriptorOp>())
    descriptor.setPhasesAttr(b.getArrayAttr(phases));
  for (step::FuncOp func : functions)
    func.erase();
  for (auto slot : llvm::make_early_inc_range(module.getOps<step::SlotOp>()))
    slot.erase();
  return success();
}

namespace {
struct StepLowerToLLVM : sparkc::impl::StepLowerToLLVMBase<StepLowerToLLVM> {
  using StepLowerToLLVMBase::StepLowerToLLVMBase;

  /// Kernels on tile registers are made of its ops.
  void getDependentDialects(DialectRegistry &registry) const override {
    StepLowerToLLVMBase::getDependentDialects(registry);
    registry.insert<amx::AMXDialect>();
  }

  void runOnOperation() override {
    if (failed(StepLowering(getOperation(), sanitizeThread).run()))
      signalPassFailure();
  }
};
} // namespace
