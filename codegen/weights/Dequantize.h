//===- Dequantize.h - Packed weights as a checkpoint ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes the values that a compiled model computes with as a Hugging Face
/// checkpoint in F32: what the grids cost can then be measured with any
/// program. The head is a tensor of its own, since its grid is.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_DEQUANTIZE_H
#define SPARKC_CODEGEN_WEIGHTS_DEQUANTIZE_H

#include "codegen/weights/WeightFile.h"
#include "dialect/import/Checkpoint.h"
#include <atomic>
#include <map>

namespace sparkc {

/// Largest size of a file of the export; a tensor is never split.
constexpr uint64_t kExportShardBytes = 4000000000;

/// A checkpoint that is written while weights are packed. Its files have their
/// names only after `finish`; without that nothing remains of them.
class CheckpointExport {
public:
  /// Starts an export of `checkpoint`, which was read from `source`, into
  /// `directory`, which must be empty or not exist yet. `headIsEmbedding`: no
  /// pack has a source "lm_head"; the head gets the embedding's values.
  static llvm::Expected<std::unique_ptr<CheckpointExport>>
  create(const Checkpoint &checkpoint, llvm::StringRef source,
         llvm::StringRef directory, bool headIsEmbedding,
         uint64_t shardBytes = kExportShardBytes);
  ~CheckpointExport();
  CheckpointExport(const CheckpointExport &) = delete;
  CheckpointExport &operator=(const CheckpointExport &) = delete;

  /// Takes packed tiles, from `firstTile` on: a PackTap. Memory is bounded by a
  /// tile in float32 for each thread.
  llvm::Error add(const DirectoryEntry &entry, int64_t firstTile,
                  llvm::ArrayRef<uint8_t> tiles);

  /// Checks that every row came, writes the config, copies the text files.
  llvm::Error finish();

private:
  struct Tensor {
    std::string name; ///< as the file has it
    std::vector<int64_t> shape;
    size_t shard = 0;
    uint64_t offset = 0; ///< in its file
    std::atomic<uint64_t> written{0};
    uint64_t bytes() const;
  };
  struct Shard {
    std::string name;
    std::vector<Tensor *> tensors;
    uint64_t bytes = 0; ///< of tensors
    int fd = -1;
  };

  CheckpointExport() = default;
  void plan(const Checkpoint &checkpoint, uint64_t shardBytes);
  llvm::Error openShards();
  llvm::Error put(Tensor &tensor, uint64_t at, llvm::ArrayRef<float> values);
  llvm::Error addTile(const DirectoryEntry &entry, int64_t tile,
                      const uint8_t *bytes);
  llvm::Error writeConfig();
  llvm::Error copyTexts();
  llvm::Error writeGgufTexts();
  std::string pathOf(llvm::StringRef name) const;
  std::string created(llvm::StringRef name);

  std::string source, directory, configText;
  bool isGguf = false;
  bool madeDirectory = false, finished = false, headIsEmbedding = false;
  std::vector<std::unique_ptr<Tensor>> tensors; ///< in model order
  std::map<std::string, Tensor *, std::less<>> byLogicalName;
  std::vector<Shard> shards;
  std::vector<std::string> files; ///< to remove on failure
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_DEQUANTIZE_H
