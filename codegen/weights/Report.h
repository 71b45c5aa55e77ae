//===- Report.h - What a compile made of the weights ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_REPORT_H
#define SPARKC_CODEGEN_WEIGHTS_REPORT_H

#include "codegen/weights/PackPlan.h"
#include "llvm/Support/JSON.h"

namespace sparkc {

/// Sizes and errors of a compiled model's weights.
struct WeightReport {
  std::string scheme;        ///< in words
  int64_t bytesPerStep = 0;  ///< weight bytes that one token streams
  int64_t linearWeights = 0; ///< weights of the linears, head included
  int64_t payloadBytes = 0;
  std::vector<PackedTensor> packs;
  /// What the finished build was measured to be; none where nobody asked.
  std::optional<llvm::json::Object> certificate;

  /// From the module's config and descriptor, and what packWeights gave.
  static WeightReport of(mlir::ModuleOp module,
                         std::vector<PackedTensor> packs);

  /// bytesPerStep * 8 / linearWeights.
  double bitsPerWeight() const;

  /// {"scheme", "bits_per_weight", "bytes_per_token", "linear_weights",
  ///  "payload_bytes", "certificate", "tensors": [{"name", "pack", "grid", "rows", "cols",
  ///  "bytes", "bits_per_weight", "sqnr_db"}]}
  ///
  /// `certificate` is there only if it was measured.
  /// Tensors stand in the order of their packs. `sqnr_db` is null where a
  /// tensor has no grid.
  llvm::json::Value json() const;

  /// For people: a row for each kind of matrix and grid ("*.down_proj", q4),
  /// with the mean SQNR and the tensor that has the least.
  std::string table() const;
  /// The JSON as a file has it.
  std::string text() const;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_REPORT_H
