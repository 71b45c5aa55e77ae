//===- TiedHead.h - A head that reads the embedding -------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_TIEDHEAD_H
#define SPARKC_PASSES_TIEDHEAD_H

#include "dialect/spark/Spark.h"

namespace sparkc {

/// The linears outside of layers that read the embedding's table.
llvm::SmallVector<spark::LinearOp> tiedHeads(spark::EmbedOp embed);

/// Gives such a linear a weight of its own with the same source, @lm_head, to
/// be stored in another way than the table.
spark::WeightOp untie(spark::LinearOp head, spark::WeightOp table);

} // namespace sparkc

#endif // SPARKC_PASSES_TIEDHEAD_H
