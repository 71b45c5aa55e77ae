//===- Safetensors.h - Safetensors files, checked before use ----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format: 8 bytes little-endian header length n, n bytes of JSON, then the
// tensors' bytes. The JSON maps a tensor's name to its dtype, its shape and the
// half-open range [begin, end) of its bytes, counted from the end of the JSON.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_SAFETENSORS_H
#define SPARKC_DIALECT_IMPORT_SAFETENSORS_H

#include "dialect/import/DType.h"
#include "dialect/import/MappedFile.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace sparkc {

/// One tensor of a file. Its bytes need not be aligned to its element size.
struct TensorInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape; ///< outermost first; empty for a scalar
  uint64_t offset;            ///< from the start of the file
  uint64_t bytes;
};

/// The shape as text: "[256, 128]".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// Reads and checks the header of a whole file held in memory: lengths, JSON,
/// dtypes, shapes; and that the tensors' ranges cover the rest of the file
/// without gap or overlap, each as large as its shape says. So a file cut or
/// grown at any byte is refused. Tensors come in the order of their bytes.
/// Errors read "<path>: <reason>".
llvm::Expected<std::vector<TensorInfo>>
parseSafetensorsHeader(llvm::ArrayRef<uint8_t> file, llvm::StringRef path);

/// A mapped file whose header has been checked.
class SafetensorsFile {
public:
  static llvm::Expected<SafetensorsFile> open(llvm::StringRef path);

  /// In the order of their bytes.
  llvm::ArrayRef<TensorInfo> tensors() const { return list; }
  /// Null where the file has no such tensor.
  const TensorInfo *find(llvm::StringRef name) const;
  const std::shared_ptr<MappedFile> &file() const { return mapped; }

private:
  SafetensorsFile() = default;

  std::shared_ptr<MappedFile> mapped;
  std::vector<TensorInfo> list;
  llvm::StringMap<size_t> byName;
};

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_SAFETENSORS_H
