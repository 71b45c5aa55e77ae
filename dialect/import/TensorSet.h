//===- TensorSet.h - The tensors of a Hugging Face directory ----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_TENSORSET_H
#define SPARKC_DIALECT_IMPORT_TENSORSET_H

#include "dialect/import/Safetensors.h"

#include <map>
#include <string>
#include <vector>

namespace sparkc {

/// Reads the text of a model.safetensors.index.json: tensor name -> name of the
/// shard that holds it. A shard is named by a plain file name, without folders.
/// Errors read "<path>: <reason>".
llvm::Expected<std::map<std::string, std::string>>
parseShardIndex(llvm::StringRef json, llvm::StringRef path);

/// Every tensor of a directory, from one file or from shards.
class TensorSet {
public:
  /// A tensor and the file it is in.
  struct Entry {
    const TensorInfo *info;
    const MappedFile *file;
  };

  /// Opens `model.safetensors`, and only where there is none,
  /// `model.safetensors.index.json` with its shards: the order in which
  /// Hugging Face looks. Index and shards must name the same tensors, each in
  /// one shard.
  static llvm::Expected<TensorSet> open(llvm::StringRef directory);

  /// The file to blame for a tensor that is not there.
  const std::string &origin() const { return source; }
  const std::map<std::string, Entry> &entries() const { return byName; }
  const Entry *find(const std::string &name) const {
    auto it = byName.find(name);
    return it == byName.end() ? nullptr : &it->second;
  }
  llvm::ArrayRef<SafetensorsFile> files() const { return opened; }

private:
  llvm::Error openShards(llvm::StringRef directory);
  void addTensors(const SafetensorsFile &file);

  std::string source;
  std::vector<SafetensorsFile> opened;
  std::map<std::string, Entry>
      byName; // into `opened`, whose buffers are stable
};

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_TENSORSET_H
