//===- StepLowerToLLVM.cpp - From the schedule to functions ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every step.func becomes a function, every phase one of its own (so that perf
// and gdb see phases), every barrier a call of one private function. What ops
// do is emitted by the builders in codegen/microkernels, as arith, vector, scf
// and LLVM ops; the standard conversions take these to the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "codegen/weights/PackedLayout.h"
#include "passes/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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
    if (func.getEntry())
      total += count(func);
  return total;
}

/// Weight bytes that a thread prefetches while it prepares its activation: what
/// memory delivers to a processor in that time, and a part of its L2 cache.
static constexpr int64_t kProloguePrefetch = 128 * 1024;

/// Phases of this many bytes of weights and more share the ends of their work,
/// in this many pieces a thread.
static constexpr int64_t kSharedEnd = 256 * 1024;
static constexpr int64_t kPieces = 4;

namespace {

/// A phase as a function of its own.
struct Outlined {
  LLVM::LLVMFuncOp function;
  /// What it uses from above, in the order of its arguments.
  SmallVector<Value> captured;
  /// Its index in the descriptor's table.
  int64_t index = 0;
};

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

class Lowering {
public:
  Lowering(ModuleOp module, bool sanitizeThread)
      : module(module), symbols(module), b(module.getContext()),
        sanitizeThread(sanitizeThread) {}
  LogicalResult run();

private:
  Type ptr() { return LLVM::LLVMPointerType::get(b.getContext()); }
  LLVM::LLVMFuncOp makeFunction(StringRef name, ArrayRef<Type> args, Location loc);
  /// An emitter at the start of a function (ctx, tid, n, weights, kv, ...).
  Emitter open(LLVM::LLVMFuncOp function);
  LogicalResult lowerFunc(step::FuncOp func, StringRef scheduled, bool profile);
  FailureOr<Outlined> outline(step::PhaseOp phase, StringRef name);
  LogicalResult lowerPhase(step::PhaseOp phase, LLVM::LLVMFuncOp function,
                           ValueRange captured);
  Value workOf(Emitter &e, step::PhaseOp phase, int64_t total);
  /// Where thread `thread`'s share of the work begins.
  Value shareAt(Emitter &e, Value work, Value thread) {
    return e.udiv(e.mul(work, thread), e.n);
  }
  void emitSharedEnd(Emitter &e, Value work,
                     llvm::function_ref<void(Value, Value)> run);
  LogicalResult lowerPhaseOp(Emitter &e, Operation &op);
  LogicalResult lowerTiles(Emitter &e, step::TilesOp tiles, int64_t firstByte,
                           Value loByte, Value hiByte);
  LogicalResult lowerEpilogueOp(Emitter &e, Operation &op);
  void declareSanitizer();
  void makeBarrier();
  Value slotAddress(Emitter &e, StringRef name) {
    auto slot = symbols.lookup<step::SlotOp>(name);
    return e.at(e.arena(), *slot.getOffset());
  }
  Value frequencies(Emitter &e, spark::RopeAttr rope);

  ModuleOp module;
  SymbolTable symbols;
  OpBuilder b;
  bool sanitizeThread;
  LLVM::LLVMFuncOp barrier;
  DenseMap<Operation *, Outlined> outlined;
  /// The descriptor's phase table: name, kind, bytes.
  SmallVector<Attribute> phases;
  /// Step values to addresses and vectors, in the function being emitted.
  IRMapping map;
};

} // namespace

LLVM::LLVMFuncOp Lowering::makeFunction(StringRef name, ArrayRef<Type> args,
                                        Location loc) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(b.getContext()), args);
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, type,
                                           LLVM::Linkage::Internal);
  function.setNoInline(true);
  function.addEntryBlock(b);
  return function;
}

Emitter Lowering::open(LLVM::LLVMFuncOp function) {
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

void Lowering::declareSanitizer() {
  if (!sanitizeThread)
    return;
  b.setInsertionPointToEnd(module.getBody());
  auto declare = [&](StringRef name, ArrayRef<Type> args) {
    LLVM::LLVMFuncOp::create(
        b, module.getLoc(), name,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), args));
  };
  declare("__tsan_read_range", {ptr(), b.getI64Type()});
  declare("__tsan_write_range", {ptr(), b.getI64Type()});
  declare("__tsan_acquire", {ptr()});
  declare("__tsan_release", {ptr()});
}

void Lowering::makeBarrier() {
  Type i64 = b.getI64Type();
  barrier = makeFunction("barrier", {ptr(), i64, i64, ptr(), i64}, module.getLoc());
  Emitter e = open(barrier);
  Block &block = barrier.getBody().front();
  emitBarrier(e, block.getArgument(3), block.getArgument(4));
}

Value Lowering::frequencies(Emitter &e, spark::RopeAttr rope) {
  double base = rope.getTheta().convertToDouble();
  int64_t half = rope.getWidth() / 2, period = step::ropePeriod(rope.getWidth());
  std::string name = llvm::formatv("frequencies.{0}.{1:x}", rope.getWidth(),
                                   llvm::bit_cast<uint64_t>(base));
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    // In long double, rounded once: nothing of the host's libm is left.
    SmallVector<double> values(period);
    for (int64_t i = 0; i < period; ++i)
      values[i] = double(std::pow((long double)base,
                                  -2.0L * (long double)(i % half) /
                                      (long double)rope.getWidth()));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    auto dense = DenseElementsAttr::get(
        RankedTensorType::get({period}, b.getF64Type()), ArrayRef<double>(values));
    global = LLVM::GlobalOp::create(
        b, e.loc, LLVM::LLVMArrayType::get(b.getF64Type(), period),
        /*isConstant=*/true, LLVM::Linkage::Internal, name, dense,
        /*alignment=*/64);
  }
  return LLVM::AddressOfOp::create(e.b, e.loc, global);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void Profile::begin(int64_t phase) {
  Value index = e.load(e.i64(), counter);
  e.store(e.addC(index, 1), counter);
  Value capacity =
      e.ctxField(e.i64(), offsetof(sparkc_ctx, profile_capacity));
  Value events = e.ctxField(e.ptr(), offsetof(sparkc_ctx, profile));
  Value at = e.mulC(e.add(e.mul(e.tid, capacity), index),
                    sizeof(sparkc_profile_event));
  // Events past the capacity go nowhere.
  Value event = e.select(
      e.cmp(arith::CmpIPredicate::ult, index, capacity), e.at(events, at),
      e.stack(sizeof(sparkc_profile_event)));
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

/// Both of a function's forms call the same phases.
FailureOr<Outlined> Lowering::outline(step::PhaseOp phase, StringRef name) {
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
  std::string unique = name.str();
  while (module.lookupSymbol(unique))
    unique += "x";
  Type i64 = b.getI64Type();
  SmallVector<Type> types{ptr(), i64, i64, ptr(), ptr()};
  types.append(result.captured.size(), ptr());
  result.function = makeFunction(unique, types, phase.getLoc());
  result.index = phases.size();
  int64_t bytes = 0;
  for (auto stream : phase.getBody().getOps<step::StreamOp>())
    bytes += stream.getBytes();
  phases.push_back(b.getDictionaryAttr(
      {b.getNamedAttr("name", b.getStringAttr(unique)),
       b.getNamedAttr("kind", b.getI64IntegerAttr(int64_t(phase.getKind()))),
       b.getNamedAttr("bytes", b.getI64IntegerAttr(bytes))}));

  OpBuilder::InsertionGuard guard(b);
  IRMapping outer = map;
  LogicalResult done = lowerPhase(phase, result.function, result.captured);
  map = outer;
  if (failed(done))
    return failure();
  outlined[phase] = result;
  return result;
}

LogicalResult Lowering::lowerFunc(step::FuncOp func, StringRef scheduled,
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
      int64_t period = step::ropePeriod(table.getRope().getWidth());
      Value out = e.stack(2 * period * 4);
      emitRopeTable(e, frequencies(e, table.getRope()), period, out);
      map.map(table.getTable(), out);
    } else if (auto phase = dyn_cast<step::PhaseOp>(op)) {
      FailureOr<Outlined> callee =
          outline(phase, (scheduled + "." + phase.getName()).str());
      if (failed(callee))
        return failure();
      SmallVector<Value> operands{e.ctx, e.tid, e.n, e.weights, e.kv};
      for (Value value : callee->captured)
        operands.push_back(map.lookup(value));
      if (profile)
        events.begin(callee->index);
      LLVM::CallOp::create(b, op.getLoc(), callee->function, operands);
      if (profile)
        events.end();
    } else if (auto bar = dyn_cast<step::BarrierOp>(op)) {
      Value address = e.at(e.weights, bar.getPrefetch().value_or(0));
      LLVM::CallOp::create(
          b, op.getLoc(), barrier,
          ValueRange{e.ctx, e.tid, e.n, address,
                     e.c(bar.getPrefetchBytes().value_or(0))});
      if (profile)
        events.resumed();
    } else if (auto call = dyn_cast<step::CallOp>(op)) {
      auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(
          (call.getCallee() + (profile ? ".profile" : "")).str());
      SmallVector<Value> operands{
          e.ctx, e.tid, e.n, e.at(e.weights, int64_t(call.getWeights())),
          e.at(e.kv, e.affine(call.getKv()))};
      for (Value operand : call.getOperands())
        operands.push_back(map.lookup(operand));
      if (profile)
        operands.append({counter, e.c(int64_t(call.getLayer()))});
      LLVM::CallOp::create(b, op.getLoc(), callee, operands);
    } else if (!isa<step::ReturnOp>(op)) {
      return op.emitOpError("cannot be lowered here");
    }
  }
  if (mxcsr)
    e.intrinsic("llvm.x86.sse.ldmxcsr", {}, mxcsr);
  return success();
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

static int64_t unitBytes(step::TilesOp tiles) {
  PackedMatrix matrix =
      PackedMatrix::plain(*layoutFromName(tiles.getLayout()), kTileRows,
                          tiles.getCols(), tiles.getGroup());
  return matrix.tileBytes() * (tiles.getPaired() ? 2 : 1);
}

LogicalResult Lowering::lowerPhase(step::PhaseOp phase, LLVM::LLVMFuncOp function,
                                   ValueRange captured) {
  Emitter e = open(function);
  map.clear();
  for (auto [i, value] : llvm::enumerate(captured))
    map.map(value, function.getBody().front().getArgument(5 + i));

  // Whatever prepares the activation comes before the tiles.
  SmallVector<step::TilesOp> tiles(phase.getBody().getOps<step::TilesOp>());
  int64_t total = 0;
  for (step::TilesOp run : tiles)
    total += unitBytes(run) * int64_t(run.getUnits());
  Value work;
  if (!tiles.empty()) {
    work = workOf(e, phase, total);
    Value lo = shareAt(e, work, e.tid);
    e.stream = e.at(e.weights, e.addC(lo, tiles.front().getOffset()));
    e.streamLimit = std::min(kProloguePrefetch, total / 8);
  }
  for (Operation &op : phase.getBody().front()) {
    e.loc = op.getLoc();
    if (!isa<step::TilesOp>(op) && failed(lowerPhaseOp(e, op)))
      return failure();
  }
  if (tiles.empty())
    return success();
  bool ok = true;
  auto runAll = [&](Value lo, Value hi) {
    int64_t done = 0;
    for (step::TilesOp run : tiles) {
      e.loc = run.getLoc();
      ok &= succeeded(lowerTiles(e, run, done, lo, hi));
      done += unitBytes(run) * int64_t(run.getUnits());
    }
  };
  if (total < kSharedEnd)
    runAll(shareAt(e, work, e.tid), shareAt(e, work, e.addC(e.tid, 1)));
  else
    emitSharedEnd(e, work, runAll);
  return success(ok);
}

/// The phase's work in bytes of weights; none where it computes logits that are
/// not wanted.
Value Lowering::workOf(Emitter &e, step::PhaseOp phase, int64_t total) {
  Value work = e.c(total);
  WalkResult logits =
      phase.walk([](step::LogitsOp) { return WalkResult::interrupt(); });
  if (!logits.wasInterrupted())
    return work;
  Value flags = e.ctxField(e.i32(), offsetof(sparkc_ctx, flags));
  Value skip = e.cmp(arith::CmpIPredicate::ne,
                     arith::AndIOp::create(b, e.loc, flags,
                                           e.c(e.i32(), SPARKC_CTX_NO_LOGITS)),
                     e.c(e.i32(), 0));
  return e.select(skip, e.c(0), work);
}

/// Every thread does the first 7/8 of its own share; the ends of the shares are
/// cut in pieces that whoever is done takes, so that no thread waits long for
/// one whose processor was slower.
void Lowering::emitSharedEnd(Emitter &e, Value work,
                             llvm::function_ref<void(Value, Value)> run) {
  Value alone = e.cmp(arith::CmpIPredicate::eq, e.n, e.c(1));
  Value pieces = e.mulC(e.n, kPieces);
  auto endOfOwn = [&](Value thread) {
    Value lo = shareAt(e, work, thread);
    Value hi = shareAt(e, work, e.addC(thread, 1));
    return std::pair{e.sub(hi, e.divC(e.sub(hi, lo), 8)), hi};
  };
  scf::WhileOp::create(
      b, e.loc, TypeRange{e.i64()}, ValueRange{e.c(-1)},
      [&](OpBuilder &, Location, ValueRange args) {
        Value more =
            e.cmp(arith::CmpIPredicate::slt, args[0], pieces);
        scf::ConditionOp::create(b, e.loc, more, args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        Value own = e.cmp(arith::CmpIPredicate::slt, args[0], e.c(0));
        Value piece = e.select(own, e.c(0), args[0]);
        Value owner = e.select(
            own, e.tid, arith::RemUIOp::create(b, e.loc, piece, e.n));
        Value index = e.udiv(piece, e.n);
        auto [from, to] = endOfOwn(owner);
        Value length = e.sub(to, from);
        Value pieceLo = e.add(from, e.divC(e.mul(length, index), kPieces));
        Value pieceHi =
            e.add(from, e.divC(e.mul(length, e.addC(index, 1)), kPieces));
        Value lo = e.select(own, shareAt(e, work, e.tid), pieceLo);
        Value hi = e.select(own, e.select(alone, to, from), pieceHi);
        run(lo, hi);
        auto next = scf::IfOp::create(
            b, e.loc, alone,
            [&](OpBuilder &, Location) { scf::YieldOp::create(b, e.loc, pieces); },
            [&](OpBuilder &, Location) {
              Value claim = emitClaim(e);
              scf::YieldOp::create(b, e.loc, claim);
            });
        scf::YieldOp::create(b, e.loc, next.getResults());
      });
}

LogicalResult Lowering::lowerPhaseOp(Emitter &e, Operation &op) {
  auto in = [&](Value value) { return map.lookup(value); };
  auto out = [&](Value value) {
    int64_t size = cast<step::VecType>(value.getType()).getSize();
    Value address = emitVec(e, size);
    map.map(value, address);
    return address;
  };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](step::StreamOp) { return success(); })
      .Case([&](step::ViewOp view) {
        map.map(view.getOutput(), slotAddress(e, view.getSlot()));
        return success();
      })
      .Case([&](step::RmsNormOp norm) {
        emitRmsNorm(e, in(norm.getInput()),
                    e.at(e.weights, int64_t(norm.getWeight())),
                    norm.getInput().getType().getSize(),
                    norm.getEps().convertToDouble(), out(norm.getOutput()));
        return success();
      })
      .Case([&](step::QuantizeOp quantize) {
        auto type = quantize.getOutput().getType();
        QVecLayout layout(type.getSize(), type.getGroup());
        Value room = e.stack(layout.bytes);
        emitQuantize(e, in(quantize.getInput()), type.getSize(),
                     type.getGroup(), room);
        map.map(quantize.getOutput(), room);
        return success();
      })
      .Case([&](step::FoldOp fold) {
        emitFold(e, slotAddress(e, fold.getSlot()), fold.getHeads(),
                 fold.getHeadDim(), fold.getWindow(), fold.getChunk(),
                 out(fold.getOutput()));
        return success();
      })
      .Case([&](step::HeadGateOp gate) {
        int64_t heads = gate.getGate().getType().getSize();
        emitHeadGate(e, in(gate.getInput()), in(gate.getGate()), heads,
                     gate.getInput().getType().getSize() / heads,
                     out(gate.getOutput()));
        return success();
      })
      .Case([&](step::EmbedOp embed) {
        emitEmbed(e, e.at(e.weights, int64_t(embed.getWeight())),
                  embed.getLayout(), embed.getHidden(),
                  slotAddress(e, embed.getSlot()));
        return success();
      })
      .Case([&](step::AttentionOp attention) {
        TokenKV token;
        if (attention.getKey())
          token = {slotAddress(e, *attention.getKey()),
                   slotAddress(e, *attention.getValue())};
        emitAttention(e,
                      AttentionShape{attention.getCache(),
                                     int64_t(attention.getHeads()),
                                     int64_t(attention.getWindow()),
                                     int64_t(attention.getChunk()),
                                     attention.getScale().convertToFloat()},
                      slotAddress(e, attention.getQuery()), token,
                      slotAddress(e, attention.getPartials()));
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("cannot be lowered in a phase");
      });
}

LogicalResult Lowering::lowerTiles(Emitter &e, step::TilesOp tiles,
                                   int64_t firstByte, Value loByte, Value hiByte) {
  if (!tiles.getKernel())
    return tiles.emitOpError("has no kernel; run step-select-microkernel");
  const TileKernel *kernel = findTileKernel(*tiles.getKernel());
  if (!kernel || kernel->layout != tiles.getLayout())
    return tiles.emitOpError() << "kernel '" << *tiles.getKernel()
                               << "' does not read layout '"
                               << tiles.getLayout() << "'";
  int64_t bytes = unitBytes(tiles), units = tiles.getUnits();
  // Units that start in [loByte, hiByte).
  auto firstUnit = [&](Value at) {
    Value begun = e.sub(e.umax(at, e.c(firstByte)), e.c(firstByte));
    return e.umin(e.divC(e.addC(begun, bytes - 1), bytes), e.c(units));
  };
  Value lo = firstUnit(loByte), hi = firstUnit(hiByte);
  Value base = e.at(e.weights, int64_t(tiles.getOffset()));
  Value activation = map.lookup(tiles.getActivation());
  auto qvec = dyn_cast<step::QVecType>(tiles.getActivation().getType());
  int64_t xGroup = qvec ? qvec.getGroup() : 0;
  Block &body = tiles.getBody().front();
  bool ok = true;
  e.loop(lo, hi, 1, [&](Value unit) {
    Value tile = e.at(base, e.mulC(unit, bytes));
    int64_t count = tiles.getPaired() ? 2 : 1;
    for (int64_t i = 0; i < count; ++i)
      map.map(body.getArgument(i),
              kernel->build(e, TileOperands{e.at(tile, i * (bytes / count)),
                                            activation, int64_t(tiles.getCols()),
                                            int64_t(tiles.getGroup()), xGroup}));
    map.map(body.getArgument(count), e.mulC(unit, kLanes));
    for (Operation &op : body) {
      e.loc = op.getLoc();
      ok &= succeeded(lowerEpilogueOp(e, op));
    }
  });
  return success(ok);
}

LogicalResult Lowering::lowerEpilogueOp(Emitter &e, Operation &op) {
  auto in = [&](Value value) { return map.lookup(value); };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](step::RotateOp rotate) {
        auto [first, second] =
            emitRotate(e, in(rotate.getA()), in(rotate.getB()),
                       in(rotate.getTable()),
                       rotate.getTable().getType().getSize() / 2, in(rotate.getJ()));
        map.map(rotate.getFirst(), first);
        map.map(rotate.getSecond(), second);
        return success();
      })
      .Case([&](step::GegluOp geglu) {
        map.map(geglu.getOutput(),
                e.fmul(buildGeluErf(e.b, e.loc, in(geglu.getGate())),
                       in(geglu.getUp())));
        return success();
      })
      .Case([&](step::ResidualOp residual) {
        Value old = emitLoadLanes(e, slotAddress(e, residual.getSlot()),
                                  in(residual.getJ()), residual.getLanes());
        map.map(residual.getOutput(), e.fadd(old, in(residual.getUpdate())));
        return success();
      })
      .Case([&](step::StoreOp store) {
        emitStoreLanes(e, in(store.getValue()), slotAddress(e, store.getSlot()),
                       in(store.getJ()), store.getLanes());
        return success();
      })
      .Case([&](step::KVStoreOp store) {
        emitKVStore(e, in(store.getValue()), store.getKind(), in(store.getJ()),
                    store.getCache(), store.getLanes());
        return success();
      })
      .Case([&](step::LogitsOp logits) {
        emitStoreLanes(e, in(logits.getValue()),
                       e.ctxField(ptr(), offsetof(sparkc_ctx, logits)),
                       in(logits.getJ()), logits.getLanes());
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("cannot be lowered in an epilogue");
      });
}

LogicalResult Lowering::run() {
  for (auto descriptor : module.getOps<step::DescriptorOp>())
    descriptor.setBarriers(countBarriers(module));
  declareSanitizer();
  makeBarrier();
  // Callees first.
  SmallVector<step::FuncOp> functions(module.getOps<step::FuncOp>());
  llvm::stable_sort(functions, [](step::FuncOp x, step::FuncOp y) {
    return !x.getEntry() && y.getEntry();
  });
  // The functions take the schedule's names.
  SmallVector<std::string> names;
  for (step::FuncOp func : functions) {
    names.push_back(func.getSymName().str());
    func.setSymName("scheduled." + names.back());
  }
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

  void runOnOperation() override {
    if (failed(Lowering(getOperation(), sanitizeThread).run()))
      signalPassFailure();
  }
};
} // namespace
