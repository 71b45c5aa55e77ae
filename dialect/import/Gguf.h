//===- Gguf.h - GGUF files, checked before use ------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format, little-endian: "GGUF", u32 version (3; 2 is the same), u64 number
// of tensors, u64 number of keys; then the keys, each a string (u64 length,
// bytes), a u32 type and a value; then the tensors, each a name, a u32 number of
// dimensions, those as u64 (innermost first), a u32 type and a u64 offset from
// the start of the data, which begins at the next multiple of the alignment
// ("general.alignment", 32 by default).
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_GGUF_H
#define SPARKC_DIALECT_IMPORT_GGUF_H

#include "dialect/import/Safetensors.h"

#include <optional>

namespace sparkc {

/// The types of values, by their numbers in files.
enum class GgufType : uint32_t {
  U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64
};

/// "u32" and so on, for messages.
llvm::StringRef ggufTypeName(GgufType type);

/// A value of a key. Its bytes are the file's and have been checked.
class GgufValue {
public:
  GgufValue() = default;
  GgufValue(GgufType type, GgufType element, uint64_t count,
            llvm::ArrayRef<uint8_t> bytes)
      : type(type), element(element), count(count), bytes(bytes) {}

  bool isArray() const { return type == GgufType::Array; }
  /// "u32", "array of string", for messages.
  std::string typeText() const;

  /// Scalars; nothing where the type is another. Integers of any width and
  /// sign that fit into int64_t.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const; ///< F32, F64 or an integer
  std::optional<bool> boolean() const;
  std::optional<llvm::StringRef> string() const;

  /// Arrays: their elements, all of them; nothing where the type is another.
  std::optional<std::vector<int64_t>> integers() const;
  std::optional<std::vector<float>> floats() const;
  std::optional<std::vector<bool>> booleans() const;
  std::optional<std::vector<llvm::StringRef>> strings() const;

  /// Whether it says that a feature is not there: false, 0, "", [].
  bool isOff() const;

  /// Appends type and value as a file has them.
  void write(std::string &out) const;

private:
  std::optional<int64_t> integerAt(uint64_t index) const;

  GgufType type = GgufType::U8, element = GgufType::U8; ///< of an array
  uint64_t count = 1;
  llvm::ArrayRef<uint8_t> bytes;
};

/// The number of a type that tensors may have.
uint32_t ggufTypeNumber(DType dtype);

struct GgufHeader {
  /// In the order of the file.
  std::vector<std::pair<llvm::StringRef, GgufValue>> keys;
  /// In the order of their bytes. Shapes are outermost first; names are the
  /// file's, offsets count from its start.
  std::vector<TensorInfo> tensors;

  /// Null where there is none.
  const GgufValue *find(llvm::StringRef key) const;
};

/// Does the file start as GGUF does?
bool isGguf(llvm::ArrayRef<uint8_t> file);

/// Reads and checks the header of a whole file held in memory: every length,
/// type and offset; that keys and tensors are there once, and that tensors lie
/// inside the file at multiples of the alignment and do not overlap. What it
/// returns refers to `file`. Errors read "<path>: <reason>".
llvm::Expected<GgufHeader> parseGgufHeader(llvm::ArrayRef<uint8_t> file,
                                           llvm::StringRef path);

/// A GGUF model: one file, or a split one, named by its first part
/// (NAME-00001-of-00003.gguf; keys stand there, tensors in all parts).
class GgufFile {
public:
  static llvm::Expected<GgufFile> open(llvm::StringRef path);

  const std::string &path() const { return parts.front().file->path(); }
  const GgufValue *find(llvm::StringRef key) const {
    return parts.front().header.find(key);
  }
  llvm::ArrayRef<std::pair<llvm::StringRef, GgufValue>> keys() const {
    return parts.front().header.keys;
  }
  struct Tensor {
    const TensorInfo *info;
    std::shared_ptr<MappedFile> file;
  };
  /// Null where no part has such a tensor.
  const Tensor *findTensor(llvm::StringRef name) const;
  /// All of them, part by part in the order of their bytes.
  llvm::ArrayRef<Tensor> tensors() const { return list; }

private:
  struct Part {
    std::shared_ptr<MappedFile> file;
    GgufHeader header;
  };
  GgufFile() = default;
  static llvm::Expected<Part> openPart(llvm::StringRef path);
  llvm::Error openSplit();

  std::vector<Part> parts;
  std::vector<Tensor> list;
  llvm::StringMap<size_t> byName;
};

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_GGUF_H
