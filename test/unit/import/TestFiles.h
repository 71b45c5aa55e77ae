//===- TestFiles.h - Small input files for the import tests -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_IMPORT_TESTFILES_H
#define SPARKC_TEST_UNIT_IMPORT_TESTFILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace sparkc::test {

/// A fresh folder, gone with all that is in it when the object dies.
class TempDir {
public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;

  const std::string &path() const { return root; }
  std::string file(llvm::StringRef name) const;
  /// Writes a file and returns its path.
  std::string write(llvm::StringRef name, llvm::StringRef bytes) const;

private:
  std::string root;
};

/// The message of a result that must be an error; "" (and a test failure)
/// where it is none. The message must be one line that starts with the file.
template <typename T>
std::string errorOf(llvm::Expected<T> result, llvm::StringRef file);
std::string checkMessage(std::string message, llvm::StringRef file);
std::string noError(llvm::StringRef file);

template <typename T>
std::string errorOf(llvm::Expected<T> result, llvm::StringRef file) {
  if (result)
    return noError(file);
  return checkMessage(llvm::toString(result.takeError()), file);
}

/// A tensor of a file to be written; its bytes count up from 0.
struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
};

/// The bytes of a safetensors file: length, header, data.
std::string safetensorsOf(llvm::StringRef header, llvm::StringRef data);
std::string safetensorsOf(llvm::ArrayRef<Tensor> tensors);

/// config.json of a model of 2 layers (sliding, full): hidden 8, intermediate
/// 12, 2 heads, 1 KV head, head_dim 8, vocab 10, tied.
llvm::json::Object smallConfig();
/// The tensors that smallConfig needs, BF16.
std::vector<Tensor> smallTensors();

std::string textOf(const llvm::json::Value &value);

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_IMPORT_TESTFILES_H
