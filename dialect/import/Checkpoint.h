//===- Checkpoint.h - A model's config and its weights' places --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_CHECKPOINT_H
#define SPARKC_DIALECT_IMPORT_CHECKPOINT_H

#include "dialect/import/DType.h"
#include "dialect/import/MappedFile.h"
#include "dialect/import/ModelConfig.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <string>
#include <vector>

namespace sparkc {

/// One weight as the graph names it and where its bytes stand. Matrices are
/// row-major [rows = outputs, cols = inputs]; a vector has cols = 1.
struct LogicalWeight {
  std::string name; ///< e.g. "layers.3.q_k_v_proj"
  std::string file; ///< path of the file that holds the bytes
  DType dtype;      ///< F32, BF16, F16, a quantized type of GGUF, or codes
  int64_t rows;
  int64_t cols;
  uint64_t offset; ///< of the first byte in the file; any alignment
  uint64_t bytes;  ///< rows * cols / dtypeBlock(dtype) * dtypeBytes(dtype)

  /// Of codes (AWQ4, GPTQ4, GPTQ4_V2: StoredCodes.h), which the above are:
  /// columns that share a scale, and what else a matrix is made of.
  struct Part {
    std::string file = {};
    DType dtype = DType::F16;
    uint64_t offset = 0, bytes = 0;
  };
  int64_t group = 0;
  Part scales = {}, zeros = {};
};

/// A checkpoint that has been checked: every weight the config asks for is
/// there once, with the right shape and a type that can be read. The names:
///
///   embedding                                    [vocab, hidden]
///   layers.N.input_layernorm                     [hidden]
///   layers.N.q_k_v_proj                          [qkvRows, hidden]
///   layers.N.g_proj                              [heads, hidden]
///   layers.N.out_proj                            [hidden, heads * headDim]
///   layers.N.post_attention_layernorm            [hidden]
///   layers.N.gate_proj, layers.N.up_proj         [intermediate, hidden]
///   layers.N.down_proj                           [hidden, intermediate]
///   norm                                         [hidden]
///   lm_head, only where the head is untied       [vocab, hidden]
///
/// Where config.json has a quantization_config, matrices but the embedding may be
/// codes (StoredCodes.h).
///
/// What else a file holds: a bias, and anything else inside the layers, is an
/// error (the model would compute something else). A tied checkpoint's own
/// lm_head.weight and old rotary buffers (rotary_emb.inv_freq) are ignored;
/// all other extras are ignored too but listed in warnings().
class Checkpoint {
public:
  /// Paths of the files with text settings that travel with a model; empty
  /// where there is none. Nothing here reads them. A GGUF file holds all of
  /// them (GgufModel.h).
  struct TextFiles {
    std::string tokenizer;        ///< tokenizer.json
    std::string tokenizerConfig;  ///< tokenizer_config.json
    std::string generationConfig; ///< generation_config.json
    std::string chatTemplate;     ///< chat_template.jinja
  };

  /// Opens a Hugging Face directory: config.json and model.safetensors (or an
  /// index with shards, see TensorSet); or a GGUF file, whole or split. Errors
  /// are one line that names the file at fault, and the tensor, expected and
  /// actual where it is one.
  static llvm::Expected<Checkpoint> open(llvm::StringRef path);

  const ModelConfig &config() const { return model; }
  /// The text of its config.json; of a GGUF file, what that would be.
  const std::string &configText() const { return configJson; }
  bool isGguf() const { return gguf; }
  /// In model order, as listed above.
  llvm::ArrayRef<LogicalWeight> weights() const { return list; }
  /// Null for a weight that this model does not have.
  const LogicalWeight *find(llvm::StringRef name) const;

  /// The mapping of a weight's file, shared by all who ask; null for a path
  /// that is not one of this checkpoint's weight files.
  std::shared_ptr<MappedFile> map(llvm::StringRef file) const;
  /// The bytes of one of weights(). Valid while this object lives.
  llvm::ArrayRef<uint8_t> data(const LogicalWeight &weight) const;

  const TextFiles &textFiles() const { return text; }
  /// One line each, for a person; none of them changes the result.
  llvm::ArrayRef<std::string> warnings() const { return notes; }

private:
  Checkpoint() = default;
  llvm::Error openDirectory(llvm::StringRef directory);
  llvm::Error openGguf(llvm::StringRef path);
  void add(LogicalWeight weight);

  ModelConfig model;
  std::string configJson;
  bool gguf = false;
  std::vector<LogicalWeight> list;
  llvm::StringMap<size_t> byName;
  llvm::StringMap<std::shared_ptr<MappedFile>> maps;
  TextFiles text;
  std::vector<std::string> notes;
};

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_CHECKPOINT_H
