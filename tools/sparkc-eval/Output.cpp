//===- Output.cpp - The result as text and as JSON ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-eval/Evaluation.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace sparkc::eval;

using Json = nlohmann::ordered_json;

/// null where there is no such figure (a NaN is null in JSON anyway).
static Json figure(bool known, double value) {
  return known && std::isfinite(value) ? Json(value) : Json(nullptr);
}

std::string sparkc::eval::jsonText(const Options &options,
                                   const Result &result) {
  const Summary &s = result.scores;
  const bool paired = result.hasReference, greedy = result.hasGreedy;
  Json json;
  json["model"] = options.model;
  json["scheme"] = result.scheme;
  json["reference"] = paired ? Json(options.reference) : Json(nullptr);
  json["reference_scheme"] = paired ? Json(result.referenceScheme) : nullptr;
  json["window"] = options.window;
  json["windows"] = result.windows;
  json["all_positions"] = options.allPositions;
  json["tokens"] = s.tokens;
  json["perplexity"] = s.perplexity.value;
  json["perplexity_stderr"] = figure(true, s.perplexity.error);
  json["reference_perplexity"] = figure(paired, s.referencePerplexity.value);
  json["increase"] = figure(paired, s.increase.value);
  json["increase_stderr"] = figure(paired, s.increase.error);
  json["kl_mean"] = figure(paired, s.kl.value);
  json["kl_stderr"] = figure(paired, s.kl.error);
  json["kl_p99"] = figure(paired, s.kl99);
  json["top1_agreement"] = figure(paired, s.top1.value);
  json["top1_stderr"] = figure(paired, s.top1.error);
  json["greedy_agreement"] = figure(greedy, result.greedy.value);
  json["greedy_stderr"] = figure(greedy, result.greedy.error);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

static std::string plainText(const Options &options, const Result &result) {
  const Summary &s = result.scores;
  std::string text;
  char line[256];
  auto add = [&](const char *format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    text += line;
  };
  add("tokens        %zu, in %zu %s of %zu%s\n", s.tokens, result.windows,
      result.windows == 1 ? "window" : "windows", options.window,
      options.allPositions ? "" : ", the second half of each");
  add("perplexity    %.3f +- %.3f (%s)\n", s.perplexity.value,
      s.perplexity.error, result.scheme.c_str());
  if (!result.hasReference)
    return text;
  add("reference     %.3f +- %.3f (%s)\n", s.referencePerplexity.value,
      s.referencePerplexity.error, result.referenceScheme.c_str());
  add("increase      %+.3f %% +- %.3f %%\n", 100 * s.increase.value,
      100 * s.increase.error);
  add("KL, mean      %.6f +- %.6f\n", s.kl.value, s.kl.error);
  add("KL, 99th %%    %.6f\n", s.kl99);
  add("top-1         %.4f +- %.4f\n", s.top1.value, s.top1.error);
  if (result.hasGreedy)
    add("greedy        %.4f +- %.4f\n", result.greedy.value,
        result.greedy.error);
  return text;
}

bool sparkc::eval::print(const Options &options, const Result &result) {
  const std::string text =
      options.json ? jsonText(options, result) : plainText(options, result);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}
