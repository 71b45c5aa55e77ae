//===- RandomWeights.h - Weights as trained ones are spread -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_WEIGHTS_RANDOMWEIGHTS_H
#define SPARKC_TEST_UNIT_WEIGHTS_RANDOMWEIGHTS_H

#include <cstdint>
#include <random>
#include <vector>

namespace sparkc::test {

/// n weights, normally distributed.
inline std::vector<float> randomWeights(int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> w(n);
  for (float &x : w)
    x = normal(rng);
  return w;
}

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_WEIGHTS_RANDOMWEIGHTS_H
