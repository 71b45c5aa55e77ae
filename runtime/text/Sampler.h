//===- Sampler.h - Choosing the next token ----------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_SAMPLER_H
#define SPARKC_RUNTIME_TEXT_SAMPLER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sparkc {

struct SamplerOptions {
  /// 0: the likeliest token, always. Else logits are divided by it.
  double temperature = 1.0;
  /// Keep the fewest likeliest tokens whose probabilities reach this sum, at
  /// least one. 1: all.
  double topP = 0.95;
  /// Keep the k likeliest tokens. 0: all.
  uint32_t topK = 0;
  uint64_t seed = 0;
};

/// Chooses tokens from logits: temperature, then top-k, then top-p over the
/// probabilities of what top-k kept (the order of Hugging Face's generate).
/// Of tokens with equal logits the lower id is the likelier one.
///
/// The same seed and logits give the same tokens on every machine. Each token
/// takes one draw r (none at temperature 0) of SplitMix64 started at the seed;
/// weights are exp((logit - largest) / temperature) in basic float arithmetic,
/// as integers in units of 2^-40; the token is the one, in order of ids, in
/// whose share of their sum s the number r * s / 2^64 falls. So a token less
/// than 2^-40 as likely as the likeliest is never chosen.
///
/// Logits that are not numbers count as minus infinity. Nothing is sorted: the
/// time is that of a few passes over the logits (131072 take about 0.5 ms).
class Sampler {
public:
  /// False, with one line in `error`, for options out of range.
  static bool check(const SamplerOptions &options, std::string &error);

  explicit Sampler(const SamplerOptions &options)
      : options(options), state(options.seed) {}

  /// Chooses from logits [n]; -1 if none of them is above minus infinity (a
  /// model that computed no numbers must not look as if it spoke).
  int32_t sample(const float *logits, size_t n);

private:
  struct Item {
    uint32_t key; ///< in the order of the logits
    uint32_t id;
  };

  uint64_t draw();
  /// Sets `weights`; returns their sum.
  uint64_t weigh(const float *logits, size_t n, float largest);
  /// Sets `kept` to the fewest likeliest tokens whose measures reach `target`
  /// > 0, by id; false if all together do not.
  template <typename Measure>
  bool keepUntil(const float *logits, size_t n, uint64_t target,
                 Measure measure);

  SamplerOptions options;
  uint64_t state;
  // Kept from call to call, to save allocating them.
  std::vector<float> exponentials;
  std::vector<uint64_t> weights, sums;
  std::vector<Item> kept;
};

/// The likeliest token, the lowest id of equals; -1 if there is none.
int32_t likeliest(const float *logits, size_t n);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_SAMPLER_H
