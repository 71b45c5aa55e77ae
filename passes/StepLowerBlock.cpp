//===- StepLowerBlock.cpp - Tiles times blocks of tokens ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The work of a phase is cut into macros: six tiles of a run by up to 128
// tokens. Threads take macros as they come; a macro's tiles are multiplied by
// the block kernel, some at a time, into scratch of the thread's own; then the
// epilogue runs for each token and each unit.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/weights/PackedLayout.h"
#include "passes/StepLowering.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace sparkc;

static constexpr int64_t kMacroTokens = 128;
/// Bytes of a token's accumulators.
static constexpr int64_t kScratchRow = kMacroTiles * 64;
// A call writes accumulators of all the tiles it can have.
static_assert(kMacroTiles % kBlockTiles == 0);

static int64_t tilesOfUnit(step::TilesOp tiles) {
  return tiles.getPaired() ? 2 : 1;
}
static int64_t macrosOf(step::TilesOp tiles) {
  return ceilDiv(int64_t(tiles.getUnits()) * tilesOfUnit(tiles), kMacroTiles);
}

/// The function of a block kernel for one shape:
/// (ctx, tid, n, tiles, count, x, quads, f).
LLVM::LLVMFuncOp StepLowering::blockFunction(step::TilesOp tiles,
                                             const BlockKernel &kernel) {
  int64_t xGroup =
      step::activationShape(tiles.getActivation().getType()).second;
  std::string name =
      llvm::formatv("{0}.{1}.{2}.{3}", kernel.name, int64_t(tiles.getCols()),
                    int64_t(tiles.getGroup()), xGroup);
  LLVM::LLVMFuncOp &function = kernels[name];
  if (function)
    return function;
  OpBuilder::InsertionGuard guard(b);
  Type i64 = b.getI64Type();
  function = makeFunction(
      name, {ptr(), i64, i64, ptr(), i64, ptr(), i64, ptr()}, tiles.getLoc());
  Emitter e = open(function);
  Block &block = function.getBody().front();
  kernel.build(e, BlockOperands{block.getArgument(3), block.getArgument(4),
                                block.getArgument(5), block.getArgument(6),
                                block.getArgument(7), kScratchRow,
                                int64_t(tiles.getCols()),
                                int64_t(tiles.getGroup()), xGroup});
  return function;
}

/// The kernel of a run, or null and an error.
static const BlockKernel *kernelOf(step::TilesOp tiles) {
  const BlockKernel *kernel = findBlockKernel(*tiles.getKernel());
  Type type = tiles.getActivation().getType();
  if (!kernel || kernel->layout != tiles.getLayout() ||
      kernel->pairs != step::isBF16Activation(type)) {
    tiles.emitOpError() << "kernel '" << *tiles.getKernel()
                        << "' does not read layout '" << tiles.getLayout()
                        << "' with activations " << type;
    return nullptr;
  }
  auto view = tiles.getActivation().getDefiningOp<step::BlockViewOp>();
  if (!view || view.getByToken() != kernel->byToken) {
    tiles.emitOpError() << "kernel '" << *tiles.getKernel()
                        << "' reads activations "
                        << (kernel->byToken ? "token by token" : "in quads")
                        << ", and these are not";
    return nullptr;
  }
  return kernel;
}

/// A macro's tiles by the tokens from `firstToken` on.
LogicalResult StepLowering::lowerMacro(Emitter &e, step::TilesOp tiles,
                                       const BlockKernel &kernel, Value macro,
                                       Value firstToken) {
  auto [size, xGroup] =
      step::activationShape(tiles.getActivation().getType());
  int64_t perUnit = tilesOfUnit(tiles), units = tiles.getUnits();
  int64_t tileBytes =
      PackedMatrix::plain(*layoutFromName(tiles.getLayout()), kTileRows,
                          tiles.getCols(), tiles.getGroup())
          .tileBytes();
  LLVM::LLVMFuncOp function = blockFunction(tiles, kernel);
  Value scratch = e.stack(kMacroTokens * kScratchRow);
  Value firstUnit = e.mulC(macro, kMacroTiles / perUnit);
  Value unitCount =
      e.umin(e.sub(e.c(units), firstUnit), e.c(kMacroTiles / perUnit));
  Value tileCount = e.mulC(unitCount, perUnit);
  Value tokens = e.umin(e.sub(e.tokenCount(), firstToken), e.c(kMacroTokens));
  Value quads = e.divC(e.addC(tokens, kQuad - 1), kQuad);
  Value first = e.at(e.at(e.weights, int64_t(tiles.getOffset())),
                     e.mulC(firstUnit, perUnit * tileBytes));
  Value x = e.at(map.lookup(tiles.getActivation()),
                 e.mulC(e.divC(firstToken, kQuad),
                        kernel.quadBytes(size, xGroup)));
  e.loop(e.c(0), tileCount, kernel.tiles, [&](Value tile) {
    Value count = e.umin(e.sub(tileCount, tile), e.c(kernel.tiles));
    LLVM::CallOp::create(b, e.loc, function,
                         ValueRange{e.ctx, e.tid, e.n,
                                    e.at(first, e.mulC(tile, tileBytes)), count,
                                    x, quads, e.at(scratch, e.mulC(tile, 64))});
  });

  Block &body = tiles.getBody().front();
  bool ok = true;
  e.loop(e.c(0), tokens, 1, [&](Value t) {
    e.token = e.add(firstToken, t);
    Value row = e.at(scratch, e.mulC(t, kScratchRow));
    e.loop(e.c(0), unitCount, 1, [&](Value unit) {
      for (int64_t i = 0; i < perUnit; ++i)
        map.map(body.getArgument(i),
                e.load(e.v16f32(),
                       e.at(row, e.addC(e.mulC(unit, 64 * perUnit), 64 * i)),
                       false, 64));
      map.map(body.getArgument(perUnit),
              e.mulC(e.add(firstUnit, unit), kLanes));
      for (Operation &op : body) {
        e.loc = op.getLoc();
        ok &= succeeded(lowerEpilogueOp(e, op));
      }
    });
    e.token = Value();
  });
  return success(ok);
}

LogicalResult StepLowering::lowerBlocks(Emitter &e,
                                        ArrayRef<step::TilesOp> tiles) {
  SmallVector<std::pair<step::TilesOp, const BlockKernel *>> runs;
  int64_t macros = 0;
  for (step::TilesOp run : tiles) {
    const BlockKernel *kernel = kernelOf(run);
    if (!kernel)
      return failure();
    runs.push_back({run, kernel});
    macros += macrosOf(run);
  }
  Value spans = e.divC(e.addC(e.tokenCount(), kMacroTokens - 1), kMacroTokens);
  Value total = e.mulC(spans, macros);
  bool ok = true;
  scf::WhileOp::create(
      b, e.loc, TypeRange{e.i64()}, ValueRange{emitClaim(e)},
      [&](OpBuilder &, Location, ValueRange args) {
        Value more = e.cmp(arith::CmpIPredicate::ult, args[0], total);
        scf::ConditionOp::create(b, e.loc, more, args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        Value macro = e.udiv(args[0], spans);
        Value span = e.sub(args[0], e.mul(macro, spans));
        Value firstToken = e.mulC(span, kMacroTokens);
        int64_t done = 0;
        for (auto [run, kernel] : runs) {
          e.loc = run.getLoc();
          int64_t end = done + macrosOf(run);
          Value mine = arith::AndIOp::create(
              b, e.loc, e.cmp(arith::CmpIPredicate::uge, macro, e.c(done)),
              e.cmp(arith::CmpIPredicate::ult, macro, e.c(end)));
          e.ifThen(mine, [&] {
            ok &= succeeded(lowerMacro(e, run, *kernel, e.addC(macro, -done),
                                       firstToken));
          });
          done = end;
        }
        scf::YieldOp::create(b, e.loc, emitClaim(e));
      });
  return success(ok);
}
