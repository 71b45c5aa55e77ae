//===- FuzzGguf.cpp - Fuzzes the GGUF reader ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FuzzImport.h"
#include "dialect/import/GgufModel.h"

#include <set>
#include <unistd.h>

using namespace sparkc;
using namespace sparkc::fuzz;

/// Everything that can be asked of a value.
static void readAll(const GgufValue &value) {
  value.integer();
  value.number();
  value.boolean();
  value.string();
  value.integers();
  value.floats();
  value.booleans();
  value.strings();
  value.isOff();
  std::string bytes;
  value.write(bytes);
  require(!bytes.empty() && !value.typeText().empty(), "a value has a type");
}

/// A file that was read can be asked for its config and its texts.
static void readModel(const uint8_t *data, size_t size) {
  static const std::string path =
      "/tmp/fuzz-gguf-" + std::to_string(getpid()) + ".gguf";
  FILE *file = std::fopen(path.c_str(), "wb");
  require(file && std::fwrite(data, 1, size, file) == size, "a file is written");
  std::fclose(file);
  auto opened = GgufFile::open(path);
  std::remove(path.c_str());
  if (!opened)
    return checkError(opened.takeError(), path);
  if (auto config = ggufConfig(*opened); !config)
    checkError(config.takeError(), path);
  for (const char *kind :
       {"tokenizer", "tokenizer_config", "generation_config", "chat_template"})
    if (auto text = ggufText(*opened, kind); !text)
      checkError(text.takeError(), path);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto header = parseGgufHeader({data, size}, "t");
  if (!header) {
    checkError(header.takeError(), "t");
    return 0;
  }
  std::set<std::string> names;
  for (const auto &[key, value] : header->keys) {
    require(names.insert(key.str()).second, "keys are unique");
    require(header->find(key) == &value, "a key is found");
    readAll(value);
  }
  names.clear();
  uint64_t end = 0;
  for (const TensorInfo &tensor : header->tensors) {
    require(tensor.offset >= end, "tensors do not overlap");
    require(tensor.offset <= size && tensor.bytes <= size - tensor.offset,
            "a tensor is inside its file");
    require(names.insert(tensor.name).second, "names are unique");
    require(!tensor.shape.empty() && tensor.shape.size() <= 4,
            "1 to 4 dimensions");
    unsigned __int128 elements = 1;
    for (int64_t dim : tensor.shape) {
      require(dim > 0, "dimensions are positive");
      elements *= static_cast<uint64_t>(dim);
    }
    require(elements / dtypeBlock(tensor.dtype) * dtypeBytes(tensor.dtype) ==
                tensor.bytes,
            "the shape gives the size");
    end = tensor.offset + tensor.bytes;
  }
  if (!header->find("split.count"))
    readModel(data, size);
  return 0;
}
