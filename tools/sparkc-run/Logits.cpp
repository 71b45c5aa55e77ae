//===- Logits.cpp - sparkc-run --tokens FILE --logits OUT -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/EndingSignals.h"
#include "tools/common/TokenFile.h"
#include "tools/sparkc-run/Run.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace sparkc::run;

namespace {
/// Removes a file when a signal ends the process. One at a time.
class RemovedOnSignal {
public:
  explicit RemovedOnSignal(const std::string &file) {
    if (file.size() >= sizeof path)
      return;
    std::strcpy(path, file.c_str());
    signals.emplace([](int number) {
      unlink(path);
      std::signal(number, SIG_DFL);
      std::raise(number);
    });
  }
  ~RemovedOnSignal() {
    signals.reset();
    *path = 0;
  }
  RemovedOnSignal(const RemovedOnSignal &) = delete;
  RemovedOnSignal &operator=(const RemovedOnSignal &) = delete;

private:
  static inline char path[4096];
  std::optional<sparkc::EndingSignals> signals;
};

/// A file that has its name only once it is complete. What is there already
/// and is no regular file (a pipe, /dev/stdout) is written to as it is.
class Output {
public:
  explicit Output(const std::string &path) : path(path), writtenTo(path) {
    std::error_code ignored;
    auto status = std::filesystem::status(path, ignored);
    if (!std::filesystem::exists(status) ||
        std::filesystem::is_regular_file(status))
      removed.emplace(writtenTo += ".part");
    file = std::fopen(writtenTo.c_str(), "wb");
  }
  ~Output() {
    if (file)
      std::fclose(file);
    if (writtenTo != path)
      std::remove(writtenTo.c_str());
  }
  bool isOpen() const { return file != nullptr; }
  bool write(const float *rows, size_t count) {
    return std::fwrite(rows, sizeof(float), count, file) == count;
  }
  bool finish() {
    std::FILE *complete = std::exchange(file, nullptr);
    if (std::fclose(complete) != 0)
      return false;
    if (writtenTo == path)
      return true;
    if (std::rename(writtenTo.c_str(), path.c_str()) != 0)
      return false;
    writtenTo = path;
    return true;
  }

private:
  std::string path, writtenTo;
  std::optional<RemovedOnSignal> removed;
  std::FILE *file;
};
} // namespace

int sparkc::run::runLogits(const Options &options) {
  std::vector<int32_t> tokens;
  std::string why;
  if (!readTokens(options.tokens, tokens, why))
    return error(why);
  if (tokens.empty())
    return error(options.tokens + ": no token ids");
  ModelPtr model;
  sparkc_model_info info;
  SessionPtr session;
  if (!openModel(options, model, info))
    return 1;
  for (const std::string &input :
       {options.tokens, options.model, std::string(info.weights_path)}) {
    std::error_code none;
    if (std::filesystem::equivalent(options.logits, input, none))
      return error(options.logits +
                   ": is read from; --logits must name another file");
  }
  // Room for the tokens at least, so that a long file needs no --context.
  uint64_t context = std::max<uint64_t>(info.default_context, tokens.size());
  if (!openSession(options, model, std::min(context, info.max_context),
                   session))
    return 1;

  const size_t vocab = info.vocab;
  // All of them before the first is computed, and by their place in the file.
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || size_t(tokens[i]) >= vocab)
      return error(options.tokens + ": token id " + std::to_string(tokens[i]) +
                   " at index " + std::to_string(i) +
                   " is outside the vocabulary of " + std::to_string(vocab));
  if (size_t room = sparkc_session_context(session.get());
      tokens.size() > room)
    return error(options.tokens + ": " + std::to_string(tokens.size()) +
                 " tokens; the context has room for " + std::to_string(room));
  size_t chunk = options.prefillChunk;
  if (!chunk) // rows of 64 MiB
    chunk = std::max<size_t>(1, (size_t(64) << 20) / (vocab * sizeof(float)));
  if (options.decode)
    chunk = 1;
  chunk = std::min(chunk, tokens.size());
  std::vector<float> rows(chunk * vocab);
  Output out(options.logits);
  if (!out.isOpen())
    return error(options.logits + ": " + std::strerror(errno));
  for (size_t done = 0; done < tokens.size();) {
    size_t n = std::min(chunk, tokens.size() - done);
    sparkc_status status =
        options.decode ? sparkc_decode(session.get(), tokens[done], rows.data())
                       : sparkc_prefill(session.get(), tokens.data() + done, n,
                                        SPARKC_PREFILL_ALL_LOGITS, rows.data());
    if (status != SPARKC_OK)
      return error(options.tokens + ": " +
                   sparkc_session_message(session.get()));
    if (!out.write(rows.data(), n * vocab))
      return error(options.logits + ": " + std::strerror(errno));
    done += n;
  }
  if (!out.finish())
    return error(options.logits + ": " + std::strerror(errno));
  return 0;
}
