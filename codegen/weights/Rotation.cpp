//===- Rotation.cpp - Orthogonal matrices that spread outliers ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Rotation.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace sparkc;

/// Number i of the SplitMix64 generator.
static uint64_t splitMix(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Rotation::Rotation(int64_t size, uint64_t seed)
    : odd(size >> llvm::countr_zero(uint64_t(size))), power(size / odd),
      factors(size), hartley(odd) {
  const double scale = 1 / std::sqrt(double(size));
  for (int64_t i = 0; i < size; ++i)
    factors[i] = splitMix(seed, i) >> 63 ? -scale : scale;
  for (int64_t i = 0; i < odd; ++i) {
    const double t = 2 * llvm::numbers::pi * double(i) / double(odd);
    hartley[i] = std::cos(t) + std::sin(t);
  }
}

/// v becomes v H, H of `size` rows.
static void applyHadamard(double *v, int64_t size, int64_t lanes) {
  const int64_t all = size * lanes;
  for (int64_t half = lanes; half < all; half *= 2)
    for (int64_t i = 0; i < all; i += 2 * half)
      for (int64_t j = i; j < i + half; ++j) {
        const double a = v[j], b = v[j + half];
        v[j] = a + b;
        v[j + half] = a - b;
      }
}

void Rotation::applyHartley(double *v, int64_t lanes) const {
  constexpr int64_t most = 64;
  const int64_t run = power * lanes;
  std::vector<double> in(odd * most);
  for (int64_t first = 0; first < run; first += most) {
    const int64_t width = std::min(most, run - first);
    for (int64_t a = 0; a < odd; ++a)
      std::copy_n(v + a * run + first, width, &in[a * most]);
    for (int64_t b = 0; b < odd; ++b) {
      double *out = v + b * run + first;
      std::fill_n(out, width, 0.0);
      for (int64_t a = 0; a < odd; ++a) {
        const double t = hartley[a * b % odd];
        for (int64_t j = 0; j < width; ++j)
          out[j] += t * in[a * most + j];
      }
    }
  }
}

void Rotation::apply(double *v, int64_t lanes) const {
  for (int64_t i = 0; i < size(); ++i)
    for (int64_t l = 0; l < lanes; ++l)
      v[i * lanes + l] *= factors[i];
  for (int64_t a = 0; a < odd; ++a)
    applyHadamard(v + a * power * lanes, power, lanes);
  if (odd > 1)
    applyHartley(v, lanes);
}
