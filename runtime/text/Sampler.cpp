//===- Sampler.cpp - Choosing the next token ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

using namespace sparkc;

static constexpr size_t kLanes = 8;

/// The largest logit; minus infinity if there is none above it.
static float largestOf(const float *logits, size_t n) {
  // Independent lanes, so that the compiler can use vectors.
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, -INFINITY);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j)
      lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
  for (; i < n; ++i)
    lanes[0] = logits[i] > lanes[0] ? logits[i] : lanes[0];
  return *std::max_element(lanes, lanes + kLanes);
}

int32_t sparkc::likeliest(const float *logits, size_t n) {
  float largest = largestOf(logits, n);
  if (largest == -INFINITY)
    return -1;
  return static_cast<int32_t>(std::find(logits, logits + n, largest) - logits);
}

/// exp(x) for x <= 0; 0 below -80 and for what is not a number. Its error is
/// below 3e-7 of the value.
static inline float exponential(float x) {
  constexpr float kRound = 12582912.0f; // 1.5 * 2^23: adding it rounds
  float clamped = x > -80.0f ? x : -80.0f;
  float whole = clamped * 1.44269504f + kRound;
  uint32_t bits;
  std::memcpy(&bits, &whole, sizeof bits);
  float power = whole - kRound;
  float r = clamped - power * 0.693359375f; // ln 2 in two parts
  r = r + power * 2.12194440e-4f;
  float p = 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // The low bits of `whole` hold the power of two.
  uint32_t scaleBits = (bits + 127u) << 23;
  float scale;
  std::memcpy(&scale, &scaleBits, sizeof scale);
  return x > -80.0f ? p * scale : 0.0f;
}

/// Unsigned numbers in the order of the floats; 0 for what is not a number.
static inline uint32_t keyOf(float logit) {
  uint32_t bits;
  logit += 0.0f; // minus zero is zero
  std::memcpy(&bits, &logit, sizeof bits);
  // Negative: all bits turn over; positive: the sign. Without a branch, since
  // signs are hard to predict.
  uint32_t key = bits ^ ((0u - (bits >> 31)) | 0x80000000u);
  return logit == logit ? key : 0;
}

bool Sampler::check(const SamplerOptions &options, std::string &error) {
  if (!(options.temperature >= 0 && options.temperature <= 1e6))
    error = "the temperature must be in 0 .. 1000000";
  else if (!(options.topP >= 0 && options.topP <= 1))
    error = "top-p must be in 0 .. 1";
  else
    return true;
  return false;
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
uint64_t Sampler::draw() {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint64_t Sampler::weigh(const float *logits, size_t n, float largest) {
  exponentials.resize(n);
  weights.resize(n);
  const auto inverse =
      static_cast<float>(1.0 / std::max(options.temperature, 1e-30));
  float *e = exponentials.data();
  for (size_t i = 0; i < n; ++i)
    e[i] = exponential((logits[i] - largest) * inverse);
  uint64_t total = 0;
  for (size_t i = 0; i < n; ++i) {
    weights[i] = static_cast<uint64_t>(
        static_cast<int64_t>(e[i] * 1099511627776.0f)); // 2^40
    total += weights[i];
  }
  return total;
}

template <typename Measure>
bool Sampler::keepUntil(const float *logits, size_t n, uint64_t target,
                        Measure measure) {
  // First the bucket of logits in which the target is reached ...
  constexpr unsigned kShift = 20;
  sums.assign(size_t(1) << (32 - kShift), 0);
  for (size_t i = 0; i < n; ++i)
    sums[keyOf(logits[i]) >> kShift] += measure(i);
  uint64_t sum = 0;
  uint32_t last = static_cast<uint32_t>(sums.size());
  while (last > 0 && sum < target)
    sum += sums[--last];
  if (sum < target)
    return false;
  sum -= sums[last];
  kept.clear();
  for (size_t i = 0; i < n; ++i)
    if (uint32_t key = keyOf(logits[i]); key >> kShift == last)
      kept.push_back({key, static_cast<uint32_t>(i)});
  // ... then the token in it. What stands before `low` does not suffice, with
  // what stands before `high` it does.
  auto low = kept.begin(), high = kept.end();
  while (high - low > 1) {
    auto middle = low + (high - low) / 2;
    std::nth_element(low, middle, high, [](const Item &a, const Item &b) {
      return a.key != b.key ? a.key > b.key : a.id < b.id;
    });
    uint64_t more = 0;
    for (auto it = low; it != middle; ++it)
      more += measure(it->id);
    if (sum + more >= target) {
      high = middle;
    } else {
      sum += more;
      low = middle;
    }
  }
  const Item end = *low;
  kept.clear();
  for (size_t i = 0; i < n; ++i) {
    auto id = static_cast<uint32_t>(i);
    uint32_t key = keyOf(logits[i]);
    if (key > end.key || (key == end.key && id <= end.id))
      kept.push_back({key, id});
  }
  return true;
}

int32_t Sampler::sample(const float *logits, size_t n) {
  const float largest = largestOf(logits, n);
  if (options.temperature == 0 || !std::isfinite(largest))
    return likeliest(logits, n);
  uint64_t total = weigh(logits, n, largest);
  auto weightOf = [this](size_t i) { return weights[i]; };
  auto sumOfKept = [this] {
    uint64_t sum = 0;
    for (const Item &item : kept)
      sum += weights[item.id];
    return sum;
  };

  bool all = true;
  if (options.topK != 0 && options.topK < n &&
      keepUntil(logits, n, options.topK, [](size_t) { return uint64_t(1); })) {
    all = false;
    total = sumOfKept();
  }
  if (options.topP < 1) {
    // What top-k dropped comes after all that it kept, so that its weights
    // are never reached.
    auto target =
        static_cast<uint64_t>(std::ceil(options.topP * double(total)));
    all &=
        !keepUntil(logits, n, std::clamp<uint64_t>(target, 1, total), weightOf);
    total = all ? total : sumOfKept();
  }
  auto at = static_cast<uint64_t>(
      static_cast<unsigned __int128>(draw()) * total >> 64);
  if (all) {
    for (size_t i = 0; i < n; at -= weights[i++])
      if (at < weights[i])
        return static_cast<int32_t>(i);
  } else {
    for (const Item &item : kept) {
      if (at < weights[item.id])
        return static_cast<int32_t>(item.id);
      at -= weights[item.id];
    }
  }
  return likeliest(logits, n); // not reached: at < total
}
