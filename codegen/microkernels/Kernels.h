//===- Kernels.h - Bodies of the step's ops ---------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builders that emit what each op of the step dialect does. They take the op's
// attributes as plain values; addresses of vectors and slots are !llvm.ptr.
// Sizes are in elements unless they say bytes.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_KERNELS_H
#define SPARKC_CODEGEN_MICROKERNELS_KERNELS_H

#include "codegen/microkernels/Emitter.h"

namespace sparkc {

//===--- Prologue.cpp ----------------------------------------------------===//

/// Where the parts of a !step.qvec lie, in bytes; one of bf16 has no scales.
struct QVecLayout {
  QVecLayout(int64_t size, int64_t group, bool bf16 = false);
  int64_t groups, scales, sums, bytes;
};

/// x in groups of int8 to `out`, room for QVecLayout(size, group).bytes.
void emitQuantize(Emitter &e, mlir::Value x, int64_t size, int64_t group,
                  mlir::Value out);

/// x rounded to bf16, to `out`, room for QVecLayout(size, group, true).bytes.
void emitRoundBF16(Emitter &e, mlir::Value x, int64_t size, int64_t group,
                   mlir::Value out);

/// Room for `size` floats, zero up to the next multiple of 128.
mlir::Value emitVec(Emitter &e, int64_t size);

/// out = x / sqrt(mean(x^2) + eps) * w over `size` elements.
void emitRmsNorm(Emitter &e, mlir::Value x, mlir::Value weight, int64_t size,
                 double eps, mlir::Value out);

/// out[h, d] = in[h, d] * sigmoid(gate[h]).
void emitHeadGate(Emitter &e, mlir::Value in, mlir::Value gate, int64_t heads,
                  int64_t headDim, mlir::Value out);

/// cosines, then sines, of pos * frequency[i], i < period; `frequencies` holds
/// doubles.
void emitRopeTable(Emitter &e, mlir::Value frequencies, int64_t period,
                   mlir::Value out);

/// Copies the token's embedding row to `out`, f32: split over the threads, or
/// all of it where the emitter stands at one token of a block. `group`: columns
/// a scale; 0 for float layouts.
void emitEmbed(Emitter &e, mlir::Value weight, llvm::StringRef layout,
               int64_t hidden, int64_t group, mlir::Value out);
/// The same for codes: row `token` of a matrix in tiles.
void emitEmbedQuantized(Emitter &e, mlir::Value weight, llvm::StringRef layout,
                        int64_t hidden, int64_t group, mlir::Value token,
                        mlir::Value out);

//===--- Dot.cpp, QuantizedDot.cpp, PairDot.cpp --------------------------===//

/// Tiles of 16 rows and the activation they are to be multiplied with.
struct TileOperands {
  llvm::ArrayRef<mlir::Value> tiles;
  /// Of a !step.vec, or of a !step.qvec in groups of `xGroup`.
  mlir::Value x;
  int64_t cols;
  /// Columns a scale; 0 for float layouts.
  int64_t group = 0, xGroup = 0;
  /// Prefetch the line that lies so many bytes ahead of each; 0: none.
  int64_t ahead = 0;
  /// Prefetch it past the L2 cache.
  bool once = false;
};

/// Tiles times the activation: the accumulators of each.
using TileDot = llvm::SmallVector<mlir::Value> (*)(
    Emitter &e, const TileOperands &operands);

/// A line of the table of tile kernels: which layout it reads, from which
/// instruction set on, how many tiles it can read side by side, and the builder
/// of its body, for any number of tiles up to that.
struct TileKernel {
  const char *name;
  const char *layout;
  unsigned isa;
  int64_t streams;
  TileDot build;
  /// The activation is of bf16.
  bool pairs = false;
  /// Bits of sparkc_cpu_feature that it needs besides.
  unsigned features = 0;
};

/// The sparkc_isa of "avx2", "avxvnni", "avx512", "avx512vnni", "amx".
std::optional<unsigned> isaFromName(llvm::StringRef name);
llvm::StringRef isaName(unsigned isa);

llvm::ArrayRef<TileKernel> floatTileKernels();
llvm::ArrayRef<TileKernel> quantizedTileKernels();

/// All of them; of two for one layout the later needs more of the machine.
llvm::ArrayRef<TileKernel> tileKernels();
const TileKernel *findTileKernel(llvm::StringRef name);
/// The best for a layout on an instruction set; null if there is none.
const TileKernel *selectTileKernel(llvm::StringRef layout, unsigned isa);

/// Those that take activations of bf16, a table of their own in the same order.
/// findTileKernel knows them too.
llvm::ArrayRef<TileKernel> pairTileKernels();
const TileKernel *selectPairTileKernel(llvm::StringRef layout, unsigned isa,
                                       unsigned features);

//===--- Dot.cpp, QuantizedGemm.cpp, PairGemm.cpp ------------------------===//

/// Row tiles that a call of most block kernels multiplies; that threads take at a
/// time, and so the most of a call; tokens of a quad.
constexpr int64_t kBlockTiles = 3;
constexpr int64_t kMacroTiles = 6;
constexpr int64_t kQuad = 4;

/// Neighbouring tiles and the activations of a block of tokens.
struct BlockOperands {
  /// The first tile; `count` of them, 1 to BlockKernel::tiles, are there (i64).
  mlir::Value tiles, count;
  /// A !step.block in groups of `xGroup` (0: floats), and how many quads of
  /// tokens it has.
  mlir::Value x, quads;
  /// Takes the accumulators: 16 floats of tile i of token t at byte
  /// t * fRow + 64 i; those of tiles past `count` mean nothing.
  mlir::Value f;
  int64_t fRow;
  int64_t cols, group = 0, xGroup = 0;
};

/// A line of the table of block kernels. Each token's accumulators have the
/// bits that the layout's tile kernel gives, unless the host multiplies.
struct BlockKernel {
  const char *name;
  const char *layout;
  unsigned isa;
  void (*build)(Emitter &e, const BlockOperands &operands);
  bool onHost = false;
  /// As of tile kernels.
  bool pairs = false;
  unsigned features = 0;
  /// Most row tiles of a call: kBlockTiles or kMacroTiles.
  int64_t tiles = kBlockTiles;
  /// It reads a block that lies token by token.
  bool byToken = false;

  /// Bytes of four tokens of the block that it reads.
  int64_t quadBytes(int64_t size, int64_t group) const;
};

llvm::ArrayRef<BlockKernel> floatBlockKernels();
llvm::ArrayRef<BlockKernel> quantizedBlockKernels();
/// All of them, in the order of tileKernels().
llvm::ArrayRef<BlockKernel> blockKernels();
/// Those on tile registers (AmxGemm.cpp): integer layouts with a scale a group
/// and no minimum.
llvm::ArrayRef<BlockKernel> amxBlockKernels();
/// Those that have ctx->gemm multiply (HostGemm.cpp): chosen only where a
/// prefill is asked to, and only there for layouts of floats.
llvm::ArrayRef<BlockKernel> hostBlockKernels();
/// Those that take activations of bf16.
llvm::ArrayRef<BlockKernel> pairBlockKernels();
/// Of all.
const BlockKernel *findBlockKernel(llvm::StringRef name);
const BlockKernel *selectBlockKernel(llvm::StringRef layout, unsigned isa);
const BlockKernel *selectPairBlockKernel(llvm::StringRef layout, unsigned isa,
                                         unsigned features);
/// Null but for layouts of floats.
const BlockKernel *selectHostBlockKernel(llvm::StringRef layout);

//===--- Block.cpp -------------------------------------------------------===//

/// Where the parts of a quad of a !step.block lie, in bytes.
struct QuadLayout {
  QuadLayout(int64_t size, int64_t group, bool bf16 = false);
  int64_t words, scales, sums, bytes;
};

/// Bytes of four tokens of a !step.block, in the order that takes more.
int64_t blockQuadBytes(int64_t size, int64_t group, bool bf16);

/// Stores a token's activation (of a vec, or of a qvec in groups of `group`, of
/// bf16 or of int8) to its lane of the quads at `block`; or, `byToken`, behind
/// those of the tokens before it, as it is.
void emitPut(Emitter &e, mlir::Value x, int64_t size, int64_t group, bool bf16,
             bool byToken, mlir::Value block);
/// Copies `size` floats.
void emitKeep(Emitter &e, mlir::Value x, int64_t size, mlir::Value out);

//===--- Cache.cpp --------------------------------------------------------===//

/// The key and the value of a token, f32, [kv_head][dim]; null but for a
/// quantized cache.
struct TokenKV {
  mlir::Value key, value;
};

/// The 16 keys of a block, in dims that share scales.
struct KeyGroup {
  /// The line of the first of them.
  mlir::Value lines;
  /// Of the 16 keys; null where elements are floats.
  mlir::Value scales;
};

/// Where positions of a KV cache lie (bytes from the cache's start), and what
/// lies there: every reader of a cache reads it through this.
struct CacheAddress {
  CacheAddress(Emitter &e, step::CacheAttr cache);
  /// Slot of an absolute position.
  mlir::Value slotOf(mlir::Value position);
  /// The block of 16 keys that (head, slot) is in; the value of (head, slot).
  mlir::Value key(mlir::Value head, mlir::Value slot);
  mlir::Value value(mlir::Value head, mlir::Value slot);

  /// Calls `body(group, its dims, carried)` for each group of dims, in order;
  /// floats are one group.
  using GroupBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value group, int64_t dims, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> reduceGroups(mlir::ValueRange init,
                                              GroupBody body);
  KeyGroup keyGroup(mlir::Value block, mlir::Value group);
  /// 16 keys of dim `dim` of the group, f32; exact whatever the elements are.
  mlir::Value loadKeys(const KeyGroup &group, mlir::Value dim);
  /// Dims [16 i, 16 i + 16) of the value at `row`, f32, as exact.
  mlir::Value loadValues(mlir::Value row, mlir::Value i);

  Emitter &e;
  step::CacheAttr attr;
  int64_t heads, dim, paddedDim, ring;
  /// Of an element; of a key and of a value with their scales.
  int64_t bytes, keyBytes, valueBytes;
  /// Dims of a key that share a scale; all of them where elements are floats.
  int64_t groupDims;
  mlir::Value positions;
};

/// Quantizes the key and the value of one head (f32, [dim]) into `slot`.
void emitCacheWrite(CacheAddress &cache, mlir::Value head, mlir::Value slot,
                    const TokenKV &token);

//===--- Attention.cpp -----------------------------------------------------===//

struct AttentionShape {
  step::CacheAttr cache;
  int64_t heads, window, chunk;
  float scale;
};

void emitAttention(Emitter &e, const AttentionShape &shape, mlir::Value query,
                   const TokenKV &token, mlir::Value partials);

/// Folds the records into out[heads * headDim].
void emitFold(Emitter &e, mlir::Value partials, int64_t heads, int64_t headDim,
              int64_t window, int64_t chunk, mlir::Value out);

/// Attention of a block of tokens: rows of queries, `queryRow` bytes apart, to
/// rows of outputs, with the bits of emitAttention and emitFold.
void emitBlockAttention(Emitter &e, const AttentionShape &shape,
                        mlir::Value query, int64_t queryRow, mlir::Value out,
                        int64_t outRow);

/// First visible chunk and chunks that hold a visible key, at ctx.pos.
std::pair<mlir::Value, mlir::Value> emitChunkRange(Emitter &e, int64_t window,
                                                   int64_t chunk);

//===--- Epilogue.cpp ----------------------------------------------------===//

/// Elements of lanes j .. j+15 at `base` (floats), which are `lanes`.
mlir::Value emitLoadLanes(Emitter &e, mlir::Value base, mlir::Value j,
                          step::LanesAttr lanes);
void emitStoreLanes(Emitter &e, mlir::Value value, mlir::Value base,
                    mlir::Value j, step::LanesAttr lanes);
void emitKVStore(Emitter &e, mlir::Value value, step::KVKind kind,
                 mlir::Value j, step::CacheAttr cache, step::LanesAttr lanes);
/// {first, second} of the rotated pair.
std::pair<mlir::Value, mlir::Value> emitRotate(Emitter &e, mlir::Value a,
                                               mlir::Value b, mlir::Value table,
                                               int64_t period, mlir::Value j);

//===--- Barrier.cpp -----------------------------------------------------===//

/// Body of the private function barrier(ctx, tid, n, prefetch, bytes), with
/// the builder at its entry.
void emitBarrier(Emitter &e, mlir::Value prefetch, mlir::Value bytes);

/// Calls the function pointer `fn`, one of ctx's, which returns nothing.
void emitHostCall(Emitter &e, mlir::Value fn, mlir::ValueRange args);

/// Takes the next piece of the phase's end: 0, 1, ... since the last barrier.
mlir::Value emitClaim(Emitter &e);

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_KERNELS_H
