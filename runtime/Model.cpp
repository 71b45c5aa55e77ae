//===- Model.cpp - An object over its weights -----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Model.h"
#include "runtime/Cpu.h"
#include "runtime/Hash.h"
#include "runtime/HostGemm.h"
#include "runtime/Synthetic.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace sparkc;

/// Both files were made by one compile, and the code reads what the file has.
static Failure checkPair(const ModelObject &object,
                         const WeightsFile &weights) {
  const sparkc_descriptor &d = object.descriptor();
  const sparkc_weights_header &h = weights.header();
  const char *so = object.path().c_str(), *file = weights.path().c_str();
  for (uint32_t i = 0; i < h.n_layouts; ++i)
    if (std::find(d.layouts, d.layouts + d.n_layouts, h.layouts[i]) ==
        d.layouts + d.n_layouts)
      return fail(SPARKC_MISMATCH,
                  "%s: packed in layout %u, which the code of %s does not read",
                  file, h.layouts[i], so);
  if (memcmp(d.digest, h.digest, sizeof h.digest))
    return fail(SPARKC_MISMATCH,
                "%s: the weights of another model or compile: digest %s, "
                "but %s was compiled with %s",
                file, digestHex(h.digest).c_str(), so,
                digestHex(d.digest).c_str());
  if (d.payload_bytes != weights.payloadBytes())
    return fail(SPARKC_MISMATCH,
                "%s: %llu bytes of weights, but %s was compiled with %llu",
                file, (unsigned long long)weights.payloadBytes(), so,
                (unsigned long long)d.payload_bytes);
  return success();
}

Failure Model::choose() {
  if (Failure failure = object.choose(getenv("SPARKC_ISA")))
    return failure;
  if (entry().features & SPARKC_NEEDS_GEMM)
    return loadGemm(object.path().c_str(), hostGemm);
  return success();
}

Failure Model::open(const std::string &so, const std::string &weightsPath,
                    bool verify) {
  if (Failure failure = object.open(so))
    return failure;
  std::string path = weightsPath;
  if (path.empty()) {
    size_t slash = so.rfind('/'), dot = so.rfind('.');
    bool extension = dot != std::string::npos &&
                     (slash == std::string::npos || dot > slash + 1);
    path = so.substr(0, extension ? dot : so.size()) + ".weights";
  }
  if (Failure failure = weights.open(path))
    return failure;
  if (Failure failure = checkPair(object, weights))
    return failure;
  if (Failure failure = choose())
    return failure;
  memcpy(payloadHash, weights.header().digest, sizeof payloadHash);
  hex = digestHex(payloadHash);
  std::string_view measured;
  if (Failure failure = weights.section(SPARKC_SECTION_CERTIFICATE, measured))
    return failure;
  certificate = measured;
  if (verify)
    return weights.verify();
  return success();
}

Failure Model::openSynthetic(const std::string &so) {
  if (Failure failure = object.open(so))
    return failure;
  if (Failure failure = choose())
    return failure;
  const sparkc_descriptor &d = object.descriptor();
  if (Failure failure =
          synthetic.allocate(d.payload_bytes, "synthetic weights"))
    return failure;
  fillSynthetic(synthetic.data(), d.payload_bytes, d.layouts, d.n_layouts);
  hash128(synthetic.data(), d.payload_bytes, payloadHash);
  hex = digestHex(payloadHash);
  return success();
}

void Model::describe(sparkc_model_info &info) const {
  const sparkc_descriptor &d = descriptor();
  info.compiler = d.compiler;
  info.target = d.target;
  info.scheme = d.scheme;
  info.isa = nameOfIsa(entry().isa);
  info.isa_reason = object.isaReason().c_str();
  info.object_path = object.path().c_str();
  info.weights_path = weights.path().c_str();
  snprintf(info.digest, sizeof info.digest, "%s", hex.c_str());
  info.vocab = d.vocab;
  info.hidden = d.hidden;
  info.intermediate = d.intermediate;
  info.layers = d.layers;
  info.full_layers = d.full_layers;
  info.heads = d.heads;
  info.kv_heads = d.kv_heads;
  info.head_dim = d.head_dim;
  info.window = d.window;
  info.ring_positions = d.ring_positions;
  info.kv_type = d.kv_type;
  info.has_prefill = entry().prefill != nullptr;
  info.has_step_profile = entry().step_profile != nullptr;
  info.has_prefill_profile = entry().prefill_profile != nullptr;
  info.prefill_block = entry().prefill ? d.prefill_block : 1;
  info.barriers_per_step = d.barriers_per_step;
  info.fold_layers = d.fold_layers;
  info.fold_threshold = d.fold_threshold;
  info.max_context = d.max_context;
  info.default_context = d.default_context;
  info.payload_bytes = d.payload_bytes;
  info.bytes_per_step = d.bytes_per_step;
  info.linear_weights = d.linear_weights;
  info.bits_per_weight =
      d.linear_weights ? 8.0 * d.bytes_per_step / d.linear_weights : 0;
  uint64_t multiple = d.capacity_multiple;
  uint64_t capacity = (d.default_context + multiple - 1) / multiple * multiple;
  if (!affineBytes(d.kv_bytes, capacity, info.default_kv_bytes))
    info.default_kv_bytes = UINT64_MAX;
  if (!affineBytes(d.arena_bytes, capacity, info.default_arena_bytes))
    info.default_arena_bytes = UINT64_MAX;
  info.certificate = certificate.c_str();
  info.has_tokenizer = weights.hasSection(SPARKC_SECTION_TOKENIZER);
}
