//===- MappedFile.h - A file mapped for reading -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_MAPPEDFILE_H
#define SPARKC_DIALECT_IMPORT_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>

namespace sparkc {

/// A plain file, mapped read-only for as long as the object lives. Nothing is
/// copied: pages come in as they are read and are given back with drop().
///
/// The file must not shrink while it is mapped (reading past its new end is a
/// bus error, as with every mapping).
class MappedFile {
public:
  /// Maps the file. Fails with "<path>: <reason>" for whatever is not a plain,
  /// readable, non-empty file.
  static llvm::Expected<std::shared_ptr<MappedFile>> open(llvm::StringRef path);

  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const uint8_t *data() const { return base; }
  uint64_t size() const { return length; }
  /// The path as it was given to open().
  const std::string &path() const { return name; }
  llvm::ArrayRef<uint8_t> bytes() const {
    return {base, static_cast<size_t>(length)};
  }

  /// Takes [offset, offset + bytes) out of the resident set, in whole pages: of
  /// the page in which the range ends only if the file ends there too, so that
  /// a forward reader faults no page twice. The bytes stay readable. A hint:
  /// it cannot fail, and a range past the end is cut.
  void drop(uint64_t offset, uint64_t bytes) const;

private:
  MappedFile(llvm::StringRef path, const uint8_t *base, uint64_t length)
      : name(path.str()), base(base), length(length) {}

  std::string name;
  const uint8_t *base;
  uint64_t length;
};

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_MAPPEDFILE_H
