//===- Stats.cpp - Medians and spreads ------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace sparkc;

double bench::median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half]
                           : (values[half - 1] + values[half]) / 2;
}

double bench::deviation(const std::vector<double> &values) {
  if (values.size() < 2)
    return 0;
  double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / values.size();
  double squares = 0;
  for (double v : values)
    squares += (v - mean) * (v - mean);
  return std::sqrt(squares / (values.size() - 1));
}

double bench::moved(double before, double after) {
  double larger = std::max(before, after);
  return larger > 0 ? 1 - std::min(before, after) / larger : 0;
}

std::vector<size_t> bench::steadiest(const std::vector<double> &movements,
                                     size_t wanted, double limit) {
  std::vector<size_t> order(movements.size());
  std::iota(order.begin(), order.end(), 0);
  // Those within the limit are as good as each other.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::max(movements[a], limit) < std::max(movements[b], limit);
  });
  order.resize(std::min(order.size(), wanted));
  std::sort(order.begin(), order.end());
  return order;
}
