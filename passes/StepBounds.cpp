//===- StepBounds.cpp - Every access lies in its place --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule is static: which bytes each op reads and writes is in the IR. So it
// can be checked before code is made of it that tiles, norms and rows are packed
// where a step reads them, that slots are as large as their values and lie in the
// arena, and that caches lie in the session's KV memory. The schedule of a model
// always passes; text that was edited may not.
//
// What a module does not say is not checked: offsets of weights without any
// step.pack, places in the arena and the KV memory without a step.descriptor,
// blocks of tokens without a spark.config. What barriers prefetch is a guess that
// may be wrong, and no read.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "codegen/weights/PackedMatrixOf.h"
#include "passes/StepChecks.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sparkc;

/// Products and sums that are too large for any place stay so.
static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return llvm::MulOverflow(a, b, product) ? INT64_MAX : product;
}
static int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return llvm::AddOverflow(a, b, sum) ? INT64_MAX : sum;
}

/// Elements of a vec in memory: zero up to a multiple of 128.
static int64_t vecBytes(int64_t size) {
  return int64_t(llvm::alignTo(size, 128)) * 4;
}

/// One past the last element that lanes stand for.
static int64_t lanesEnd(step::LanesAttr lanes) {
  return plus(lanes.getBase() + lanes.getWidth(),
              times(lanes.getHeads() - 1, lanes.getStride()));
}

/// As text has it.
template <typename Op> static std::string named(Op symbol) {
  return ("'@" + symbol.getSymName() + "'").str();
}

namespace {

/// Bytes that may grow with the capacity.
struct Bytes {
  int64_t constant = 0, perPosition = 0;

  Bytes(int64_t constant, int64_t perPosition = 0)
      : constant(constant), perPosition(perPosition) {}
  Bytes(step::AffineAttr attr)
      : Bytes(attr.getConstant(), attr.getPerPosition()) {}
  Bytes operator+(Bytes o) const {
    return {plus(constant, o.constant), plus(perPosition, o.perPosition)};
  }
  /// At every capacity.
  bool fitsIn(Bytes room) const {
    return constant <= room.constant && perPosition <= room.perPosition;
  }
};

Diagnostic &operator<<(Diagnostic &diag, Bytes bytes) {
  diag << bytes.constant;
  if (bytes.perPosition)
    diag << " + " << bytes.perPosition << " * capacity";
  return diag << " bytes";
}

/// Where the offsets of a function are relative to.
struct Base {
  /// The call; null for an entry.
  step::CallOp call;
  int64_t weights = 0;
  Bytes kv = 0;
};

class BoundsChecker {
public:
  BoundsChecker(ModuleOp module);
  LogicalResult run();

private:
  LogicalResult checkPacks();
  LogicalResult checkSlot(step::SlotOp slot);
  LogicalResult checkOp(Operation *op);

  // Weights.
  LogicalResult checkWeights(Operation *op, const Base &base);
  /// The pack that holds the byte at `offset` of the payload.
  step::PackOp packAt(int64_t offset);
  LogicalResult
  checkRead(Operation *op, const Base &base, int64_t offset,
            llvm::function_ref<std::string(step::PackOp, int64_t)> fault);

  // The arena.
  LogicalResult checkRow(Operation *op, StringRef slot, int64_t bytes);
  LogicalResult checkWhole(Operation *op, StringRef slot, Bytes bytes);
  LogicalResult checkActivations(Operation *op, StringRef slot, Type type);
  LogicalResult checkAttention(Operation *op, step::CacheAttr cache,
                               int64_t window, int64_t chunk);
  LogicalResult checkChunk(Operation *op, int64_t window, int64_t chunk);
  LogicalResult checkLanes(Operation *op, step::LanesAttr lanes);
  LogicalResult checkRecords(Operation *op, StringRef slot, int64_t heads,
                             int64_t headDim, int64_t window, int64_t chunk);

  // KV caches.
  LogicalResult checkCache(Operation *op, step::CacheAttr cache,
                           const Base &base);

  ModuleOp module;
  SymbolTable symbols;
  spark::ConfigOp config;
  step::DescriptorOp info;
  /// In the order of their offsets.
  SmallVector<step::PackOp> packs;
};

} // namespace

template <typename Op> static Op onlyOf(ModuleOp module) {
  auto ops = module.getOps<Op>();
  return ops.empty() ? Op() : *ops.begin();
}

BoundsChecker::BoundsChecker(ModuleOp module)
    : module(module), symbols(module), config(onlyOf<spark::ConfigOp>(module)),
      info(onlyOf<step::DescriptorOp>(module)),
      packs(module.getOps<step::PackOp>()) {
  llvm::stable_sort(packs, [](step::PackOp x, step::PackOp y) {
    return x.getOffset() < y.getOffset();
  });
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static int64_t endOf(step::PackOp pack) {
  return plus(pack.getOffset(), packedMatrix(pack).bytes());
}

LogicalResult BoundsChecker::checkPacks() {
  step::PackOp last;
  for (step::PackOp pack : packs) {
    if (last && int64_t(pack.getOffset()) < endOf(last)) {
      InFlightDiagnostic diag =
          pack.emitOpError() << "begins at " << pack.getOffset() << ", before "
                             << named(last) << " ends";
      diag.attachNote(last.getLoc()) << "it ends at " << endOf(last);
      return diag;
    }
    last = pack;
  }
  if (last && info && endOf(last) > int64_t(info.getPayload()))
    return last.emitOpError()
           << "ends at " << endOf(last) << ", behind the payload of "
           << info.getPayload() << " bytes";
  return success();
}

step::PackOp BoundsChecker::packAt(int64_t offset) {
  auto behind = llvm::upper_bound(packs, offset, [](int64_t at, step::PackOp p) {
    return at < int64_t(p.getOffset());
  });
  if (behind == packs.begin())
    return {};
  step::PackOp pack = *std::prev(behind);
  return offset < endOf(pack) ? pack : step::PackOp();
}

static void noteCall(InFlightDiagnostic &diag, const Base &base) {
  if (base.call)
    diag.attachNote(base.call->getLoc())
        << "called for weights at " << base.weights << " and a cache at "
        << base.kv;
}

/// The read `offset` bytes from the base. `fault` is given the pack that holds
/// its first byte, and where in it, and says what is wrong; nothing: it fits.
LogicalResult BoundsChecker::checkRead(
    Operation *op, const Base &base, int64_t offset,
    llvm::function_ref<std::string(step::PackOp, int64_t)> fault) {
  int64_t at = base.weights + offset;
  step::PackOp pack = packAt(at);
  std::string wrong = pack ? fault(pack, at - int64_t(pack.getOffset())) : "";
  if (pack && wrong.empty())
    return success();
  InFlightDiagnostic diag =
      op->emitOpError() << "reads at byte " << at << " of the payload, ";
  if (pack)
    diag << "where " << named(pack) << " at " << pack.getOffset()
         << " holds layout '" << pack.getLayout() << "' cols "
         << pack.getCols() << " group " << pack.getGroup() << ": " << wrong;
  else
    diag << "where nothing is packed";
  noteCall(diag, base);
  return diag;
}

static std::string tilesFault(step::TilesOp tiles, step::PackOp pack,
                              int64_t within) {
  if (pack.getLayout() != tiles.getLayout() ||
      pack.getCols() != tiles.getCols() || pack.getGroup() != tiles.getGroup())
    return "not its tiles";
  PackedMatrix matrix = packedMatrix(pack);
  if (within % matrix.tileBytes())
    return llvm::formatv("inside a tile of {0} bytes", matrix.tileBytes());
  int64_t left = matrix.tiles() - within / matrix.tileBytes();
  int64_t units = tiles.getUnits();
  if (units <= left / (tiles.getPaired() ? 2 : 1))
    return "";
  return llvm::formatv("{0} tiles, not {1}{2}", left, units,
                       tiles.getPaired() ? " pairs" : "");
}

static std::string normFault(step::RmsNormOp norm, step::PackOp pack,
                             int64_t within) {
  int64_t size = norm.getInput().getType().getSize();
  if (pack.getLayout() == layoutName(Layout::VectorF32) &&
      int64_t(pack.getCols()) == size && !within)
    return "";
  return llvm::formatv("no vector of {0}", size);
}

static std::string embedFault(step::EmbedOp embed, step::PackOp pack,
                              int64_t within, spark::ConfigOp config) {
  if (pack.getLayout() != embed.getLayout() ||
      pack.getCols() != embed.getHidden() ||
      pack.getGroup() != embed.getGroup().value_or(0) || within)
    return "not its rows";
  // Rows of a plain run are where their number says.
  RowRun run = packedMatrix(pack).runs.front();
  bool plain = !run.paired() && !run.baseA && run.heads == 1;
  int64_t rows = plain ? run.width : 0;
  if (!config || rows >= int64_t(config.getVocab()))
    return "";
  return llvm::formatv("{0} rows, not a vocabulary of {1}", rows,
                       config.getVocab());
}

LogicalResult BoundsChecker::checkWeights(Operation *op, const Base &base) {
  if (packs.empty())
    return success();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](step::TilesOp tiles) {
        return checkRead(op, base, tiles.getOffset(),
                         [&](step::PackOp pack, int64_t within) {
                           return tilesFault(tiles, pack, within);
                         });
      })
      .Case([&](step::RmsNormOp norm) {
        return checkRead(op, base, norm.getWeight(),
                         [&](step::PackOp pack, int64_t within) {
                           return normFault(norm, pack, within);
                         });
      })
      .Case([&](step::EmbedOp embed) {
        return checkRead(op, base, embed.getWeight(),
                         [&](step::PackOp pack, int64_t within) {
                           return embedFault(embed, pack, within, config);
                         });
      })
      .Case([&](step::StreamOp stream) -> LogicalResult {
        int64_t end = base.weights + int64_t(stream.getOffset()) +
                      int64_t(stream.getBytes());
        if (end <= endOf(packs.back()))
          return success();
        InFlightDiagnostic diag =
            stream.emitOpError() << "streams to byte " << end
                                 << " of a payload of " << endOf(packs.back());
        noteCall(diag, base);
        return diag;
      })
      .Default(success());
}

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

LogicalResult BoundsChecker::checkSlot(step::SlotOp slot) {
  Bytes size = slot.getSize();
  if (std::optional<int64_t> row = slot.getRow(); row && config) {
    int64_t block = config.getPrefillBlock();
    if (size.constant / block < *row)
      return slot.emitOpError() << "has " << block << " rows of " << *row
                                << " in " << size;
  }
  if (!info || !info.getArena())
    return success();
  Bytes arena = *info.getArena(), end = size + *slot.getOffset();
  if (!end.fitsIn(arena))
    return slot.emitOpError()
           << "ends at " << end << " of an arena of " << arena;
  return success();
}

/// One token's part of a slot.
LogicalResult BoundsChecker::checkRow(Operation *op, StringRef name,
                                      int64_t bytes) {
  auto slot = symbols.lookup<step::SlotOp>(name);
  std::optional<int64_t> row = slot.getRow();
  int64_t room = row ? *row : int64_t(slot.getSize().getConstant());
  if (bytes <= room)
    return success();
  return op->emitOpError() << "needs " << bytes << " bytes of " << named(slot)
                           << ", which has " << room
                           << (row ? " a token" : "");
}

LogicalResult BoundsChecker::checkWhole(Operation *op, StringRef name,
                                        Bytes bytes) {
  auto slot = symbols.lookup<step::SlotOp>(name);
  Bytes room = slot.getSize();
  if (bytes.fitsIn(room))
    return success();
  return op->emitOpError() << "needs " << bytes << " of "
                           << named(slot) << ", which has " << room;
}

/// A block of activations of this type.
LogicalResult BoundsChecker::checkActivations(Operation *op, StringRef slot,
                                              Type type) {
  if (!config)
    return success();
  if (symbols.lookup<step::SlotOp>(slot).getRow())
    return op->emitOpError() << "needs all tokens of a block in one, but '@"
                             << slot << "' has a row for each";
  auto [size, group] = step::activationShape(type);
  int64_t quads = ceilDiv(int64_t(config.getPrefillBlock()), kQuad);
  return checkWhole(
      op, slot,
      times(quads, blockQuadBytes(size, group, step::isBF16Activation(type))));
}

/// A whole number of chunks is what sessions remember.
LogicalResult BoundsChecker::checkChunk(Operation *op, int64_t window,
                                        int64_t chunk) {
  if (!window && info && int64_t(info.getCapacityMultiple()) % chunk)
    return op->emitOpError()
           << "its chunk of " << chunk << " does not divide capacities, "
           << "multiples of " << info.getCapacityMultiple();
  return success();
}

/// The records that an attention leaves for a fold.
LogicalResult BoundsChecker::checkRecords(Operation *op, StringRef slot,
                                          int64_t heads, int64_t headDim,
                                          int64_t window, int64_t chunk) {
  if (failed(checkChunk(op, window, chunk)))
    return failure();
  int64_t record = times(4 * step::partialFloats(headDim), heads);
  if (window)
    return checkWhole(op, slot,
                      times(record, step::maxWindowChunks(window, chunk)));
  return checkWhole(op, slot, {0, (record + chunk - 1) / chunk});
}

/// Chunks begin at multiples of their size, and none lies across a cache's end.
LogicalResult BoundsChecker::checkAttention(Operation *op,
                                            step::CacheAttr cache,
                                            int64_t window, int64_t chunk) {
  int64_t positions = cache.getPositions();
  if (positions % chunk)
    return op->emitOpError() << "a ring of " << positions
                             << " positions is not a multiple of its chunk of "
                             << chunk;
  if (positions && (!window || window > positions))
    return op->emitOpError()
           << "a ring of " << positions << " positions does not hold "
           << (window ? "its window" : "all keys");
  return positions ? success() : checkChunk(op, /*window=*/0, chunk);
}

//===----------------------------------------------------------------------===//
// KV caches
//===----------------------------------------------------------------------===//

LogicalResult BoundsChecker::checkCache(Operation *op, step::CacheAttr cache,
                                        const Base &base) {
  if (!info)
    return success();
  int64_t each =
      times(cache.getHeads(), cache.getKeyBytes() + cache.getValueBytes());
  int64_t positions = cache.getPositions();
  Bytes size = positions ? Bytes(times(each, positions)) : Bytes(0, each);
  Bytes end = base.kv + size;
  Bytes room = info.getKv();
  if (end.fitsIn(room))
    return success();
  InFlightDiagnostic diag = op->emitOpError() << "has a cache that ends at "
                                              << end << " of " << room;
  noteCall(diag, base);
  return diag;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Epilogues look at single lanes of the last tile alone: none is behind it.
LogicalResult BoundsChecker::checkLanes(Operation *op, step::LanesAttr lanes) {
  auto tiles = op->getParentOfType<step::TilesOp>();
  int64_t units = (lanes.getCount() + kLanes - 1) / kLanes;
  if (units == int64_t(tiles.getUnits()))
    return success();
  return op->emitOpError() << "has lanes for " << units << " tiles, not for "
                           << tiles.getUnits();
}

LogicalResult BoundsChecker::checkOp(Operation *op) {
  auto row = [&](StringRef slot, int64_t elements) {
    return checkRow(op, slot, times(elements, 4));
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](step::SlotOp slot) { return checkSlot(slot); })
      .Case([&](step::ViewOp view) {
        return checkRow(op, view.getSlot(),
                        vecBytes(view.getOutput().getType().getSize()));
      })
      .Case([&](step::KeepOp keep) {
        return row(keep.getSlot(), keep.getInput().getType().getSize());
      })
      .Case([&](step::PutOp put) {
        return checkActivations(op, put.getSlot(), put.getInput().getType());
      })
      .Case([&](step::BlockViewOp view) {
        return checkActivations(op, view.getSlot(), view.getOutput().getType());
      })
      .Case([&](step::EmbedOp embed) {
        // Codes are read in whole groups.
        return row(embed.getSlot(),
                   llvm::alignTo(embed.getHidden(),
                                 embed.getGroup().value_or(1)));
      })
      .Case([&](step::ResidualOp residual) -> LogicalResult {
        step::LanesAttr lanes = residual.getLanes();
        if (failed(checkLanes(op, lanes)))
          return failure();
        // Lanes side by side are read sixteen at a time.
        int64_t count = lanes.getCount();
        int64_t over = llvm::alignTo(count, kLanes) - count;
        return row(residual.getSlot(), plus(lanesEnd(lanes), over));
      })
      .Case([&](step::StoreOp store) -> LogicalResult {
        if (failed(checkLanes(op, store.getLanes())))
          return failure();
        return row(store.getSlot(), lanesEnd(store.getLanes()));
      })
      .Case([&](step::FoldOp fold) {
        return checkRecords(op, fold.getSlot(), fold.getHeads(),
                            fold.getHeadDim(), fold.getWindow(),
                            fold.getChunk());
      })
      .Case([&](step::AttentionOp attention) -> LogicalResult {
        step::CacheAttr cache = attention.getCache();
        int64_t heads = attention.getHeads(), headDim = cache.getHeadDim(),
                window = attention.getWindow(), chunk = attention.getChunk();
        if (failed(checkAttention(op, cache, window, chunk)) ||
            failed(row(attention.getQuery(), heads * headDim)))
          return failure();
        for (auto slot : {attention.getKey(), attention.getValue()})
          if (slot && failed(row(*slot, cache.getHeads() * headDim)))
            return failure();
        return checkRecords(op, attention.getPartials(), heads, headDim, window,
                            chunk);
      })
      .Case([&](step::BlockAttentionOp attention) -> LogicalResult {
        step::CacheAttr cache = attention.getCache();
        int64_t elements = attention.getHeads() * cache.getHeadDim();
        if (failed(checkAttention(op, cache, attention.getWindow(),
                                  attention.getChunk())) ||
            failed(row(attention.getQuery(), elements)))
          return failure();
        return row(attention.getOutput(), elements);
      })
      .Case([&](step::CacheWriteOp write) -> LogicalResult {
        int64_t elements =
            write.getCache().getHeads() * write.getCache().getHeadDim();
        if (failed(row(write.getKey(), elements)))
          return failure();
        return row(write.getValue(), elements);
      })
      .Case([&](step::KVStoreOp store) -> LogicalResult {
        step::CacheAttr cache = store.getCache();
        int64_t elements = cache.getHeads() * cache.getHeadDim();
        if (failed(checkLanes(op, store.getLanes())))
          return failure();
        if (lanesEnd(store.getLanes()) > elements)
          return store.emitOpError()
                 << "stores element " << lanesEnd(store.getLanes()) - 1
                 << " of " << elements << " in the cache";
        return success();
      })
      .Case([&](step::LogitsOp logits) -> LogicalResult {
        step::LanesAttr lanes = logits.getLanes();
        if (config && (lanes.getCount() != int64_t(config.getVocab()) ||
                       lanesEnd(lanes) != int64_t(config.getVocab())))
          return logits.emitOpError()
                 << "has lanes for " << lanesEnd(lanes)
                 << " logits, not for a vocabulary of " << config.getVocab();
        return checkLanes(op, lanes);
      })
      .Default(success());
}

LogicalResult BoundsChecker::run() {
  if (failed(checkPacks()))
    return failure();
  auto all = [](Operation *root,
                llvm::function_ref<LogicalResult(Operation *)> check) {
    return failure(root->walk([&](Operation *op) {
                         return failed(check(op)) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
                       }).wasInterrupted());
  };
  if (failed(all(module, [&](Operation *op) { return checkOp(op); })))
    return failure();
  llvm::StringMap<SmallVector<Base>> bases;
  for (auto func : module.getOps<step::FuncOp>()) {
    if (func.getEntry())
      bases[func.getSymName()].push_back({});
    for (auto call : func.getBody().getOps<step::CallOp>())
      bases[call.getCallee()].push_back(
          {call, int64_t(call.getWeights()), call.getKv()});
  }
  for (auto func : module.getOps<step::FuncOp>())
    for (const Base &base : bases[func.getSymName()])
      if (failed(all(func, [&](Operation *op) {
            auto cache = op->getAttrOfType<step::CacheAttr>("cache");
            if (cache && failed(checkCache(op, cache, base)))
              return failure();
            return checkWeights(op, base);
          })))
        return failure();
  return success();
}

LogicalResult sparkc::checkBounds(ModuleOp module) {
  return BoundsChecker(module).run();
}
