//===- Run.h - The modes of sparkc-run --------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_RUN_H
#define SPARKC_TOOLS_RUN_H

#include "runtime/include/sparkc.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sparkc::run {

/// What the command line says, for all modes.
struct Options {
  std::string model;
  std::string weights; ///< empty: beside the model
  uint64_t context = 0;
  uint32_t threads = 0;
  bool verify = false;

  // --tokens FILE --logits OUT
  std::string tokens;
  std::string logits;
  size_t prefillChunk = 0; ///< tokens a call; 0: as many as fit 64 MiB
  bool decode = false;     ///< token by token instead of prefill
};

struct ModelDeleter {
  void operator()(sparkc_model *m) const { sparkc_close(m); }
};
struct SessionDeleter {
  void operator()(sparkc_session *s) const { sparkc_session_destroy(s); }
};
using ModelPtr = std::unique_ptr<sparkc_model, ModelDeleter>;
using SessionPtr = std::unique_ptr<sparkc_session, SessionDeleter>;

/// Prints `sparkc-run: error: <message>` and returns 1.
int error(const std::string &message);

/// Opens the model and makes a session; false after printing the reason.
/// `context` 0: what the options or the model say.
bool openModel(const Options &options, ModelPtr &model,
               sparkc_model_info &info);
bool openSession(const Options &options, const ModelPtr &model,
                 uint64_t context, SessionPtr &session);

/// Reads token ids, writes a row of logits for each. Returns the exit code.
int runLogits(const Options &options);

/// Prints version, machine and, if a model is named, what of it would run.
int runVersion(const Options &options);

} // namespace sparkc::run

#endif // SPARKC_TOOLS_RUN_H
