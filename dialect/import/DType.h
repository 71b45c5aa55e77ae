//===- DType.h - Element types of stored weights ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types a checkpoint file can name. A reader may list any of them;
// Checkpoint.h says which ones a weight may have. The last ones are those of
// GGUF, whose elements come in blocks of a row with common scales
// (codegen/weights/BlockFormat.h).
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
  Bool,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q4_K,
  Q5_K,
  Q6_K,
  AWQ4,
  GPTQ4,
  GPTQ4_V2
};

/// Elements of a block: 1 but for quantized types, those of GGUF and the codes
/// of AWQ and GPTQ checkpoints; and its bytes.
uint64_t dtypeBlock(DType dtype);
uint64_t dtypeBytes(DType dtype);

/// The name as safetensors and GGUF spell it, e.g. "BF16", or ours, "AWQ4".
llvm::StringRef dtypeName(DType dtype);

/// Inverse of dtypeName; nothing for a name that is not known.
std::optional<DType> dtypeFromName(llvm::StringRef name);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_DTYPE_H
