//===- ModelText.cpp - The text side of one model -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/ModelText.h"

using namespace sparkc;

std::shared_ptr<const ModelText>
ModelText::load(const TextFiles &files, uint32_t vocab, std::string &error) {
  std::string why;
  auto in = [&](const char *file) {
    error = std::string(file) + ": " + why;
    return nullptr;
  };
  TokenizerSpec spec;
  TokenizerConfig config;
  GenerationConfig generation;
  if (!readTokenizerJson(files.tokenizer, spec, why))
    return in("tokenizer.json");
  if (!readTokenizerConfig(files.tokenizerConfig, config, why))
    return in("tokenizer_config.json");
  if (!readGenerationConfig(files.generationConfig, generation, why))
    return in("generation_config.json");
  auto text = std::make_shared<ModelText>();
  text->tokenizer = Tokenizer::build(std::move(spec), config, generation, why);
  if (!text->tokenizer)
    return in("tokenizer.json");
  if (text->tokenizer->size() > vocab) {
    why = "has token " + std::to_string(text->tokenizer->size() - 1) +
          ", the model's vocabulary is " + std::to_string(vocab);
    return in("tokenizer.json");
  }
  if (!files.chatTemplate.empty())
    text->chatTemplate = files.chatTemplate;
  else if (config.chatTemplate)
    text->chatTemplate = *config.chatTemplate;
  if (generation.temperature)
    text->temperature = *generation.temperature;
  if (generation.doSample == false)
    text->temperature = 0;
  if (generation.topP)
    text->topP = *generation.topP;
  if (generation.topK)
    text->topK = *generation.topK;
  return text;
}
