//===- Stats.h - Medians and spreads ----------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_BENCH_STATS_H
#define SPARKC_TOOLS_BENCH_STATS_H

#include <cstddef>
#include <vector>

namespace sparkc::bench {

/// Middle value, or the mean of the two in the middle; 0 of nothing.
double median(std::vector<double> values);

/// Sample standard deviation (n - 1); 0 of fewer than two.
double deviation(const std::vector<double> &values);

/// How far apart two positive figures are: 1 - smaller / larger.
double moved(double before, double after);

/// Which of the attempts count as repetitions: the first `wanted` whose
/// movement is at most `limit`; if there are not that many, those that moved
/// least, in the order in which they ran.
std::vector<size_t> steadiest(const std::vector<double> &movements,
                              size_t wanted, double limit);

} // namespace sparkc::bench

#endif // SPARKC_TOOLS_BENCH_STATS_H
