//===- BuildGraph.h - From a checkpoint to the spark dialect ----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_BUILDGRAPH_H
#define SPARKC_DIALECT_IMPORT_BUILDGRAPH_H

#include "dialect/import/Checkpoint.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace sparkc {

/// What the graph holds beyond the checkpoint.
struct GraphOptions {
  /// Element type of the KV cache.
  enum class KVType { F16, F32, Q8 } kv = KVType::F16;
  /// A session's default context, in positions, in [1, maxContext]; 0: the
  /// smaller of maxContext and 4096.
  int64_t context = 0;
  /// Most tokens of one prefill call.
  int64_t prefillBlock = 1;
  /// "onednn": prefill's products are the host's; empty: its own.
  std::string prefillGemm;
  /// What inputs of quantized matrices are rounded to, as in spark.config:
  /// "bf16", "int8:g32", "int8:g64"; empty: int8 in groups as of weights.
  std::string activations;
  /// Positions of one attention chunk, a multiple of 16. Fixes the bits of the
  /// softmax.
  int64_t chunk = 64;
};

/// Positions that a ring must hold so that every token of a block of
/// prefillBlock sees its whole window, in whole chunks. A quantized cache is
/// written while it is read, chunk by chunk: no chunk that is written shares
/// slots with the window of the token.
int64_t ringPositions(int64_t window, int64_t prefillBlock, int64_t chunk,
                      bool quantized);

/// Writes the model as one module of the spark dialect: its config, a
/// spark.weight for every weight (stored as the checkpoint stores it), a
/// spark.kv_cache for every layer, named @kv.N, and the function
///
///   func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1xVxf32>
///
/// which maps a token and its position to the logits of the next one. Every op
/// has a name for a location ("layers.3.q_k_v_proj"). No weight is read.
///
/// Loads the dialects it needs. A checkpoint that opened always gives a module
/// that verifies.
mlir::OwningOpRef<mlir::ModuleOp> buildGraph(mlir::MLIRContext &context,
                                             const Checkpoint &checkpoint,
                                             const GraphOptions &options);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_BUILDGRAPH_H
