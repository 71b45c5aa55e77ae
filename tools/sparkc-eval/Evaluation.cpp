//===- Evaluation.cpp - A model over the windows of a text ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-eval/Evaluation.h"
#include "runtime/include/sparkc.h"
#include "tools/common/TokenFile.h"
#include "tools/sparkc-eval/Input.h"
#include "tools/sparkc-eval/ProgressLine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>

using namespace sparkc;
using namespace sparkc::eval;

namespace {

/// A model at work: one session, and the logits of its latest tokens.
class Side {
public:
  bool open(const std::string &path, const std::string &weights,
            std::string &why);
  /// Makes the session and room for `rows` rows of logits.
  bool start(size_t context, size_t rows, uint32_t threads, std::string &why);

  bool reset() { return ok(sparkc_reset(session.get())); }
  bool rewind(size_t n) { return ok(sparkc_rewind(session.get(), n)); }
  /// Appends n tokens. With `all` row i is token i's, else row 0 the last's.
  bool feed(const int32_t *tokens, size_t n, bool all) {
    return ok(sparkc_prefill(session.get(), tokens, n,
                             all ? SPARKC_PREFILL_ALL_LOGITS : 0,
                             logits.data()));
  }
  bool decode(int32_t token) {
    return ok(sparkc_decode(session.get(), token, logits.data()));
  }
  const float *row(size_t i) const { return logits.data() + i * info.vocab; }
  int32_t likeliestAt(size_t i) const { return likeliest(row(i), info.vocab); }

  std::string name, failure;
  std::unique_ptr<sparkc_model, decltype(&sparkc_close)> model{nullptr,
                                                               sparkc_close};
  sparkc_model_info info = {};

private:
  bool ok(sparkc_status status) {
    if (status != SPARKC_OK)
      failure = name + ": " + sparkc_session_message(session.get());
    return status == SPARKC_OK;
  }
  std::unique_ptr<sparkc_session, decltype(&sparkc_session_destroy)> session{
      nullptr, sparkc_session_destroy};
  std::vector<float> logits;
};

/// The rows of logits that one call may ask for: 64 MiB.
constexpr size_t kRowBytes = size_t(64) << 20;

class Evaluation {
public:
  explicit Evaluation(const Options &options) : options(options) {}
  bool run(Result &result, std::string &why);

private:
  bool readInput(std::string &why);
  bool start(std::string &why);
  bool evaluateWindow(const int32_t *tokens);
  /// Feeds tokens [from, to) of a window and scores each against its successor.
  bool feedScored(const int32_t *tokens, size_t from, size_t to);
  bool scoreRows(const int32_t *targets, size_t n);
  /// Share of the greedy continuations' tokens before they first differ.
  bool continueGreedily(size_t position, size_t lastRow);

  bool failed(const Side &side) {
    failure = side.failure;
    return false;
  }

  const Options &options;
  Side model, reference;
  bool paired = false;
  std::vector<int32_t> tokens;
  int32_t bos = -1;
  size_t half = 0, rows = 0, windows = 0, greedyTokens = 0;
  uint32_t scorers = 1;
  std::vector<RowScore> scores;
  std::vector<double> greedyShares;
  std::string failure;
};

} // namespace

bool Side::open(const std::string &path, const std::string &weights,
                std::string &why) {
  name = path;
  sparkc_error error;
  sparkc_model *opened;
  if (sparkc_open(path.c_str(), weights.empty() ? nullptr : weights.c_str(),
                  nullptr, &opened, &error) != SPARKC_OK) {
    why = error.message;
    return false;
  }
  model.reset(opened);
  info.struct_size = sizeof info;
  sparkc_info(opened, &info);
  return true;
}

bool Side::start(size_t context, size_t rows, uint32_t threads,
                 std::string &why) {
  sparkc_session_options make = {};
  make.struct_size = sizeof make;
  make.context = context;
  make.threads = threads;
  sparkc_error error;
  sparkc_session *made;
  if (sparkc_session_create(model.get(), &make, &made, &error) != SPARKC_OK) {
    why = name + ": " + error.message;
    return false;
  }
  session.reset(made);
  logits.resize(rows * info.vocab);
  return true;
}

bool Evaluation::readInput(std::string &why) {
  const std::string &path = options.text.empty() ? options.tokens : options.text;
  bool read = options.text.empty()
                  ? readTokens(path, tokens, why)
                  : readText(path, model.model.get(), tokens, bos, why);
  if (!read)
    return false;
  windows = tokens.size() / options.window;
  if (windows == 0) {
    why = path + ": holds " + std::to_string(tokens.size()) +
          " tokens, less than one window of " + std::to_string(options.window);
    return false;
  }
  if (options.windows)
    windows = std::min(windows, options.windows);
  // Each is looked up in a row of logits, the last of a window only there.
  const int64_t vocab = model.info.vocab;
  for (size_t i = 0; i < windows * options.window; ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab) {
      why = path + ": token " + std::to_string(tokens[i]) + " (number " +
            std::to_string(i) + ") is outside the vocabulary of " +
            std::to_string(vocab);
      return false;
    }
  return true;
}

bool Evaluation::start(std::string &why) {
  half = options.window / 2;
  if (!options.allPositions && half + 1 >= options.window) {
    why = "nothing to score in the second half of a window of " +
          std::to_string(options.window) + " tokens; --all-positions has some";
    return false;
  }
  for (const Side *side : {&model, &reference}) {
    if (!side->model)
      continue;
    if (options.window > side->info.max_context) {
      why = side->name + ": a window of " + std::to_string(options.window) +
            " tokens exceeds the model's context of " +
            std::to_string(side->info.max_context);
      return false;
    }
    if (side->info.vocab != model.info.vocab) {
      why = side->name + ": has a vocabulary of " +
            std::to_string(side->info.vocab) + ", but " + model.name +
            " one of " + std::to_string(model.info.vocab);
      return false;
    }
  }
  size_t context = options.window;
  if (paired) {
    const size_t room =
        std::min(model.info.max_context, reference.info.max_context);
    greedyTokens = std::min(options.greedy, room - half);
    context = std::max(context, half + greedyTokens);
  }
  rows = std::max<size_t>(1, kRowBytes / (model.info.vocab * sizeof(float)));
  rows = std::min(rows, options.window);
  scorers = options.threads ? options.threads : sparkc_default_threads();
  return model.start(context, rows, options.threads, why) &&
         (!paired || reference.start(context, rows, options.threads, why));
}

bool Evaluation::run(Result &result, std::string &why) {
  paired = !options.reference.empty();
  if (!model.open(options.model, options.weights, why) ||
      (paired &&
       !reference.open(options.reference, options.referenceWeights, why)) ||
      !readInput(why) || !start(why))
    return false;
  ProgressLine progress(options.quiet);
  double loss = 0;
  for (size_t w = 0; w < windows; ++w) {
    progress.show(w, windows,
                  w ? std::exp(loss / double(scores.size())) : 0.0);
    int32_t *window = tokens.data() + w * options.window;
    if (bos >= 0)
      window[0] = bos;
    const size_t before = scores.size();
    if (!evaluateWindow(window)) {
      why = failure;
      return false;
    }
    for (size_t i = before; i < scores.size(); ++i)
      loss += scores[i].loss;
  }
  result.scores = summarize(scores);
  result.windows = windows;
  result.hasReference = paired;
  result.scheme = model.info.scheme;
  if (paired)
    result.referenceScheme = reference.info.scheme;
  result.hasGreedy = !greedyShares.empty();
  if (result.hasGreedy)
    result.greedy = meanOf(greedyShares);
  return true;
}

bool Evaluation::evaluateWindow(const int32_t *window) {
  size_t lastRow = 0;
  for (Side *side : {&model, &reference})
    if (side->model && !side->reset())
      return failed(*side);
  if (options.allPositions) {
    if (!feedScored(window, 0, half))
      return false;
    lastRow = (half - 1) % rows;
  } else {
    for (Side *side : {&model, &reference})
      if (side->model && !side->feed(window, half, false))
        return failed(*side);
  }
  if (greedyTokens && !continueGreedily(half, lastRow))
    return false;
  // The last token is a target only: nothing in the window follows it.
  return feedScored(window, half, options.window - 1);
}

bool Evaluation::feedScored(const int32_t *window, size_t from, size_t to) {
  for (size_t at = from, n; at < to; at += n) {
    n = std::min(rows, to - at);
    for (Side *side : {&model, &reference})
      if (side->model && !side->feed(window + at, n, true))
        return failed(*side);
    if (!scoreRows(window + at + 1, n))
      return false;
  }
  return true;
}

bool Evaluation::scoreRows(const int32_t *targets, size_t n) {
  const size_t before = scores.size();
  scores.resize(before + n);
  std::atomic<size_t> next{0};
  std::atomic<bool> finite{true};
  auto work = [&] {
    for (size_t i; (i = next++) < n;)
      if (!scoreRow(model.row(i), paired ? reference.row(i) : nullptr,
                    model.info.vocab, targets[i], scores[before + i]))
        finite = false;
  };
  std::vector<std::thread> team;
  for (size_t t = 1; t < std::min<size_t>(scorers, n); ++t)
    team.emplace_back(work);
  work();
  for (std::thread &thread : team)
    thread.join();
  if (!finite)
    failure = model.name + ": computed a logit that is no finite number";
  if (!finite && paired)
    failure += ", or " + reference.name + " did";
  return finite;
}

bool Evaluation::continueGreedily(size_t position, size_t lastRow) {
  size_t same = 0;
  int32_t token = model.likeliestAt(lastRow);
  bool agree = token == reference.likeliestAt(lastRow);
  while (agree && ++same < greedyTokens) {
    if (!model.decode(token))
      return failed(model);
    if (!reference.decode(token))
      return failed(reference);
    token = model.likeliestAt(0);
    agree = token == reference.likeliestAt(0);
  }
  greedyShares.push_back(double(same) / double(greedyTokens));
  for (Side *side : {&model, &reference})
    if (!side->rewind(position))
      return failed(*side);
  return true;
}

bool sparkc::eval::evaluate(const Options &options, Result &result,
                            std::string &why) {
  return Evaluation(options).run(result, why);
}
