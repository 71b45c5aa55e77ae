//===- PackPlan.h - From step.pack ops to a weights file ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_PACKPLAN_H
#define SPARKC_CODEGEN_WEIGHTS_PACKPLAN_H

#include "codegen/weights/Pack.h"
#include "codegen/weights/PackedMatrixOf.h"
#include "codegen/weights/WeightFile.h"
#include "dialect/import/MappedFile.h"
#include "dialect/step/Step.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <optional>

namespace sparkc {

/// The files that weights lie in, each mapped once.
class WeightSources {
public:
  /// The matrix that a weight names, with its transforms; `asRow`: a vector, as
  /// its one row. A matrix whose columns are transformed is read, as float32.
  llvm::Expected<SourceMatrix> open(spark::WeightOp weight, bool asRow);

private:
  /// The matrix as the file has it.
  llvm::Expected<SourceMatrix> openStored(spark::WeightOp weight, bool asRow);
  llvm::Error transform(spark::WeightOp weight, SourceMatrix &matrix);
  /// The file of `source`, which holds all of its bytes.
  llvm::Expected<std::shared_ptr<MappedFile>> map(spark::WeightOp weight,
                                                  spark::SourceAttr source);

  llvm::StringMap<std::shared_ptr<MappedFile>> files;
};

/// What became of one source weight of a pack.
struct PackedSource {
  std::string name;   ///< logical, "layers.3.q_k_v_proj"
  std::string scheme; ///< "q4:g64", "bf16", "f32"
  int64_t rows = 0;   ///< a vector: 1
  int64_t cols = 0;
  uint64_t bytes = 0; ///< of its tiles: padding, scales, zero points included
  /// Signal to quantization noise in decibels, at most 200 (no error at all);
  /// none where there is no grid, or the source holds codes already and not
  /// the weights they stand for.
  std::optional<double> sqnr;
  bool isLinear = false; ///< tiles of a linear: a step streams all of it
};

/// What became of one pack.
struct PackedTensor {
  std::string name;
  Layout layout = Layout::VectorF32;
  uint64_t bytes = 0;
  std::vector<PackedSource> sources;
};

/// The text that an asset names; of a GGUF file, what it says of that kind.
llvm::Expected<std::string> assetText(spark::AssetOp asset);

/// Sees packed tiles (rows, of row-major layouts) as they are written:
/// `tiles` starts with tile `firstTile` of the entry's matrix.
using PackTap = std::function<llvm::Error(
    const DirectoryEntry &entry, int64_t firstTile,
    llvm::ArrayRef<uint8_t> tiles)>;

struct PackOptions {
  bool quiet = false; ///< no progress bar
  PackTap tap = {};   ///< may be empty
};

/// Packs all step.pack ops of the module in order, reading the files that their
/// spark.weight ops name, and adds the module's assets as sections. Shows a
/// progress bar on a terminal. Errors are one line that starts with the file at
/// fault.
llvm::Expected<std::vector<PackedTensor>>
packWeights(mlir::ModuleOp module, WeightFileWriter &writer,
            const PackOptions &options = {});

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_PACKPLAN_H
