//===- CalibrationText.cpp - The tokens to calibrate on -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/CalibrationText.h"
#include "codegen/weights/PackPlan.h"
#include "dialect/import/ImportError.h"
#include "runtime/text/ModelText.h"
#include "tools/common/TokenFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace sparkc;

bool sparkc::holdsTokens(StringRef bytes) {
  return bytes.find_first_not_of("0123456789-+ \t\r\n\v\f") == StringRef::npos;
}

/// Appends the tokens of a text; `bos` is the one to start windows with, or -1.
static llvm::Error tokenize(ModuleOp module, const std::string &path,
                            StringRef text, int64_t vocab,
                            std::vector<int32_t> &tokens, int32_t &bos) {
  llvm::StringMap<std::string> texts;
  for (auto asset : module.getOps<spark::AssetOp>()) {
    auto bytes = assetText(asset);
    if (!bytes)
      return bytes.takeError();
    texts[asset.getKind()] = std::move(*bytes);
  }
  if (texts["tokenizer"].empty())
    return importError(path, "is a text, but the model has no tokenizer; give "
                             "token ids");
  TextFiles files;
  files.tokenizer = texts["tokenizer"];
  files.tokenizerConfig = texts["tokenizer_config"];
  files.generationConfig = texts["generation_config"];
  files.chatTemplate = texts["chat_template"];
  std::string why;
  auto model = ModelText::load(files, vocab, why);
  if (!model)
    return llvm::createStringError(why);
  EncodeOptions encode;
  encode.addSpecial = encode.parseSpecial = false;
  if (!model->tokenizer->encode(std::string_view(text.data(), text.size()),
                                encode, tokens, why))
    return importError(path, why);
  bos = model->tokenizer->addsBos() ? model->tokenizer->bos() : -1;
  return llvm::Error::success();
}

llvm::Expected<TokenWindows> sparkc::readWindows(ModuleOp module,
                                                 const std::string &path,
                                                 int64_t vocab, int64_t length,
                                                 int64_t count) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return importError(path, file.getError().message());
  StringRef text = (*file)->getBuffer();
  std::vector<int32_t> tokens;
  int32_t bos = -1;
  if (holdsTokens(text)) {
    std::string why;
    if (!readTokens(path, tokens, why))
      return llvm::createStringError(why);
  } else if (llvm::Error error =
                 tokenize(module, path, text, vocab, tokens, bos)) {
    return error;
  }
  const int64_t there = int64_t(tokens.size()) / length;
  if (there == 0)
    return importError(path, "holds " + Twine(tokens.size()) +
                                 " tokens, less than one window of " +
                                 Twine(length));
  for (auto [i, token] : llvm::enumerate(tokens))
    if (token < 0 || token >= vocab)
      return importError(path, "token " + Twine(token) + " (number " +
                                   Twine(i) +
                                   ") is outside the vocabulary of " +
                                   Twine(vocab));
  TokenWindows windows;
  windows.length = length;
  count = std::min(count, there);
  for (int64_t w = 0; w < count; ++w) {
    auto from = tokens.begin() + w * there / count * length;
    windows.tokens.insert(windows.tokens.end(), from, from + length);
    if (bos >= 0)
      windows.tokens[w * length] = bos;
  }
  return windows;
}
