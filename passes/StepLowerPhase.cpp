//===- StepLowerPhase.cpp - What the ops of a phase become ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/microkernels/Math.h"
#include "codegen/weights/PackedLayout.h"
#include "passes/StepLowering.h"
#include "sparkc_abi.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace sparkc;

/// Phases of this many bytes of weights and more share the second halves of
/// their threads' work, in this many pieces a thread.
static constexpr int64_t kSharedWork = 256 * 1024;
static constexpr int64_t kPieces = 5;

static int64_t unitBytes(step::TilesOp tiles) {
  PackedMatrix matrix =
      PackedMatrix::plain(*layoutFromName(tiles.getLayout()), kTileRows,
                          tiles.getCols(), tiles.getGroup());
  return matrix.tileBytes() * (tiles.getPaired() ? 2 : 1);
}

/// Is there anything to do for `wanted`, which a prefill may be asked for?
static Value isWanted(Emitter &e, step::Wanted wanted) {
  Value flags = e.ctxField(e.i32(), offsetof(sparkc_ctx, flags));
  auto masked = [&](int64_t mask) -> Value {
    return arith::AndIOp::create(e.b, e.loc, flags, e.c(e.i32(), mask));
  };
  int64_t both = SPARKC_CTX_NO_LOGITS | SPARKC_CTX_ALL_LOGITS;
  if (wanted == step::Wanted::last)
    return e.cmp(arith::CmpIPredicate::eq, masked(both), e.c(e.i32(), 0));
  return e.cmp(arith::CmpIPredicate::eq, masked(both),
               e.c(e.i32(), SPARKC_CTX_ALL_LOGITS));
}

LogicalResult StepLowering::lowerPhase(step::PhaseOp phase,
                                       LLVM::LLVMFuncOp function,
                                       ValueRange captured) {
  Emitter e = open(function);
  map.clear();
  for (auto [i, value] : llvm::enumerate(captured))
    map.map(value, function.getBody().front().getArgument(5 + i));
  if (!phase.getWhen())
    return lowerWork(e, phase);
  LogicalResult result = success();
  e.ifThen(isWanted(e, *phase.getWhen()),
           [&] { result = lowerWork(e, phase); });
  return result;
}

LogicalResult StepLowering::lowerWork(Emitter &e, step::PhaseOp phase) {
  // Whatever prepares the activation comes before the tiles.
  SmallVector<step::TilesOp> tiles(phase.getBody().getOps<step::TilesOp>());
  bool blocks = !phase.getBody().getOps<step::BlockViewOp>().empty();
  for (Operation &op : phase.getBody().front()) {
    e.loc = op.getLoc();
    if (!isa<step::TilesOp>(op) && failed(lowerPhaseOp(e, op)))
      return failure();
  }
  if (tiles.empty())
    return success();
  if (blocks)
    return lowerBlocks(e, tiles);
  int64_t total = 0;
  for (step::TilesOp run : tiles)
    total += unitBytes(run) * int64_t(run.getUnits());
  Value work = workOf(e, phase, total);
  bool ok = true;
  auto runAll = [&](Value lo, Value hi) {
    int64_t done = 0;
    for (step::TilesOp run : tiles) {
      e.loc = run.getLoc();
      ok &= succeeded(lowerTiles(e, run, done, lo, hi));
      done += unitBytes(run) * int64_t(run.getUnits());
    }
  };
  if (total < kSharedWork)
    runAll(shareAt(e, work, e.tid), shareAt(e, work, e.addC(e.tid, 1)));
  else
    emitSharedWork(e, work, runAll);
  return success(ok);
}

/// The phase's work in bytes of weights; none where it computes logits that are
/// not wanted.
Value StepLowering::workOf(Emitter &e, step::PhaseOp phase, int64_t total) {
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

/// Every thread does the first half of its own share; the second halves are cut
/// in pieces that whoever is done takes, so that no thread waits long for one
/// whose processor was slower or was taken away for a while. Each piece is half
/// of what is left of its share, the last all of it: large ones first, so that
/// few are claimed and yet all threads end together.
void StepLowering::emitSharedWork(Emitter &e, Value work,
                                  llvm::function_ref<void(Value, Value)> run) {
  Value alone = e.cmp(arith::CmpIPredicate::eq, e.n, e.c(1));
  Value pieces = e.mulC(e.n, kPieces);
  scf::WhileOp::create(
      b, e.loc, TypeRange{e.i64()}, ValueRange{e.c(-1)},
      [&](OpBuilder &, Location, ValueRange args) {
        Value more = e.cmp(arith::CmpIPredicate::slt, args[0], pieces);
        scf::ConditionOp::create(b, e.loc, more, args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        Value own = e.cmp(arith::CmpIPredicate::slt, args[0], e.c(0));
        Value piece = e.select(own, e.c(0), args[0]);
        Value owner =
            e.select(own, e.tid, arith::RemUIOp::create(b, e.loc, piece, e.n));
        Value index = e.udiv(piece, e.n);
        Value start = shareAt(e, work, owner);
        Value end = shareAt(e, work, e.addC(owner, 1));
        Value length = e.sub(end, start);
        auto leftAfter = [&](Value halvings) -> Value {
          return arith::ShRUIOp::create(b, e.loc, length, halvings);
        };
        Value next = e.addC(index, 1);
        Value pieceStart = e.sub(end, leftAfter(next));
        Value last = e.cmp(arith::CmpIPredicate::eq, next, e.c(kPieces));
        Value pieceEnd =
            e.select(last, end, e.sub(end, leftAfter(e.addC(index, 2))));
        Value lo = e.select(own, start, pieceStart);
        Value hi = e.select(own, e.select(alone, end, pieceStart), pieceEnd);
        run(lo, hi);
        auto claimed = scf::IfOp::create(
            b, e.loc, alone,
            [&](OpBuilder &, Location) {
              scf::YieldOp::create(b, e.loc, pieces);
            },
            [&](OpBuilder &, Location) {
              Value claim = emitClaim(e);
              scf::YieldOp::create(b, e.loc, claim);
            });
        scf::YieldOp::create(b, e.loc, claimed.getResults());
      });
}

template <typename Op> static AttentionShape shapeOf(Op attention) {
  return {attention.getCache(), int64_t(attention.getHeads()),
          int64_t(attention.getWindow()), int64_t(attention.getChunk()),
          attention.getScale().convertToFloat()};
}

/// Each thread takes its share of the tokens.
LogicalResult StepLowering::lowerTokensOp(Emitter &e, step::TokensOp tokens) {
  auto [lo, hi] = e.share(e.tokenCount());
  bool ok = true;
  e.loop(lo, hi, 1, [&](Value token) {
    e.token = token;
    for (Operation &op : tokens.getBody().front()) {
      e.loc = op.getLoc();
      ok &= succeeded(lowerPhaseOp(e, op));
    }
    e.token = Value();
  });
  return success(ok);
}

LogicalResult StepLowering::lowerPhaseOp(Emitter &e, Operation &op) {
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
        Value token = view.getLast() ? e.addC(e.tokenCount(), -1) : e.token;
        map.map(view.getOutput(), rowAddress(e, view.getSlot(), token));
        return success();
      })
      .Case([&](step::TokensOp tokens) { return lowerTokensOp(e, tokens); })
      .Case([&](step::RopeTableOp table) {
        lowerRopeTable(e, table);
        return success();
      })
      .Case([&](step::KeepOp keep) {
        emitKeep(e, in(keep.getInput()), keep.getInput().getType().getSize(),
                 slotAddress(e, keep.getSlot()));
        return success();
      })
      .Case([&](step::PutOp put) {
        Type type = put.getInput().getType();
        auto [size, group] = step::activationShape(type);
        emitPut(e, in(put.getInput()), size, group,
                step::isBF16Activation(type), put.getByToken(),
                slotAddress(e, put.getSlot()));
        return success();
      })
      .Case([&](step::BlockViewOp view) {
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
        bool bf16 = step::isBF16Activation(type);
        QVecLayout layout(type.getSize(), type.getGroup(), bf16);
        Value room = e.stack(layout.bytes);
        auto emit = bf16 ? emitRoundBF16 : emitQuantize;
        emit(e, in(quantize.getInput()), type.getSize(), type.getGroup(), room);
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
                  embed.getGroup().value_or(0),
                  slotAddress(e, embed.getSlot()));
        return success();
      })
      .Case([&](step::AttentionOp attention) {
        TokenKV token;
        if (attention.getKey())
          token = {slotAddress(e, *attention.getKey()),
                   slotAddress(e, *attention.getValue())};
        emitAttention(e, shapeOf(attention),
                      slotAddress(e, attention.getQuery()), token,
                      slotAddress(e, attention.getPartials()));
        return success();
      })
      .Case([&](step::CacheWriteOp write) {
        CacheAddress cache(e, write.getCache());
        Value key = slotAddress(e, write.getKey());
        Value value = slotAddress(e, write.getValue());
        Value slot = cache.slotOf(e.pos());
        e.loop(e.c(0), e.c(cache.heads), 1, [&](Value head) {
          Value at = e.mulC(head, cache.dim * 4);
          emitCacheWrite(cache, head, slot, {e.at(key, at), e.at(value, at)});
        });
        return success();
      })
      .Case([&](step::BlockAttentionOp attention) {
        auto row = [&](StringRef name) {
          return *symbols.lookup<step::SlotOp>(name).getRow();
        };
        emitBlockAttention(
            e, shapeOf(attention), slotAddress(e, attention.getQuery()),
            row(attention.getQuery()), slotAddress(e, attention.getOutput()),
            row(attention.getOutput()));
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("cannot be lowered in a phase");
      });
}

/// The function of a tile kernel for one shape and `count` tiles side by side:
/// (tiles..., x) to the accumulators of each. All that read such tiles share it:
/// what a hardware prefetcher has learnt of its instructions holds from phase to
/// phase.
LLVM::LLVMFuncOp StepLowering::tileFunction(step::TilesOp tiles,
                                            const TileKernel &kernel,
                                            int64_t count) {
  const int64_t cols = tiles.getCols(), group = tiles.getGroup(),
                ahead = tiles.getAhead().value_or(0);
  auto qvec = dyn_cast<step::QVecType>(tiles.getActivation().getType());
  const int64_t xGroup = qvec ? qvec.getGroup() : 0;
  std::string name = llvm::formatv("{0}.{1}.{2}.{3}.{4}{5}.{6}", kernel.name,
                                   cols, group, xGroup, ahead,
                                   tiles.getOnce() ? "once" : "", count);
  LLVM::LLVMFuncOp &function = kernels[name];
  if (function)
    return function;
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> results(count, VectorType::get(kLanes, b.getF32Type()));
  auto result = LLVM::LLVMStructType::getLiteral(b.getContext(), results);
  function = makeFunction(name, SmallVector<Type>(count + 1, ptr()),
                          tiles.getLoc(), result);
  Block &block = function.getBody().front();
  b.setInsertionPointToStart(&block);
  Emitter e(b, tiles.getLoc());
  e.sanitizeThread = sanitizeThread;
  SmallVector<Value> args(block.getArguments());
  SmallVector<Value> sums = kernel.build(
      e, TileOperands{ArrayRef(args).drop_back(), args.back(), cols, group,
                      xGroup, ahead, tiles.getOnce()});
  Value all = LLVM::PoisonOp::create(b, e.loc, result);
  for (auto [i, sum] : llvm::enumerate(sums))
    all = LLVM::InsertValueOp::create(b, e.loc, all, sum, i);
  LLVM::ReturnOp::create(b, e.loc, all);
  return function;
}

LogicalResult StepLowering::lowerTiles(Emitter &e, step::TilesOp tiles,
                                       int64_t firstByte, Value loByte,
                                       Value hiByte) {
  const TileKernel *kernel = findTileKernel(*tiles.getKernel());
  Type type = tiles.getActivation().getType();
  if (!kernel || kernel->layout != tiles.getLayout() ||
      kernel->pairs != step::isBF16Activation(type))
    return tiles.emitOpError()
           << "kernel '" << *tiles.getKernel() << "' does not read layout '"
           << tiles.getLayout() << "' with activations " << type;
  int64_t bytes = unitBytes(tiles), units = tiles.getUnits();
  // Units that start in [loByte, hiByte).
  auto firstUnit = [&](Value at) {
    Value begun = e.sub(e.umax(at, e.c(firstByte)), e.c(firstByte));
    return e.umin(e.divC(e.addC(begun, bytes - 1), bytes), e.c(units));
  };
  Value lo = firstUnit(loByte), hi = firstUnit(hiByte);
  Value base = e.at(e.weights, int64_t(tiles.getOffset()));
  Value activation = map.lookup(tiles.getActivation());
  int64_t perUnit = tiles.getPaired() ? 2 : 1;
  Block &body = tiles.getBody().front();
  bool ok = true;
  // Some units side by side, then the epilogue of each.
  auto emitUnits = [&](ArrayRef<Value> together) {
    const int64_t n = together.size();
    LLVM::LLVMFuncOp function = tileFunction(tiles, *kernel, n);
    SmallVector<Value> sums;
    for (int64_t i = 0; i < perUnit; ++i) {
      SmallVector<Value> operands;
      for (Value unit : together)
        operands.push_back(
            e.at(base, e.addC(e.mulC(unit, bytes), i * bytes / perUnit)));
      operands.push_back(activation);
      Value all =
          LLVM::CallOp::create(b, e.loc, function, operands).getResult();
      for (int64_t at = 0; at < n; ++at)
        sums.push_back(LLVM::ExtractValueOp::create(b, e.loc, all, at));
    }
    for (auto [at, unit] : llvm::enumerate(together)) {
      for (int64_t i = 0; i < perUnit; ++i)
        map.map(body.getArgument(i), sums[i * n + at]);
      map.map(body.getArgument(perUnit), e.mulC(unit, kLanes));
      for (Operation &op : body) {
        e.loc = op.getLoc();
        ok &= succeeded(lowerEpilogueOp(e, op));
      }
    }
  };
  if (kernel->streams == 1 || tiles.getSerial()) {
    e.loop(lo, hi, 1, [&](Value unit) { emitUnits(unit); });
    return success(ok);
  }
  Value half = e.divC(e.sub(e.umax(hi, lo), lo), 2);
  e.loop(e.c(0), half, 1, [&](Value i) {
    Value first = e.add(lo, i);
    emitUnits({first, e.add(first, half)});
  });
  Value rest = e.add(lo, e.mulC(half, 2));
  e.ifThen(e.cmp(arith::CmpIPredicate::ult, rest, hi),
           [&] { emitUnits(rest); });
  return success(ok);
}

LogicalResult StepLowering::lowerEpilogueOp(Emitter &e, Operation &op) {
  auto in = [&](Value value) { return map.lookup(value); };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](step::ViewOp) { return lowerPhaseOp(e, op); })
      .Case([&](step::RotateOp rotate) {
        auto [first, second] = emitRotate(
            e, in(rotate.getA()), in(rotate.getB()), in(rotate.getTable()),
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
        Value row = e.ctxField(ptr(), offsetof(sparkc_ctx, logits));
        if (e.token)
          row = e.at(row, e.mulC(e.token, 4 * logits.getLanes().getCount()));
        emitStoreLanes(e, in(logits.getValue()), row, in(logits.getJ()),
                       logits.getLanes());
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("cannot be lowered in an epilogue");
      });
}
