//===- DType.cpp - Element types of stored weights ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/DType.h"

#include "llvm/Support/ErrorHandling.h"

using namespace sparkc;

namespace {
struct Entry {
  DType dtype;
  llvm::StringLiteral name;
  uint64_t bytes;
  uint64_t block = 1;
};
constexpr Entry entries[] = {
    {DType::F64, "F64", 8},        {DType::F32, "F32", 4},
    {DType::F16, "F16", 2},        {DType::BF16, "BF16", 2},
    {DType::F8E4M3, "F8_E4M3", 1}, {DType::F8E5M2, "F8_E5M2", 1},
    {DType::I64, "I64", 8},        {DType::I32, "I32", 4},
    {DType::I16, "I16", 2},        {DType::I8, "I8", 1},
    {DType::U64, "U64", 8},        {DType::U32, "U32", 4},
    {DType::U16, "U16", 2},        {DType::U8, "U8", 1},
    {DType::Bool, "BOOL", 1},      {DType::Q4_0, "Q4_0", 18, 32},
    {DType::Q4_1, "Q4_1", 20, 32}, {DType::Q5_0, "Q5_0", 22, 32},
    {DType::Q5_1, "Q5_1", 24, 32}, {DType::Q8_0, "Q8_0", 34, 32},
    {DType::Q4_K, "Q4_K", 144, 256}, {DType::Q5_K, "Q5_K", 176, 256},
    {DType::Q6_K, "Q6_K", 210, 256}, {DType::AWQ4, "AWQ4", 4, 8},
    {DType::GPTQ4, "GPTQ4", 4, 8},   {DType::GPTQ4_V2, "GPTQ4_V2", 4, 8},
};

const Entry &entryOf(DType dtype) {
  for (const Entry &entry : entries)
    if (entry.dtype == dtype)
      return entry;
  llvm_unreachable("a DType without an entry");
}
} // namespace

uint64_t sparkc::dtypeBlock(DType dtype) { return entryOf(dtype).block; }

uint64_t sparkc::dtypeBytes(DType dtype) { return entryOf(dtype).bytes; }

llvm::StringRef sparkc::dtypeName(DType dtype) { return entryOf(dtype).name; }

std::optional<DType> sparkc::dtypeFromName(llvm::StringRef name) {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return entry.dtype;
  return std::nullopt;
}
