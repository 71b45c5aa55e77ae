//===- Generate.cpp - sparkc-run -p TEXT ----------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/Validators.h"
#include "tools/sparkc-run/TextModel.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
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
                 "Write at most N tokens; -1 (the default in a chat): until "
                 "the text ends or the context is full")
      ->check(sparkc::integerFrom(-1))
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
      ->check(sparkc::unsigned64())
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
    if (!readPrompt(wanted, text, why) || !t.open(options, wanted, why) ||
        !t.tokenize(text, wanted.plain ? 0 : SPARKC_TOKENIZE_PARSE_SPECIAL,
                    prompt, why))
      return false;
    if (prompt.empty()) {
      why = "the prompt is empty";
      return false;
    }
    if (t.text.adds_bos && !wanted.noBos && prompt[0] != t.text.bos) {
      prompt.insert(prompt.begin(), t.text.bos);
      addedBos = true;
    }
    uint64_t context = t.info.default_context;
    if (wanted.tokens >= 0)
      context = std::max(context, prompt.size() + uint64_t(wanted.tokens));
    return t.begin(options, wanted, std::min(context, t.info.max_context),
                   why);
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
    if (sparkc_decoder_add(t.decoder.get(), token, &text, &bytes) !=
        SPARKC_OK) {
      why = "out of memory";
      return false;
    }
    return put(text, bytes, why);
  }

  bool write(std::string &why) {
    catchInterrupts(/*once=*/true);
    if (!wanted.noEcho)
      for (size_t i = addedBos; i < prompt.size(); ++i)
        if (!show(prompt[i], why))
          return false;
    sparkc_session *session = t.session.get();
    const size_t room = sparkc_session_context(session);
    Clock::time_point begin = Clock::now();
    sparkc_status status = sparkc_prefill(session, prompt.data(), prompt.size(),
                                          0, t.logits.data());
    promptDone = sparkc_session_position(session);
    promptSeconds = secondsSince(begin);
    begin = Clock::now();
    while (status == SPARKC_OK && !interrupted &&
           (wanted.tokens < 0 || written < uint64_t(wanted.tokens))) {
      int32_t token;
      if (!t.sample(token, why))
        return false;
      if (!wanted.ignoreEos && sparkc_token_is_eos(t.model.get(), token))
        break;
      ++written;
      if (!show(token, why))
        return false;
      if (written == uint64_t(wanted.tokens))
        break;
      if (sparkc_session_position(session) == room) {
        contextFull = true;
        break;
      }
      status = sparkc_decode(session, token, t.logits.data());
      ++steps;
    }
    stepSeconds = secondsSince(begin);
    if (status != SPARKC_OK && status != SPARKC_CANCELLED) {
      why = t.sessionMessage();
      return false;
    }
    const char *text;
    size_t bytes;
    return sparkc_decoder_finish(t.decoder.get(), &text, &bytes) == SPARKC_OK &&
           put(text, bytes, why);
  }

  void report() const {
    std::fprintf(stderr,
                 "prompt %zu tokens, %.1f tokens/s; generation %llu tokens, "
                 "%.1f tokens/s",
                 promptDone, perSecond(double(promptDone), promptSeconds),
                 static_cast<unsigned long long>(written),
                 perSecond(double(steps), stepSeconds));
    if (t.sampled)
      std::fprintf(stderr, "; seed %llu",
                   static_cast<unsigned long long>(t.seed));
    std::fprintf(stderr, "%s%s\n", contextFull ? "; context full" : "",
                 interrupted ? "; interrupted" : "");
  }

  const Options &options;
  const GenerateOptions &wanted;
  TextModel t;
  std::vector<int32_t> prompt;
  bool addedBos = false;
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
