//===- DType.h - Element types of stored weights ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types a checkpoint file can name. A reader may list any of them;
// Checkpoint.h says which ones a weight may have.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_DTYPE_H
#define SPARKC_DIALECT_IMPORT_DTYPE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace sparkc {

enum class DType {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  Bool
};

/// Bytes of one element.
uint64_t dtypeBytes(DType dtype);

/// The name as safetensors spells it, e.g. "BF16".
llvm::StringRef dtypeName(DType dtype);

/// Inverse of dtypeName; nothing for a name that is not known.
std::optional<DType> dtypeFromName(llvm::StringRef name);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_DTYPE_H
