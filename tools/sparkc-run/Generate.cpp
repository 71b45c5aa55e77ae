//===- Generate.cpp - sparkc-run -p TEXT ----------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-run/Generate.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <unistd.h>
#include <vector>

using namespace sparkc::run;

void sparkc::run::addGenerateOptions(CLI::App &app, GenerateOptions &o) {
  const char *group = "Writing text";
  app.add_option("-p,--prompt", o.prompt, "The text to go on from")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("-f,--file", o.promptFile,
                 "Read the prompt from a file, - for standard input (the "
                 "default where that is not a terminal); one newline at its "
                 "end is dropped")
      ->type_name("FILE")
      ->group(group);
  app.add_option("-n,--n-predict", o.tokens,
                 "Write at most N tokens; -1: until the text ends or the "
                 "context is full")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--temp", o.temperature,
                 "Temperature; 0 always takes the likeliest token. Default: "
                 "the model's generation_config.json, else 1.0")
      ->type_name("T")
      ->group(group);
  app.add_option("--top-p", o.topP,
                 "Sample from the likeliest tokens that reach this "
                 "probability. Default: as for --temp, else 0.95")
      ->type_name("P")
      ->group(group);
  app.add_option("--top-k", o.topK,
                 "Sample from the K likeliest tokens, 0: all. Default: as for "
                 "--temp, else 0")
      ->type_name("K")
      ->group(group);
  app.add_option("--seed", o.seed,
                 "Start of the random numbers; by default another each time, "
                 "printed at the end")
      ->type_name("S")
      ->group(group);
  app.add_flag("--ignore-eos", o.ignoreEos, "Go on after an end-of-text token")
      ->group(group);
  app.add_flag("--no-bos", o.noBos,
               "Do not begin with the begin-of-text token, even if the "
               "tokenizer's config says so")
      ->group(group);
  app.add_flag("--plain", o.plain,
               "Special tokens written in the prompt are text like any other")
      ->group(group);
  app.add_flag("--no-echo", o.noEcho, "Do not print the prompt")->group(group);
}

namespace {

struct DecoderDeleter {
  void operator()(sparkc_decoder *d) const { sparkc_decoder_destroy(d); }
};
struct SamplerDeleter {
  void operator()(sparkc_sampler *s) const { sparkc_sampler_destroy(s); }
};
using DecoderPtr = std::unique_ptr<sparkc_decoder, DecoderDeleter>;
using SamplerPtr = std::unique_ptr<sparkc_sampler, SamplerDeleter>;
using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

/// The first interrupt ends the answer, a second one the program.
void catchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
}

bool readPrompt(const GenerateOptions &options, std::string &text,
                std::string &why) {
  if (options.prompt) {
    text = *options.prompt;
    return true;
  }
  const std::string &path = options.promptFile;
  bool standard = path.empty() || path == "-";
  if (path.empty() && isatty(STDIN_FILENO)) {
    why = "no prompt: give one with -p, -f or on standard input (see --help)";
    return false;
  }
  std::FILE *in = standard ? stdin : std::fopen(path.c_str(), "rb");
  if (!in) {
    why = path + ": " + std::strerror(errno);
    return false;
  }
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, in))
    text.append(buffer, n);
  int code = std::ferror(in) ? errno : 0;
  if (!standard)
    std::fclose(in);
  if (code) {
    why = (standard ? "standard input" : path) + ": " + std::strerror(code);
    return false;
  }
  if (!text.empty() && text.back() == '\n')
    text.pop_back();
  return true;
}

/// One prompt and its continuation.
class Generation {
public:
  Generation(const Options &options, const GenerateOptions &wanted)
      : options(options), wanted(wanted) {}

  int run() {
    std::string why;
    bool good = prepare(why) && write(why);
    // What was written stands on lines of its own, whatever comes after.
    if (wroteText) {
      std::fputc('\n', stdout);
      if (std::fflush(stdout) != 0 && good) {
        good = false;
        why = std::string("standard output: ") + std::strerror(errno);
      }
    }
    if (!good)
      return why.empty() ? 1 : error(why);
    report();
    return interrupted ? 128 + SIGINT : 0;
  }

private:
  /// False with `why` empty: the reason has been printed.
  bool prepare(std::string &why) {
    std::string text;
    if (wanted.topP && !(*wanted.topP > 0 && *wanted.topP <= 1)) {
      why = "--top-p must be above 0 and at most 1";
      return false;
    }
    if (!readPrompt(wanted, text, why) || !openModel(options, model, info))
      return false;
    textInfo.struct_size = sizeof textInfo;
    sparkc_error failure;
    if (sparkc_text_info_get(model.get(), &textInfo, &failure) != SPARKC_OK ||
        !tokenize(text, failure) || !makeSampler(failure)) {
      why = failure.message;
      return false;
    }
    if (prompt.empty()) {
      why = "the prompt is empty";
      return false;
    }
    uint64_t context = info.default_context;
    if (wanted.tokens >= 0)
      context = std::max(context, prompt.size() + uint64_t(wanted.tokens));
    if (!openSession(options, model, std::min(context, info.max_context),
                     session))
      return false;
    sparkc_session_set_progress(
        session.get(),
        [](void *, size_t, size_t) -> int { return interrupted; }, nullptr);
    sparkc_decoder *made;
    if (sparkc_decoder_create(model.get(), SPARKC_DECODER_SHOW_SPECIAL, &made,
                              &failure) != SPARKC_OK) {
      why = failure.message;
      return false;
    }
    decoder.reset(made);
    logits.resize(info.vocab);
    return true;
  }

  bool tokenize(const std::string &text, sparkc_error &failure) {
    uint32_t flags = wanted.plain ? 0 : SPARKC_TOKENIZE_PARSE_SPECIAL;
    size_t count = 0;
    prompt.resize(text.size() + 1); // no text has more tokens than bytes ...
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (sparkc_tokenize(model.get(), text.data(), text.size(), flags,
                          prompt.data(), prompt.size(), &count,
                          &failure) != SPARKC_OK)
        return false;
      bool fits = count <= prompt.size();
      prompt.resize(count); // ... unless it is not UTF-8
      if (fits)
        break;
    }
    if (textInfo.adds_bos && !wanted.noBos && !prompt.empty() &&
        prompt[0] != textInfo.bos) {
      prompt.insert(prompt.begin(), textInfo.bos);
      addedBos = true;
    }
    return true;
  }

  bool makeSampler(sparkc_error &failure) {
    sparkc_sampler_options make = {};
    make.struct_size = sizeof make;
    make.temperature = wanted.temperature.value_or(textInfo.temperature);
    make.top_p = wanted.topP.value_or(textInfo.top_p);
    make.top_k = wanted.topK.value_or(textInfo.top_k);
    sampled = make.temperature != 0;
    if (wanted.seed) {
      seed = *wanted.seed;
    } else if (sampled) {
      std::random_device device;
      seed = device();
    }
    make.seed = seed;
    sparkc_sampler *made;
    if (sparkc_sampler_create(&make, &made, &failure) != SPARKC_OK)
      return false;
    sampler.reset(made);
    return true;
  }

  bool put(const char *text, size_t bytes, std::string &why) {
    if (bytes == 0)
      return true;
    wroteText = true;
    if (std::fwrite(text, 1, bytes, stdout) == bytes &&
        std::fflush(stdout) == 0)
      return true;
    why = std::string("standard output: ") + std::strerror(errno);
    wroteText = false;
    return false;
  }

  bool show(int32_t token, std::string &why) {
    const char *text;
    size_t bytes;
    if (sparkc_decoder_add(decoder.get(), token, &text, &bytes) != SPARKC_OK) {
      why = "out of memory";
      return false;
    }
    return put(text, bytes, why);
  }

  bool write(std::string &why) {
    catchInterrupt();
    if (!wanted.noEcho)
      for (size_t i = addedBos; i < prompt.size(); ++i)
        if (!show(prompt[i], why))
          return false;
    const size_t room = sparkc_session_context(session.get());
    Clock::time_point begin = Clock::now();
    sparkc_status status = sparkc_prefill(session.get(), prompt.data(),
                                          prompt.size(), 0, logits.data());
    promptDone = sparkc_session_position(session.get());
    promptSeconds = since(begin);
    begin = Clock::now();
    while (status == SPARKC_OK && !interrupted &&
           (wanted.tokens < 0 || written < uint64_t(wanted.tokens))) {
      int32_t token;
      if (sparkc_sample(sampler.get(), logits.data(), info.vocab, &token) !=
          SPARKC_OK) {
        why = options.model + ": the model computed no numbers";
        return false;
      }
      if (!wanted.ignoreEos && sparkc_token_is_eos(model.get(), token))
        break;
      ++written;
      if (!show(token, why))
        return false;
      if (written == uint64_t(wanted.tokens))
        break;
      if (sparkc_session_position(session.get()) == room) {
        contextFull = true;
        break;
      }
      status = sparkc_decode(session.get(), token, logits.data());
      ++steps;
    }
    stepSeconds = since(begin);
    if (status != SPARKC_OK && status != SPARKC_CANCELLED) {
      why = options.model + ": " + sparkc_session_message(session.get());
      return false;
    }
    const char *text;
    size_t bytes;
    return sparkc_decoder_finish(decoder.get(), &text, &bytes) == SPARKC_OK &&
           put(text, bytes, why);
  }

  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void report() const {
    auto rate = [](double count, double seconds) {
      return seconds > 0 ? count / seconds : 0.0;
    };
    std::fprintf(stderr,
                 "prompt %zu tokens, %.1f tokens/s; generation %llu tokens, "
                 "%.1f tokens/s",
                 promptDone, rate(double(promptDone), promptSeconds),
                 static_cast<unsigned long long>(written),
                 rate(double(steps), stepSeconds));
    if (sampled)
      std::fprintf(stderr, "; seed %llu",
                   static_cast<unsigned long long>(seed));
    std::fprintf(stderr, "%s%s\n", contextFull ? "; context full" : "",
                 interrupted ? "; interrupted" : "");
  }

  const Options &options;
  const GenerateOptions &wanted;
  ModelPtr model;
  sparkc_model_info info = {};
  sparkc_text_info textInfo = {};
  SessionPtr session;
  DecoderPtr decoder;
  SamplerPtr sampler;
  std::vector<int32_t> prompt;
  std::vector<float> logits;
  uint64_t seed = 0;
  bool addedBos = false, sampled = false;
  bool wroteText = false, contextFull = false;
  uint64_t written = 0, steps = 0;
  size_t promptDone = 0;
  double promptSeconds = 0, stepSeconds = 0;
};

} // namespace

int sparkc::run::runGenerate(const Options &options,
                             const GenerateOptions &generate) {
  return Generation(options, generate).run();
}
