//===- AttentionRows.h - A few queries over a chunk of keys -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_CODEGEN_MICROKERNELS_ATTENTIONROWS_H
#define SPARKC_CODEGEN_MICROKERNELS_ATTENTIONROWS_H

#include "codegen/microkernels/Kernels.h"

namespace sparkc {

/// Rows whose accumulators stay in registers together.
constexpr int64_t kRowBlock = 8;

/// Queries of one KV head over one chunk of keys: those of some heads, for one
/// token or a few that follow each other. Rows are token by token.
class AttentionRows {
public:
  /// The keys of the chunk that a token sees: [lo, hi), none if hi <= lo.
  struct Range {
    mlir::Value lo, hi;
  };

  AttentionRows(Emitter &e, const AttentionShape &shape, CacheAddress &cache,
                int64_t heads, int64_t tokens);

  /// Chains of products that a score is the sum of, and tokens whose rows
  /// together still fit in registers; by the heads alone, so that a row's bits
  /// do not depend on its company.
  static int64_t chains(int64_t heads, int64_t dim);
  static int64_t tokensAtOnce(int64_t heads, int64_t dim);

  int64_t rows() const { return heads * tokens; }

  /// The chunk, and per row the address of its query.
  mlir::Value kvHead, chunkSlot;
  llvm::SmallVector<mlir::Value> queries;
  /// Per token, in order: neither bound ever falls.
  llvm::SmallVector<Range> ranges;

  /// Takes the scores and gives, per row, their maximum and the sum of the
  /// weights exp(score - maximum). Of a token that sees no key: -inf and 0.
  void emitWeights(llvm::SmallVectorImpl<mlir::Value> &maxima,
                   llvm::SmallVectorImpl<mlir::Value> &sums);
  /// Weighted sums of the values: 16 dims from 16 * `vector` on, per row.
  void emitValues(llvm::function_ref<void(int64_t row, mlir::Value vector,
                                          mlir::Value sums)>
                      use);

private:
  llvm::SmallVector<mlir::Value> emitScores();
  llvm::SmallVector<mlir::Value> emitDots(const KeyGroup &group,
                                          mlir::Value firstDim, int64_t dims,
                                          mlir::ValueRange sums,
                                          mlir::Value upcoming);
  const Range &rangeOf(int64_t row) const { return ranges[row / heads]; }
  mlir::Value scoresOf(int64_t row, mlir::Value key);
  mlir::Value firstBlock();
  mlir::Value lastBlock();

  Emitter &e;
  const AttentionShape &shape;
  CacheAddress &cache;
  int64_t heads, tokens;
  mlir::Value scores;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_ATTENTIONROWS_H
