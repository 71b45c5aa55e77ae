//===- FusedLinear.h - Rewrites of spark.fused_linear -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the fusion passes share. Each rewrite has a check that says whether it
// keeps the meaning; a rewrite may only be called after its check said yes. A
// plain spark.linear is promoted to a fused one first, so that passes work in
// any order.
//
// "Before" is by dominance inside one block. Ops with side effects keep their
// order among each other.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_FUSEDLINEAR_H
#define SPARKC_PASSES_FUSEDLINEAR_H

#include "dialect/spark/Spark.h"

#include "mlir/IR/PatternMatch.h"

namespace sparkc {

/// The spark.linear or spark.fused_linear that gives the value; else null.
mlir::Operation *getLinear(mlir::Value value);

/// True for a spark.linear and for a fused one whose prologue does nothing.
bool hasIdentityPrologue(mlir::Operation *linear);

/// True where the value is what a segment gives, untouched by an epilogue.
bool isSegmentResult(mlir::Value value);

/// Replaces a spark.linear by a fused one of one segment that does nothing
/// before and after; gives a fused one back as it is.
spark::FusedLinearOp promote(mlir::RewriterBase &rewriter,
                             mlir::Operation *linear);

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// Whether the two linears (plain or fused) read the same activation and can
/// be computed in one place: at the earlier one, or else at the later one.
bool canJoin(mlir::Operation *first, mlir::Operation *second);

/// Makes one fused linear of the two: the segments and results of `first`, then
/// those of `second`.
spark::FusedLinearOp join(mlir::RewriterBase &rewriter, mlir::Operation *first,
                          mlir::Operation *second);

//===----------------------------------------------------------------------===//
// Moving ops into the regions
//===----------------------------------------------------------------------===//

/// Whether `op` (without side effects, one result) can move into the prologue
/// of `linear`: the prologue does nothing yet, and `linear` reads the result as
/// its input and nowhere else. Other users of `op` are the caller's affair.
bool canAbsorbIntoPrologue(mlir::Operation *linear, mlir::Operation *op);

/// Puts a copy of `op` into the prologue; the linear's inputs become the
/// operands of `op`. The op itself stays.
spark::FusedLinearOp absorbIntoPrologue(mlir::RewriterBase &rewriter,
                                        mlir::Operation *linear,
                                        mlir::Operation *op);

/// Whether `ops`, which stand after `linear` in its block in this order, can
/// move into its epilogue. Results of `linear` that they read, and those of
/// their own results that they read, must have no other readers; everything
/// else that they read must be there before `linear`.
bool canAbsorbIntoEpilogue(mlir::Operation *linear,
                           llvm::ArrayRef<mlir::Operation *> ops);

/// Moves them. Their results that others read take the place of the results of
/// `linear` that they read.
spark::FusedLinearOp absorbIntoEpilogue(mlir::RewriterBase &rewriter,
                                        mlir::Operation *linear,
                                        llvm::ArrayRef<mlir::Operation *> ops);

} // namespace sparkc

#endif // SPARKC_PASSES_FUSEDLINEAR_H
