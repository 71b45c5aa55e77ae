//===- ModelConfig.h - config.json of a Spark-X2.5 checkpoint ---*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_MODELCONFIG_H
#define SPARKC_DIALECT_IMPORT_MODELCONFIG_H

#include "dialect/import/DType.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sparkc {

/// What a layer's attention sees.
enum class LayerKind {
  Sliding, ///< the last slidingWindow keys, the token's own included
  Full     ///< every key
};

/// Rotary embedding of one layer kind: pairs (i, i + width/2), i < width/2,
/// turned by position * theta^(-2i/width); dims from width on pass through.
struct Rope {
  double theta = 0;
  double partialFactor = 0; ///< as stored, in (0, 1]
  int64_t width = 0;        ///< int(headDim * partialFactor): even, >= 2
};

/// How the matrices that are stored as codes are stored.
struct StoredCodes {
  DType dtype = DType::AWQ4; ///< AWQ4, GPTQ4 or GPTQ4_V2
  int64_t group = 0;         ///< columns a scale: 32, 64 or 128
};

/// A Spark-X2.5 model without its weights. Whatever parseModelConfig returns
/// describes a model that the compiler's graph computes exactly.
struct ModelConfig {
  std::string modelType; ///< "spark2_5"
  std::string dtype;     ///< as stated ("bfloat16"), for people; may be empty
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t layers = 0;
  int64_t heads = 0; ///< a multiple of kvHeads
  int64_t kvHeads = 0;
  int64_t headDim = 0;       ///< even; heads * headDim need not be hidden
  int64_t maxContext = 0;    ///< positions the model was trained for
  int64_t slidingWindow = 0; ///< 0 only if no layer slides and none is stated
  double rmsEps = 0;
  bool tied = false;                 ///< the head is the embedding
  std::vector<LayerKind> layerKinds; ///< one for each layer
  Rope ropeFull;    ///< all zero if there is no full layer and none is stated
  Rope ropeSliding; ///< likewise for sliding layers
  std::optional<int64_t> bos, pad; ///< token ids
  std::vector<int64_t> eos;        ///< any of them ends a text
  std::optional<StoredCodes> codes; ///< of a quantization_config

  int64_t qRows() const { return heads * headDim; }
  int64_t kvRows() const { return kvHeads * headDim; }
  /// Rows of q_k_v_proj: all Q heads, all K heads, all V heads.
  int64_t qkvRows() const { return qRows() + 2 * kvRows(); }
  const Rope &rope(LayerKind kind) const {
    return kind == LayerKind::Full ? ropeFull : ropeSliding;
  }
  int64_t count(LayerKind kind) const;
};

/// Reads the text of a config.json. Nothing that the maths depends on has a
/// default: a missing key is an error, and so is every key this compiler does
/// not know, unless its value says that it is off (null, false, 0, "", [], {}).
/// Errors are one line, "<path>: <reason>".
llvm::Expected<ModelConfig> parseModelConfig(llvm::StringRef json,
                                             llvm::StringRef path);

/// Maps and parses the file.
llvm::Expected<ModelConfig> readModelConfig(llvm::StringRef path);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_MODELCONFIG_H
