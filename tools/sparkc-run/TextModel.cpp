//===- TextModel.cpp - What writing text takes ----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-run/TextModel.h"
#include "tools/sparkc-run/LineReader.h"

#include <random>

using namespace sparkc::run;

volatile std::sig_atomic_t sparkc::run::interrupted = 0;

void sparkc::run::catchInterrupts(bool once) {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    interrupted = 1;
    wakeReader();
  };
  action.sa_flags = once ? SA_RESETHAND : 0;
  sigaction(SIGINT, &action, nullptr);
}

double sparkc::run::secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double sparkc::run::perSecond(double count, double seconds) {
  return seconds > 0 ? count / seconds : 0.0;
}

bool TextModel::open(const Options &options, const GenerateOptions &wanted,
                     std::string &why) {
  if (wanted.topP && !(*wanted.topP > 0 && *wanted.topP <= 1)) {
    why = "--top-p must be above 0 and at most 1";
    return false;
  }
  if (!openModel(options, model, info))
    return false;
  text.struct_size = sizeof text;
  sparkc_error failure;
  if (sparkc_text_info_get(model.get(), &text, &failure) != SPARKC_OK) {
    why = failure.message;
    return false;
  }
  return true;
}

bool TextModel::begin(const Options &options, const GenerateOptions &wanted,
                      uint64_t context, std::string &why) {
  sparkc_sampler_options make = {};
  make.struct_size = sizeof make;
  make.temperature = wanted.temperature.value_or(text.temperature);
  make.top_p = wanted.topP.value_or(text.top_p);
  make.top_k = wanted.topK.value_or(text.top_k);
  sampled = make.temperature != 0;
  if (wanted.seed) {
    seed = *wanted.seed;
  } else if (sampled) {
    std::random_device device;
    seed = device();
  }
  make.seed = seed;
  sparkc_error failure;
  sparkc_sampler *chooses;
  sparkc_decoder *decodes;
  if (sparkc_sampler_create(&make, &chooses, &failure) != SPARKC_OK) {
    why = failure.message;
    return false;
  }
  sampler.reset(chooses);
  if (!openSession(options, model, context, session))
    return false;
  sparkc_session_set_progress(
      session.get(), [](void *, size_t, size_t) -> int { return interrupted; },
      nullptr);
  if (sparkc_decoder_create(model.get(), SPARKC_DECODER_SHOW_SPECIAL, &decodes,
                            &failure) != SPARKC_OK) {
    why = failure.message;
    return false;
  }
  decoder.reset(decodes);
  logits.resize(info.vocab);
  return true;
}

bool TextModel::tokenize(const std::string &said, uint32_t flags,
                         std::vector<int32_t> &tokens, std::string &why) const {
  size_t count = 0;
  tokens.resize(said.size() + 1); // no text has more tokens than bytes ...
  for (int attempt = 0; attempt < 2; ++attempt) {
    sparkc_error failure;
    if (sparkc_tokenize(model.get(), said.data(), said.size(), flags,
                        tokens.data(), tokens.size(), &count,
                        &failure) != SPARKC_OK) {
      why = failure.message;
      return false;
    }
    bool fits = count <= tokens.size();
    tokens.resize(count); // ... unless it is not UTF-8
    if (fits)
      break;
  }
  return true;
}

bool TextModel::sample(int32_t &token, std::string &why) {
  if (sparkc_sample(sampler.get(), logits.data(), info.vocab, &token) ==
      SPARKC_OK)
    return true;
  why = std::string(info.object_path) + ": the model computed no numbers";
  return false;
}

std::string TextModel::sessionMessage() const {
  return std::string(info.object_path) + ": " +
         sparkc_session_message(session.get());
}
