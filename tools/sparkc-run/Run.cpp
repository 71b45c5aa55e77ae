//===- Run.cpp - What the modes of sparkc-run share -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-run/Run.h"

#include <nlohmann/json.hpp>
#include <cstdio>

using namespace sparkc::run;

int sparkc::run::error(const std::string &message) {
  std::fprintf(stderr, "sparkc-run: error: %s\n", message.c_str());
  return 1;
}

bool sparkc::run::openModel(const Options &options, ModelPtr &model,
                            sparkc_model_info &info) {
  sparkc_open_options open = {};
  open.struct_size = sizeof open;
  open.flags = options.verify ? SPARKC_OPEN_VERIFY : 0;
  sparkc_error why;
  sparkc_model *opened;
  if (sparkc_open(options.model.c_str(),
                  options.weights.empty() ? nullptr : options.weights.c_str(),
                  &open, &opened, &why) != SPARKC_OK) {
    error(why.message);
    return false;
  }
  model.reset(opened);
  info = {};
  info.struct_size = sizeof info;
  sparkc_info(opened, &info);
  return true;
}

bool sparkc::run::openSession(const Options &options, const ModelPtr &model,
                              uint64_t context, SessionPtr &session) {
  sparkc_session_options make = {};
  make.struct_size = sizeof make;
  make.context = options.context ? options.context : context;
  make.threads = options.threads;
  sparkc_error why;
  sparkc_session *made;
  if (sparkc_session_create(model.get(), &make, &made, &why) != SPARKC_OK) {
    error(options.model + ": " + why.message);
    return false;
  }
  session.reset(made);
  return true;
}

int sparkc::run::runVersion(const Options &options) {
  std::printf("sparkc-run %s\n", sparkc_version());
  if (options.model.empty())
    return 0;
  ModelPtr model;
  sparkc_model_info info;
  if (!openModel(options, model, info))
    return 1;
  std::printf("model      %s, %s, compiled by %s for %s\n", info.object_path,
              info.scheme, info.compiler, info.target);
  std::printf("weights    %s, digest %s\n", info.weights_path, info.digest);
  std::printf("isa        %s: %s\n", info.isa, info.isa_reason);
  std::printf("shape      %u layers (%u full), hidden %u, %u heads of %u, "
              "%u kv heads, vocabulary %u\n",
              info.layers, info.full_layers, info.hidden, info.heads,
              info.head_dim, info.kv_heads, info.vocab);
  std::printf("context    %llu by default, at most %llu; %.1f MB of KV cache "
              "in %s\n",
              (unsigned long long)info.default_context,
              (unsigned long long)info.max_context, info.default_kv_bytes / 1e6,
              info.kv_type == SPARKC_KV_F32   ? "f32"
              : info.kv_type == SPARKC_KV_F16 ? "f16"
                                              : "q8");
  std::printf("step       %.1f MB of weights, %.2f bits a weight, "
              "%u barriers\n",
              info.bytes_per_step / 1e6, info.bits_per_weight,
              info.barriers_per_step);
  if (*info.certificate) {
    auto measured = nlohmann::json::parse(info.certificate, nullptr,
                                          /*allow_exceptions=*/false);
    std::printf("measured   %s%s\n",
                measured.is_object() ? measured.value("summary", "").c_str()
                                     : "a certificate that cannot be read",
                measured.is_object() &&
                        measured.value("weights_digest", "") != info.digest
                    ? " (of other weights)"
                    : "");
  }
  return 0;
}
