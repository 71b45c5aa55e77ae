//===- FuzzSafetensors.cpp - Fuzzes the safetensors reader ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FuzzImport.h"
#include "dialect/import/Safetensors.h"

#include <set>

using namespace sparkc;
using namespace sparkc::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto tensors = parseSafetensorsHeader({data, size}, "t");
  if (!tensors) {
    checkError(tensors.takeError(), "t");
    return 0;
  }
  uint64_t end = 0;
  std::set<std::string> names;
  for (const TensorInfo &tensor : *tensors) {
    require(end == 0 || tensor.offset == end, "tensors follow each other");
    require(tensor.offset >= 8 && tensor.offset <= size &&
                tensor.bytes <= size - tensor.offset,
            "a tensor is inside its file");
    require(names.insert(tensor.name).second, "names are unique");
    unsigned __int128 bytes = dtypeBytes(tensor.dtype);
    for (int64_t dim : tensor.shape) {
      require(dim >= 0, "dimensions are not negative");
      if (bytes <= size)
        bytes *= static_cast<uint64_t>(dim);
    }
    require(bytes == tensor.bytes || bytes > size, "the shape gives the size");
    end = tensor.offset + tensor.bytes;
  }
  require(tensors->empty() || end == size, "tensors fill the file");
  return 0;
}
