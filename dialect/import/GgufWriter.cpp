//===- GgufWriter.cpp - Headers of GGUF files -----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/GgufWriter.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace sparkc;
using llvm::StringRef;

template <typename T> static void put(std::string &out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>(value >> (8 * i)));
}

static void putString(std::string &out, StringRef text) {
  put<uint64_t>(out, text.size());
  out += text;
}

static void putType(std::string &out, GgufType type) {
  put<uint32_t>(out, static_cast<uint32_t>(type));
}

void GgufWriter::addKey(StringRef key, GgufType type) {
  putString(keys, key);
  putType(keys, type);
  ++keyCount;
}

void GgufWriter::add(StringRef key, StringRef text) {
  addKey(key, GgufType::String);
  putString(keys, text);
}

void GgufWriter::add(StringRef key, uint32_t value) {
  addKey(key, GgufType::U32);
  put(keys, value);
}

void GgufWriter::add(StringRef key, float value) {
  addKey(key, GgufType::F32);
  put(keys, llvm::bit_cast<uint32_t>(value));
}

void GgufWriter::add(StringRef key, bool value) {
  addKey(key, GgufType::Bool);
  keys.push_back(value);
}

void GgufWriter::add(StringRef key, llvm::ArrayRef<std::string> texts) {
  addKey(key, GgufType::Array);
  putType(keys, GgufType::String);
  put<uint64_t>(keys, texts.size());
  for (const std::string &text : texts)
    putString(keys, text);
}

void GgufWriter::add(StringRef key, llvm::ArrayRef<int32_t> values) {
  addKey(key, GgufType::Array);
  putType(keys, GgufType::I32);
  put<uint64_t>(keys, values.size());
  for (int32_t value : values)
    put<uint32_t>(keys, value);
}

void GgufWriter::add(StringRef key, llvm::ArrayRef<bool> values) {
  addKey(key, GgufType::Array);
  putType(keys, GgufType::Bool);
  put<uint64_t>(keys, values.size());
  for (bool value : values)
    keys.push_back(value);
}

void GgufWriter::add(StringRef key, const GgufValue &value) {
  putString(keys, key);
  value.write(keys);
  ++keyCount;
}

size_t GgufWriter::addTensor(StringRef name, DType type,
                             llvm::ArrayRef<int64_t> shape) {
  uint64_t elements = 1;
  for (int64_t n : shape)
    elements *= n;
  tensors.push_back({name.str(), type, shape.vec(), 0,
                     elements / dtypeBlock(type) * dtypeBytes(type)});
  return tensors.size() - 1;
}

std::string GgufWriter::header() {
  std::string text = "GGUF";
  put<uint32_t>(text, 3);
  put<uint64_t>(text, tensors.size());
  put<uint64_t>(text, keyCount);
  text += keys;
  uint64_t at = 0;
  for (TensorInfo &tensor : tensors) {
    putString(text, tensor.name);
    put<uint32_t>(text, tensor.shape.size());
    for (int64_t n : llvm::reverse(tensor.shape))
      put<uint64_t>(text, n);
    put<uint32_t>(text, ggufTypeNumber(tensor.dtype));
    put<uint64_t>(text, at);
    tensor.offset = at;
    at += llvm::alignTo(tensor.bytes, alignment);
  }
  text.resize(llvm::alignTo(text.size(), alignment));
  for (TensorInfo &tensor : tensors)
    tensor.offset += text.size();
  end = text.size() + at;
  return text;
}
