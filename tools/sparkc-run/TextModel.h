//===- TextModel.h - What writing text takes --------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_TEXTMODEL_H
#define SPARKC_TOOLS_TEXTMODEL_H

#include "tools/sparkc-run/Generate.h"

#include <chrono>
#include <csignal>
#include <vector>

namespace sparkc::run {

struct DecoderDeleter {
  void operator()(sparkc_decoder *d) const { sparkc_decoder_destroy(d); }
};
struct SamplerDeleter {
  void operator()(sparkc_sampler *s) const { sparkc_sampler_destroy(s); }
};

/// A model, a session of it, and what turns its logits into text.
struct TextModel {
  ModelPtr model;
  sparkc_model_info info = {};
  sparkc_text_info text = {};
  SessionPtr session;
  std::unique_ptr<sparkc_decoder, DecoderDeleter> decoder;
  std::unique_ptr<sparkc_sampler, SamplerDeleter> sampler;
  std::vector<float> logits;
  uint64_t seed = 0;
  bool sampled = false; ///< not always the likeliest token

  // These return false with the reason in `why`; if that is empty, it has been
  // printed.

  /// Opens the model and reads its text side.
  bool open(const Options &options, const GenerateOptions &wanted,
            std::string &why);
  /// Makes a session of `context` tokens, and all else. An interrupt cancels
  /// what is computed.
  bool begin(const Options &options, const GenerateOptions &wanted,
             uint64_t context, std::string &why);
  /// The tokens of a text.
  bool tokenize(const std::string &text, uint32_t flags,
                std::vector<int32_t> &tokens, std::string &why) const;
  /// Chooses the next token.
  bool sample(int32_t &token, std::string &why);
  /// The reason of a call on the session that failed.
  std::string sessionMessage() const;
};

/// Set by Ctrl-C.
extern volatile std::sig_atomic_t interrupted;

/// From here on Ctrl-C sets `interrupted`; with `once`, the next one ends the
/// program.
void catchInterrupts(bool once);

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point begin);
double perSecond(double count, double seconds);

} // namespace sparkc::run

#endif // SPARKC_TOOLS_TEXTMODEL_H
