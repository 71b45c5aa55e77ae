//===- FuzzIndex.cpp - Fuzzes the shard index reader ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FuzzImport.h"
#include "dialect/import/TensorSet.h"

using namespace sparkc;
using namespace sparkc::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto index = parseShardIndex(text, "index.json");
  if (!index) {
    checkError(index.takeError(), "index.json");
    return 0;
  }
  require(!index->empty(), "an index names a tensor");
  for (const auto &[tensor, shard] : *index)
    require(!shard.empty() && shard != ".." &&
                shard.find('/') == std::string::npos,
            "a shard stays in its folder");
  return 0;
}
