//===- StoredCodes.h - AWQ and GPTQ checkpoints -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checkpoints of Hugging Face whose linears are 4-bit codes. A matrix of N rows
// (outputs) and K columns in groups of g is three tensors, NAME.qweight, qzeros
// and scales, which hold its transpose; a word is eight codes, the first in the
// low nibble; w = scale (code - zero):
//
//             qweight I32        qzeros I32         scales F16
//   AWQ       [K, N/8]           [K/g, N/8]         [K/g, N]
//   GPTQ      [K/8, N]           [K/g, N/8]         [K/g, N]
//
// Words along N hold rows 8i .. 8i+7, in AWQ in the order 0, 2, 4, 6, 1, 3, 5, 7;
// those along K columns 8i .. 8i+7. GPTQ stores zero points less one, modulo 16
// (checkpoint_format "gptq"), or as they are ("gptq_v2"), and may add NAME.g_idx,
// the group of each column.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_STOREDCODES_H
#define SPARKC_DIALECT_IMPORT_STOREDCODES_H

#include "dialect/import/Checkpoint.h"
#include "dialect/import/TensorSet.h"

#include "llvm/Support/JSON.h"

namespace sparkc {

/// What config.json's quantization_config says. Methods, bits, groups and
/// formats that are not read set `fault`, by name.
StoredCodes readQuantizationConfig(const llvm::json::Value &value,
                                   std::string &fault);

/// The suffixes of a matrix's tensors, qweight first.
inline constexpr llvm::StringLiteral codeTensors[] = {"qweight", "qzeros",
                                                      "scales", "g_idx"};

/// The matrix `name` of the given shape, stored as codes under `stem` (what
/// stands before ".qweight"). Shapes and types are checked, and that groups are
/// runs of columns.
llvm::Expected<LogicalWeight> resolveCodes(llvm::StringRef name,
                                           const std::string &stem,
                                           llvm::ArrayRef<int64_t> shape,
                                           const StoredCodes &codes,
                                           const TensorSet &tensors);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_STOREDCODES_H
