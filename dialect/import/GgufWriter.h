//===- GgufWriter.h - Headers of GGUF files ---------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_GGUFWRITER_H
#define SPARKC_DIALECT_IMPORT_GGUFWRITER_H

#include "dialect/import/Checkpoint.h"
#include "dialect/import/Gguf.h"

namespace sparkc {

/// Keys and tensors of a file to be written, version 3, aligned to 32.
class GgufWriter {
public:
  static constexpr uint64_t alignment = 32;

  void add(llvm::StringRef key, llvm::StringRef text);
  void add(llvm::StringRef key, const char *text) {
    add(key, llvm::StringRef(text));
  }
  void add(llvm::StringRef key, uint32_t value);
  void add(llvm::StringRef key, float value);
  void add(llvm::StringRef key, bool value);
  void add(llvm::StringRef key, llvm::ArrayRef<std::string> texts);
  void add(llvm::StringRef key, llvm::ArrayRef<int32_t> values);
  void add(llvm::StringRef key, llvm::ArrayRef<bool> values);
  void add(llvm::StringRef key, const GgufValue &value);

  /// Shapes are outermost first. Gives the tensor's index.
  size_t addTensor(llvm::StringRef name, DType type,
                   llvm::ArrayRef<int64_t> shape);

  /// All that stands before the data; then offsets in the file are known.
  std::string header();
  uint64_t offset(size_t tensor) const { return tensors[tensor].offset; }
  uint64_t bytes(size_t tensor) const { return tensors[tensor].bytes; }
  uint64_t fileBytes() const { return end; }

private:
  void addKey(llvm::StringRef key, GgufType type);

  std::string keys;
  uint64_t keyCount = 0, end = 0;
  std::vector<TensorInfo> tensors;
};

/// Adds the keys of a model: those of the GGUF file that it was read from, or
/// what its config and tokenizer.json say. `source` is named in errors.
llvm::Error addModelKeys(GgufWriter &writer, const Checkpoint &checkpoint,
                         llvm::StringRef source);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_GGUFWRITER_H
