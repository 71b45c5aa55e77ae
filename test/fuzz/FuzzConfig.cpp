//===- FuzzConfig.cpp - Fuzzes the config.json reader ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FuzzImport.h"
#include "dialect/import/ModelConfig.h"

using namespace sparkc;
using namespace sparkc::fuzz;

static void checkRope(const Rope &rope, const ModelConfig &config) {
  require(rope.width >= 2 && rope.width % 2 == 0, "the width is even");
  require(rope.width <= config.headDim, "the width is within the head");
  require(rope.theta >= 1, "theta is at least 1");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto config = parseModelConfig(text, "config.json");
  if (!config) {
    checkError(config.takeError(), "config.json");
    return 0;
  }
  require(config->heads % config->kvHeads == 0, "heads are a multiple");
  require(config->headDim % 2 == 0, "head_dim is even");
  require(static_cast<int64_t>(config->layerKinds.size()) == config->layers,
          "every layer has a kind");
  for (LayerKind kind : config->layerKinds)
    checkRope(config->rope(kind), *config);
  if (config->count(LayerKind::Sliding))
    require(config->slidingWindow > 0, "sliding layers have a window");
  require(config->rmsEps > 0 && config->rmsEps < 1, "eps is in (0, 1)");
  // The largest sizes are far from overflow.
  for (int64_t n : {config->vocab, config->qkvRows(), config->intermediate})
    require(n > 0 && n <= (int64_t(1) << 40) / config->hidden * 4,
            "sizes are bounded");
  return 0;
}
