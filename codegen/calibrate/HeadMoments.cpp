//===- HeadMoments.cpp - Second moments for sets of the head's rows -------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/HeadMoments.h"
#include "llvm/Support/Parallel.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

namespace sparkc {

/// There are fewer sets where their factors, cols^3 each, would take more.
static constexpr int64_t kWork = int64_t(1) << 39;
/// Rows, and tokens, at a time.
static constexpr int64_t kRows = 4096, kTokens = 256;
/// Tokens that are added to a set's moments at a time.
static constexpr int64_t kWeighted = 1024;
/// Every set's moments have those of so many tokens of the text besides, lest
/// few unlikely ones decide.
static constexpr float kOthers = 5;
/// Less of a set's probability than this is left out.
static constexpr float kLeast = 3e-4f;

HeadMoments::HeadMoments(const DenseKernels &dense, const SourceMatrix &head,
                         llvm::ArrayRef<int32_t> text, int64_t mostSets)
    : dense(dense), head(head), cols(head.cols) {
  assign(text, mostSets);
}

void HeadMoments::forRows(
    llvm::function_ref<void(int64_t, int64_t, const float *)> work) const {
  std::vector<float> turned;
  for (int64_t first = 0; first < head.rows; first += kRows) {
    const int64_t n = std::min(kRows, head.rows - first);
    turned.resize(cols * n);
    llvm::parallelFor(0, n, [&](size_t i) {
      std::vector<float> row(cols);
      readRow(head, first + int64_t(i), row.data());
      for (int64_t c = 0; c < cols; ++c)
        turned[c * n + int64_t(i)] = row[c];
    });
    work(first, n, turned.data());
  }
}

void HeadMoments::assign(llvm::ArrayRef<int32_t> text, int64_t mostSets) {
  std::vector<int64_t> count(head.rows), order(head.rows);
  for (int32_t token : text)
    ++count[token];
  std::iota(order.begin(), order.end(), int64_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return count[a] > count[b]; });
  int64_t pivots = std::clamp<int64_t>(
      std::min(kWork / (cols * cols * cols), head.rows / 4), 1, mostSets);
  while (pivots > 1 && count[order[pivots - 1]] == 0)
    --pivots;
  std::vector<float> mean(cols), pivot(pivots * cols);
  forRows([&](int64_t, int64_t n, const float *turned) {
    for (int64_t c = 0; c < cols; ++c)
      for (int64_t r = 0; r < n; ++r)
        mean[c] += turned[c * n + r] / float(head.rows);
  });
  for (int64_t p = 0; p < pivots; ++p) {
    float *row = &pivot[p * cols];
    readRow(head, order[p], row);
    double power = 0;
    for (int64_t c = 0; c < cols; ++c) {
      row[c] -= mean[c];
      power += double(row[c]) * row[c];
    }
    for (int64_t c = 0; c < cols && power > 0; ++c)
      row[c] /= float(std::sqrt(power));
  }
  sets.resize(pivots);
  setOf.resize(head.rows);
  std::vector<float> own(pivots); // pivot times mean: the rows are centred too
  for (int64_t p = 0; p < pivots; ++p)
    own[p] = std::inner_product(mean.begin(), mean.end(), &pivot[p * cols],
                                0.0f);
  forRows([&](int64_t first, int64_t n, const float *turned) {
    std::vector<float> along(pivots * n, 0.0f);
    dense.addProduct(along.data(), n, pivot.data(), cols, turned, n, pivots, n,
                     cols, 1.0f);
    for (int64_t r = 0; r < n; ++r) {
      int64_t best = 0;
      for (int64_t p = 1; p < pivots; ++p)
        if (along[p * n + r] - own[p] > along[best * n + r] - own[best])
          best = p;
      setOf[first + r] = int32_t(best);
    }
  });
  for (int64_t p = 0; p < pivots; ++p)
    setOf[order[p]] = int32_t(p);
  for (int64_t r = 0; r < head.rows; ++r)
    sets[setOf[r]].push_back(r);
}

void HeadMoments::add(const float *x, const float *y, int64_t n) {
  inputs.insert(inputs.end(), x, x + n * cols);
  unquantized.insert(unquantized.end(), y, y + n * cols);
  tokens += n;
}

void HeadMoments::finish() {
  const int64_t count = int64_t(sets.size());
  std::vector<float> shares(tokens * count); // [tokens, sets]
  std::vector<float> highest(tokens, -INFINITY), total(tokens, 0.0f);
  forRows([&](int64_t first, int64_t n, const float *turned) {
    llvm::parallelFor(0, (tokens + kTokens - 1) / kTokens, [&](size_t piece) {
      const int64_t from = int64_t(piece) * kTokens,
                    m = std::min(kTokens, tokens - from);
      std::vector<float> logits(m * n, 0.0f);
      dense.addProduct(logits.data(), n, &unquantized[from * cols], cols,
                       turned, n, m, n, cols, 1.0f);
      for (int64_t i = 0; i < m; ++i) {
        const float *row = &logits[i * n];
        float *share = &shares[(from + i) * count];
        const float top =
            std::max(highest[from + i], *std::max_element(row, row + n));
        // Of the rows before; 0 where there were none.
        const float old = std::exp(highest[from + i] - top);
        highest[from + i] = top;
        total[from + i] *= old;
        for (int64_t s = 0; s < count; ++s)
          share[s] *= old;
        for (int64_t r = 0; r < n; ++r) {
          const float p = std::exp(row[r] - top);
          share[setOf[first + r]] += p;
          total[from + i] += p;
        }
      }
    });
  });
  unquantized = {};
  sharesOf.resize(count);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t s = 0; s < count; ++s)
      if (const float share = shares[t * count + s] / total[t]; share > kLeast)
        sharesOf[s].push_back({int32_t(t), share});
}

Moments HeadMoments::momentsOf(size_t set) const {
  Moments own(cols, 0);
  llvm::ArrayRef<Share> left = sharesOf[set];
  std::vector<float> weighted(std::min<size_t>(left.size(), kWeighted) * cols);
  while (!left.empty()) {
    const size_t n = std::min<size_t>(left.size(), kWeighted);
    for (size_t i = 0; i < n; ++i) {
      const float root = std::sqrt(left[i].share);
      const float *x = &inputs[left[i].token * cols];
      for (int64_t c = 0; c < cols; ++c)
        weighted[i * cols + c] = root * x[c];
    }
    own.add(dense, weighted.data(), nullptr, nullptr, n);
    left = left.drop_front(n);
  }
  own.finish();
  return own;
}

llvm::Expected<bool> HeadMoments::forSets(const Moments &all, float damp,
                                          EachSet each) const {
  std::atomic<bool> singular{false}, failed{false};
  llvm::Error failure = llvm::Error::success();
  llvm::parallelFor(0, size(), [&](size_t s) {
    if (singular || failed)
      return;
    Moments own = momentsOf(s);
    for (int64_t i = 0; i < cols * cols; ++i)
      own.second[i] += all.second[i] * (kOthers / float(all.tokens));
    ErrorFactor factor;
    if (!ErrorFactor::of(dense, own.second, cols, damp, factor)) {
      singular = true;
    } else if (llvm::Error error = each(s, sets[s], factor)) {
      if (failed.exchange(true))
        llvm::consumeError(std::move(error)); // another was faster
      else
        failure = std::move(error);
    }
  });
  if (failure)
    return failure;
  return !singular;
}

} // namespace sparkc
