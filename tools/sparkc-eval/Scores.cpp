//===- Scores.cpp - What a row of logits is worth -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-eval/Scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sparkc::eval;

int32_t sparkc::eval::likeliest(const float *logits, size_t vocab) {
  return static_cast<int32_t>(std::max_element(logits, logits + vocab) -
                              logits);
}

static bool allFinite(const float *logits, size_t vocab) {
  return std::all_of(logits, logits + vocab,
                     [](float x) { return std::isfinite(x); });
}

bool sparkc::eval::scoreRow(const float *logits, const float *reference,
                            size_t vocab, int32_t target, RowScore &score) {
  score = {};
  if (!allFinite(logits, vocab) || (reference && !allFinite(reference, vocab)))
    return false;
  const int32_t top = likeliest(logits, vocab);
  const double peak = logits[top];
  double sum = 0;
  if (!reference) {
    for (size_t v = 0; v < vocab; ++v)
      sum += std::exp(logits[v] - peak);
    score.loss = std::log(sum) + peak - logits[target];
    return true;
  }
  const int32_t referenceTop = likeliest(reference, vocab);
  const double referencePeak = reference[referenceTop];
  // KL = sum r (ln r - ln p), with r = exp(y) / referenceSum, p = exp(x) / sum.
  double referenceSum = 0, weighted = 0;
  for (size_t v = 0; v < vocab; ++v) {
    const double x = logits[v] - peak, y = reference[v] - referencePeak;
    const double e = std::exp(y);
    sum += std::exp(x);
    referenceSum += e;
    weighted += e * (y - x);
  }
  score.loss = std::log(sum) + peak - logits[target];
  score.referenceLoss =
      std::log(referenceSum) + referencePeak - reference[target];
  score.kl = std::max(0.0, weighted / referenceSum +
                               (std::log(sum) - std::log(referenceSum)));
  score.sameTop = top == referenceTop;
  return true;
}

Mean sparkc::eval::meanOf(const std::vector<double> &values) {
  const double n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (double v : values)
    sum += v;
  const double mean = sum / n;
  for (double v : values)
    squares += (v - mean) * (v - mean);
  const double none = std::numeric_limits<double>::quiet_NaN();
  return {mean, n < 2 ? none : std::sqrt(squares / (n - 1) / n)};
}

double sparkc::eval::quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) *
                             (values[above] - values[below]);
}

Summary sparkc::eval::summarize(const std::vector<RowScore> &rows) {
  std::vector<double> column(rows.size());
  auto mean = [&](auto field) {
    std::transform(rows.begin(), rows.end(), column.begin(), field);
    return meanOf(column);
  };
  // exp of a mean: its error to first order.
  auto grown = [](Mean log) {
    const double value = std::exp(log.value);
    return Mean{value, value * log.error};
  };
  Summary all;
  all.tokens = rows.size();
  all.perplexity = grown(mean([](const RowScore &r) { return r.loss; }));
  all.referencePerplexity =
      grown(mean([](const RowScore &r) { return r.referenceLoss; }));
  all.increase =
      grown(mean([](const RowScore &r) { return r.loss - r.referenceLoss; }));
  all.increase.value -= 1;
  all.top1 = mean([](const RowScore &r) { return r.sameTop ? 1.0 : 0.0; });
  all.kl = mean([](const RowScore &r) { return r.kl; });
  all.kl99 = quantile(column, 0.99); // of what the line above left there
  return all;
}
