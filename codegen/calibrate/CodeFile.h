//===- CodeFile.h - What calibration has chosen so far ----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A file of quantized matrices, appended to as calibration gets on. It is the
/// source that the compiled weights name, and what an interrupted run goes on
/// from. A header, then records:
///
///   header  magic, version, key: the digest of all that decides the codes
///   record  RecordHeader, the name, padding to 64 bytes, the blocks
///
/// A record counts once it is whole and has its hash; what follows the last
/// such record is cut off. Errors are one line that starts with the file.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_CALIBRATE_CODEFILE_H
#define SPARKC_CODEGEN_CALIBRATE_CODEFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <array>
#include <memory>
#include <string>

namespace sparkc {

class CodeFile {
public:
  using Key = std::array<uint8_t, 16>;

  struct Record {
    std::string name;    ///< logical, "layers.3.q_k_v_proj"
    std::string dtype;   ///< of its blocks, "C4_64"; empty: not calibrated
    double sqnr = 0;     ///< decibels, against the checkpoint's weights
    uint64_t offset = 0; ///< of its bytes in the file
    uint64_t bytes = 0;
  };

  /// Opens `path` and takes what it holds if its key is `key`; else empties it.
  /// A file that is no such file is an error and stays as it is.
  static llvm::Expected<std::unique_ptr<CodeFile>> open(llvm::StringRef path,
                                                        const Key &key);
  ~CodeFile();

  const std::string &path() const { return file; }
  size_t size() const { return records.size(); }
  /// Null if there is none.
  const Record *find(llvm::StringRef name) const;
  /// Adds a record; offset and bytes are filled in.
  llvm::Error append(Record record, llvm::ArrayRef<uint8_t> bytes);
  /// Deletes the file.
  void remove();

private:
  CodeFile() = default;
  llvm::Error readRecords();
  llvm::Error write(const void *data, uint64_t size);
  llvm::Error failure(const char *what) const;

  std::string file;
  int fd = -1;
  uint64_t end = 0;
  llvm::StringMap<Record> records;
};

/// XXH3-128 of some bytes, canonical.
CodeFile::Key digestOf(llvm::StringRef bytes);

} // namespace sparkc

#endif // SPARKC_CODEGEN_CALIBRATE_CODEFILE_H
