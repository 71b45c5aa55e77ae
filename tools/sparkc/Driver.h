//===- Driver.h - From a checkpoint or a stage to any later stage ---------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_DRIVER_H
#define SPARKC_TOOLS_SPARKC_DRIVER_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace sparkc {

enum class Stage { Spark, Fused, Step, LLVM, Assembly, Object, Shared };

struct DriverOptions {
  std::string input;  ///< a checkpoint, or the text of a stage
  std::string output; ///< empty or "-": stdout, where the stage is text
  Stage emit = Stage::Shared;
  /// A scheme (f32, bf16, q4:g64, ...) or "stored"; none: the default policy.
  std::optional<std::string> weights;
  std::vector<std::string> weightsFor; ///< GLOB=SCHEME, later ones win
  uint64_t rotate = 0; ///< seed of the rotations of weights; 0: none
  std::optional<std::string> kv;      ///< f32, f16; none: f16
  int64_t context = 0;                ///< 0: min(model's, 4096)
  /// Most tokens of one prefill call; 0: 256, or the model's context.
  int64_t prefillBlock = 0;
  std::string prefillGemm; ///< "onednn"; empty: kernels of our own
  /// int8, int8:g32, int8:g64, bf16; empty: int8, with `calibrate` int8:g32.
  std::string activations;
  std::string mcpu = "native";
  std::string isa; ///< "auto" or a list: code for each; empty: for mcpu alone
  bool sanitizeThread = false;
  std::string report;     ///< a JSON file on the weights; empty: none
  std::string dequantize; ///< a directory for a checkpoint; empty: none
  std::string exportGguf; ///< a GGUF file; empty: none
  /// A text, or token ids, to choose quantized weights on; empty: each is
  /// rounded for itself.
  std::string calibrate;
  /// Of 512 tokens; 0: 128, or as many as 4 GB hold.
  int64_t calibrateWindows = 0;
  /// At most so much is chosen for, a grid for each fused linear; 0: no budget,
  /// or with `calibrate` and no `weights` what the default grids stream.
  double bits = 0;          ///< a weight
  double bytesPerToken = 0; ///< that a step streams
  /// An SVG image of what could be chosen; empty: none.
  std::string pareto;
  /// A text, or token ids, to measure the finished build on; empty: none.
  std::string certify;
  int64_t certifyWindows = 0;  ///< at most so many; 0: all of the text
  /// With a larger mean KL the compile fails, where it is measured; where no
  /// other budget is given, what grids are chosen for.
  std::optional<double> maxKl;
  /// Whether grids are chosen on the text of `calibrate`.
  bool choosesGrids() const { return !calibrate.empty() && !weights; }
  bool quiet = false;
};

/// Compiles. Errors are one line; nothing is left of an output that failed.
llvm::Error compile(mlir::MLIRContext &context, const DriverOptions &options);

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_DRIVER_H
