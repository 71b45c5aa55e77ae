//===- EpilogueRuns.h - From epilogues on tensors to runs of tiles -*- C++ -*-//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The epilogue of a spark.fused_linear is written on whole tensors. A schedule
// wants to know which rows must meet in a tile or a pair of tiles, and what is
// done to each. This is the analysis between: every value that leaves the
// epilogue (a result, a key, a value) is traced back to rows of the segments.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_EPILOGUERUNS_H
#define SPARKC_PASSES_EPILOGUERUNS_H

#include "dialect/step/Step.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>

namespace sparkc {

/// Where the run's rows come from and what becomes of them.
struct EpilogueRun {
  /// Lanes: numbering shared by A and B tiles.
  int64_t heads = 1, width = 0, stride = 0;
  /// Segment and row base of A tiles, and of B tiles where paired (else -1).
  int64_t segmentA = 0, baseA = 0, segmentB = -1, baseB = 0;
  bool paired() const { return segmentB >= 0; }
  int64_t units() const { return (heads * width + 15) / 16; }

  /// Emits the ops that turn the accumulators into the values that leave: one
  /// for each of `lanes`.
  std::function<llvm::SmallVector<mlir::Value>(
      mlir::OpBuilder &, mlir::Location, mlir::ValueRange tiles, mlir::Value j)>
      compute;
  /// Elements, in the value that leaves, of each result of `compute`.
  llvm::SmallVector<step::LanesAttr> lanes;
  /// What leaves: operand `operand` of `sink` (the yield or a kv_write).
  mlir::Operation *sink = nullptr;
  unsigned operand = 0;
  mlir::Location loc;

  EpilogueRun(mlir::Location loc) : loc(loc) {}
};

/// What the schedule must know to emit residual adds and rotations.
struct EpilogueContext {
  /// The slot that holds a value defined above the epilogue; null after an
  /// error.
  std::function<mlir::FlatSymbolRefAttr(mlir::Value)> slotOf;
  /// The table of a rope.
  std::function<mlir::Value(spark::RopeAttr)> tableOf;
};

/// The runs of an epilogue, paired ones first. Emits an error and fails where
/// the epilogue is not of the forms that tiles can do.
mlir::FailureOr<llvm::SmallVector<EpilogueRun>>
analyzeEpilogue(spark::FusedLinearOp linear, const EpilogueContext &context);

} // namespace sparkc

#endif // SPARKC_PASSES_EPILOGUERUNS_H
