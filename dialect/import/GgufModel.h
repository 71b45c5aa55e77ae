//===- GgufModel.h - What the keys of a GGUF file say -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GGUF keeps in its keys what a Hugging Face directory keeps in JSON files.
// These functions write those files' text, so that everything behind has one
// form to read.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_GGUFMODEL_H
#define SPARKC_DIALECT_IMPORT_GGUFMODEL_H

#include "dialect/import/Gguf.h"

#include "llvm/Support/JSON.h"

namespace sparkc {

/// The config.json of the model, fit for parseModelConfig. A key of the
/// architecture that is not known is an error unless its value says "off".
/// Errors read "<path>: <reason>".
llvm::Expected<llvm::json::Object> ggufConfig(const GgufFile &file);

/// Has it a tokenizer at all?
bool ggufHasTokenizer(const GgufFile &file);

/// The text of a file that travels with a model, by its kind (spark.asset):
/// "tokenizer" (a tokenizer.json), "tokenizer_config", "generation_config",
/// "chat_template". Empty where the file says nothing of the kind.
llvm::Expected<std::string> ggufText(const GgufFile &file,
                                     llvm::StringRef kind);

/// The name that a logical weight ("layers.3.q_k_v_proj") has in GGUF.
std::string ggufTensorName(llvm::StringRef logical);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_GGUFMODEL_H
