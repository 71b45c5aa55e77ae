//===- Scores.h - What a row of logits is worth -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Scores of single positions and their summary, all in float64. Nothing here
/// depends on the number of threads that computed the rows.
///
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_EVAL_SCORES_H
#define SPARKC_TOOLS_EVAL_SCORES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparkc::eval {

/// One position. The last three fields are 0 without a reference.
struct RowScore {
  double loss = 0;          ///< -ln p(target), nats
  double referenceLoss = 0; ///< of the reference
  double kl = 0;            ///< KL(reference || model), nats, >= 0
  bool sameTop = false;     ///< both hold the same token likeliest
};

/// The likeliest token; of equal ones the lowest id.
int32_t likeliest(const float *logits, size_t vocab);

/// Scores one row of `vocab` logits. `reference` may be null. False if a logit
/// is NaN or infinite: then there is no distribution to speak of.
bool scoreRow(const float *logits, const float *reference, size_t vocab,
              int32_t target, RowScore &score);

/// A mean and its standard error, s / sqrt(n) with s over n - 1; the error is
/// NaN for n < 2, both are for n = 0.
struct Mean {
  double value, error;
};
Mean meanOf(const std::vector<double> &values);

/// The q-quantile (0 <= q <= 1) of n >= 1 values, linear between neighbours.
double quantile(std::vector<double> values, double q);

/// All positions of a text.
struct Summary {
  size_t tokens = 0;
  Mean perplexity, referencePerplexity; ///< exp of the mean loss
  /// perplexity / reference - 1; its error is that of the paired losses.
  Mean increase;
  Mean kl, top1;
  double kl99 = 0;
};
Summary summarize(const std::vector<RowScore> &rows);

} // namespace sparkc::eval

#endif // SPARKC_TOOLS_EVAL_SCORES_H
