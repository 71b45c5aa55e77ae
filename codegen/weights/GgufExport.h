//===- GgufExport.h - Packed weights as a GGUF file -------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes the weights of a compiled model, code by code, as a GGUF file, so
/// that another engine can run the very same ones. Every matrix must have a
/// type that GGUF has.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_GGUFEXPORT_H
#define SPARKC_CODEGEN_WEIGHTS_GGUFEXPORT_H

#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/WeightFile.h"
#include "dialect/import/GgufWriter.h"
#include "dialect/spark/Spark.h"
#include <atomic>
#include <map>
#include <optional>

namespace sparkc {

/// A file that is written while weights are packed; it has its name only after
/// `finish`.
class GgufExport {
public:
  /// Starts an export of the spark.weight ops of `module`, whose types are
  /// decided, to `path`. The model was read from `source`.
  static llvm::Expected<std::unique_ptr<GgufExport>>
  create(mlir::ModuleOp module, const Checkpoint &checkpoint,
         llvm::StringRef source, llvm::StringRef path);
  GgufExport(const GgufExport &) = delete;
  GgufExport &operator=(const GgufExport &) = delete;

  /// Takes packed tiles, from `firstTile` on: a PackTap.
  llvm::Error add(const DirectoryEntry &entry, int64_t firstTile,
                  llvm::ArrayRef<uint8_t> tiles);
  /// Checks that every row came.
  llvm::Error finish();

private:
  struct Tensor {
    size_t index;
    DType type;
    std::atomic<uint64_t> written{0};
  };
  GgufExport() = default;
  llvm::Error addTensor(mlir::Operation *weight);
  llvm::Error addTile(const DirectoryEntry &entry, int64_t tile,
                      const uint8_t *bytes);
  llvm::Error put(Tensor &tensor, int64_t row, llvm::ArrayRef<uint8_t> bytes);

  std::string path;
  std::optional<OutputFile> file;
  GgufWriter writer;
  std::map<std::string, std::unique_ptr<Tensor>, std::less<>> tensors;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_GGUFEXPORT_H
