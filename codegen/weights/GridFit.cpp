//===- GridFit.cpp - Fitting groups of weights to a grid ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sixteen groups side by side, one a lane: no sum ever crosses lanes, so the
// same body gives the same bits in vectors of 4, 8 or 16 floats. This file is
// compiled without contraction into fused multiply-adds for the same reason.
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Grid.h"
#include "codegen/weights/Half.h"
#include <algorithm>

#define SPARKC_INLINE inline __attribute__((always_inline))

namespace sparkc {

namespace {

/// Adding and subtracting it rounds |x| < 2^22 to an integer, ties to even.
constexpr float kRound = 12582912.0f;
/// No scale in the search is smaller: half the smallest float16.
constexpr float kMinScale = 0x1p-25f;
constexpr int kLanes = 16;
constexpr int kMaxGroup = 128;

/// Scales tried, as a share of the one that spans the range: 1 first (of equals
/// the first wins), one that is larger, then ever smaller ones. The more codes,
/// the less clipping pays, and the more how the weights happen to meet them.
constexpr int kShares = 16;
SPARKC_INLINE float shareOf(int i, int bits) {
  float step = bits <= 4   ? 0.032f
               : bits == 5 ? 0.028f
               : bits == 6 ? 0.02f
                           : 0.003f;
  return i == 0 ? 1.0f : i == 1 ? 1.0f + step : 1.0f - step * float(i - 1);
}

template <int W> struct Vector {
  typedef float F __attribute__((vector_size(4 * W), aligned(4)));
  typedef int32_t I __attribute__((vector_size(4 * W), aligned(4)));
};
template <int W> using F = typename Vector<W>::F;
template <int W> using I = typename Vector<W>::I;

template <int W> SPARKC_INLINE F<W> splat(float x) { return F<W>{} + x; }
template <int W> SPARKC_INLINE F<W> load(const float *p) {
  return *reinterpret_cast<const F<W> *>(p);
}
template <int W> SPARKC_INLINE void store(float *p, F<W> x) {
  *reinterpret_cast<F<W> *>(p) = x;
}
template <int W> SPARKC_INLINE F<W> min(F<W> a, F<W> b) {
  return a < b ? a : b;
}
template <int W> SPARKC_INLINE F<W> max(F<W> a, F<W> b) {
  return a > b ? a : b;
}
template <int W> SPARKC_INLINE F<W> round(F<W> x) {
  return (x + kRound) - kRound;
}

/// The factors f of the squared errors. Without calibration large weights count
/// for more, 1 + |w| / mean |w|: they tend to be those that matter. (On text of
/// the small model's training this takes 4 % off the KL divergence of 4 bits.)
template <int W>
SPARKC_INLINE void setFactors(const float *w, const float *importance,
                              int group, float *factors) {
  F<W> sum = {};
  for (int k = 0; k < group; ++k) {
    F<W> x = load<W>(w + kLanes * k);
    sum += max<W>(x, -x);
  }
  F<W> mean = max<W>(sum / float(group), splat<W>(0x1p-126f));
  for (int k = 0; k < group; ++k) {
    F<W> x = load<W>(w + kLanes * k);
    store<W>(factors + W * k, importance ? splat<W>(importance[k])
                                         : 1.0f + max<W>(x, -x) / mean);
  }
}

/// Sums over a group for one scale s and zero z, with e = w - s*d the error
/// and d = code - zero: error = sum f*e^2, slope = sum f*e*d, power =
/// sum f*d^2. The best scale for these codes is s + slope/power, its error is
/// error - slope^2/power.
template <int W> struct Sums { F<W> error, slope, power; };

template <int W, int N>
SPARKC_INLINE void evaluate(const float *w, const float *factors, int group,
                            float maxCode, F<W> s, const F<W> (&z)[N],
                            Sums<W> (&sums)[N]) {
  F<W> inverse = 1.0f / s, low[N], high[N];
  for (int i = 0; i < N; ++i) {
    low[i] = -z[i];
    high[i] = maxCode - z[i];
    sums[i].error = sums[i].slope = sums[i].power = splat<W>(0);
  }
  for (int k = 0; k < group; ++k) {
    F<W> x = load<W>(w + kLanes * k), f = load<W>(factors + W * k);
    F<W> n = round<W>(x * inverse);
    for (int i = 0; i < N; ++i) {
      F<W> d = min<W>(max<W>(n, low[i]), high[i]);
      F<W> e = x - s * d;
      F<W> fe = f * e;
      sums[i].error += fe * e;
      sums[i].slope += fe * d;
      sums[i].power += f * d * d;
    }
  }
}

/// The best seen so far, per lane.
template <int W> struct Best {
  F<W> error, s, z;
  SPARKC_INLINE void take(I<W> better, F<W> newError, F<W> newS, F<W> newZ) {
    error = better ? newError : error;
    s = better ? newS : s;
    z = better ? newZ : z;
  }
};

/// Takes the candidates whose error, after refitting the scale, is less.
template <int W, int N>
SPARKC_INLINE void takeRefitted(Best<W> &best, F<W> s, const F<W> (&z)[N],
                                const Sums<W> (&sums)[N]) {
  for (int i = 0; i < N; ++i) {
    F<W> power = max<W>(sums[i].power, splat<W>(1e-30f));
    F<W> shift = sums[i].slope / power;
    F<W> error = sums[i].error - shift * sums[i].slope;
    F<W> refitted = max<W>(s + shift, splat<W>(kMinScale));
    best.take(error < best.error, error, refitted, z[i]);
  }
}

/// The zero point that clips as much below as above.
template <int W>
SPARKC_INLINE F<W> balancedZero(float maxCode, F<W> low, F<W> high, F<W> s) {
  return round<W>((maxCode - (low + high) / s) * 0.5f);
}

/// The zero points to try: `middle` first, then its neighbours; with a
/// symmetric grid the two that stand for either sign of the scale.
template <int W, int N, bool Symmetric>
SPARKC_INLINE void zeroCandidates(F<W> (&z)[N], float maxCode, float half,
                                  F<W> middle) {
  for (int c = 0; c < N; ++c)
    z[c] =
        Symmetric
            ? splat<W>(half - c)
            : max<W>(min<W>(middle + float((c + 1) % 3 - 1), splat<W>(maxCode)),
                     splat<W>(0));
}

template <int W> SPARKC_INLINE F<W> toScale(F<W> s) {
  float lanes[W];
  store<W>(lanes, s);
  for (int l = 0; l < W; ++l)
    lanes[l] = floatFromF16(f16FromFloat(std::min(lanes[l], kMaxScale)));
  return load<W>(lanes);
}

template <int W, bool Symmetric>
SPARKC_INLINE void fitLanes(const GridSpec &grid, const float *w,
                            const float *importance, uint8_t *codes,
                            uint16_t *scales, uint8_t *zeros, float *noise) {
  // With a fixed zero of half = 2^(bits-1), zero half-1 and a positive scale
  // stand for a negative scale: codes and sign are mirrored at the end.
  constexpr int N = Symmetric ? 2 : 3;
  const int group = grid.group;
  const float q = grid.maxCode(), half = (grid.maxCode() + 1) / 2;
  float factors[W * kMaxGroup];
  setFactors<W>(w, importance, group, factors);
  F<W> low = {}, high = {};
  for (int k = 0; k < group; ++k) {
    low = min<W>(low, load<W>(w + kLanes * k));
    high = max<W>(high, load<W>(w + kLanes * k));
  }
  F<W> largest = max<W>(-low, high);
  F<W> full = Symmetric ? largest / (q * 0.5f) : (high - low) / q;

  Best<W> best = {splat<W>(__builtin_inff()), splat<W>(1), splat<W>(half)};
  F<W> z[N];
  Sums<W> sums[N];
  for (int i = 0; i < kShares; ++i) {
    F<W> s = max<W>(full * shareOf(i, grid.bits), splat<W>(kMinScale));
    zeroCandidates<W, N, Symmetric>(z, q, half,
                                    balancedZero<W>(q, low, high, s));
    evaluate<W, N>(w, factors, group, q, s, z, sums);
    takeRefitted<W, N>(best, s, z, sums);
  }
  // From here on scales are what float16 can hold, and errors are true. Plain
  // rounding competes, and so do steps of the largest weight: groups of one
  // value (or of -c, 0, c) are exact with those.
  Best<W> exact = {splat<W>(__builtin_inff()), splat<W>(0), best.z};
  for (int plain = 0; plain < 2; ++plain) {
    F<W> s = toScale<W>(plain ? full : largest);
    F<W> safe = max<W>(s, splat<W>(kMinScale));
    zeroCandidates<W, N, Symmetric>(z, q, half,
                                    balancedZero<W>(q, low, high, safe));
    for (int c = 0; !Symmetric && !plain && c < N; ++c)
      z[c] = splat<W>(c == 0 ? 0 : c == 1 ? half : q);
    evaluate<W, N>(w, factors, group, q, safe, z, sums);
    for (int c = 0; c < N; ++c)
      exact.take((sums[c].error < exact.error) & (s > 0), sums[c].error, s,
                 z[c]);
  }

  F<W> zero = best.z;
  F<W> s = toScale<W>(best.s);
  for (int pass = 0; pass < 3; ++pass) {
    F<W> safe = max<W>(s, splat<W>(kMinScale));
    zeroCandidates<W, N, Symmetric>(z, q, half, zero);
    evaluate<W, N>(w, factors, group, q, safe, z, sums);
    Best<W> here = {splat<W>(__builtin_inff()), s, zero};
    F<W> shift = {};
    for (int c = 0; c < N; ++c) {
      I<W> better = sums[c].error < here.error;
      F<W> power = max<W>(sums[c].power, splat<W>(1e-30f));
      shift = better ? sums[c].slope / power : shift;
      here.take(better, sums[c].error, s, z[c]);
    }
    // A scale below float16 means zeros, whatever the sums say.
    exact.take((here.error < exact.error) & (s > 0), here.error, s, here.z);
    zero = here.z;
    s = toScale<W>(max<W>(s + shift, splat<W>(0)));
  }

  // Codes of the winner; a scale of 0 holds zeros only.
  I<W> empty = exact.s == 0;
  s = exact.s;
  zero = empty ? splat<W>(Symmetric ? half : 0) : exact.z;
  F<W> inverse = 1.0f / (empty ? splat<W>(1) : s), error = {};
  for (int k = 0; k < group; ++k) {
    F<W> x = load<W>(w + kLanes * k);
    F<W> d = min<W>(max<W>(round<W>(x * inverse), -zero), q - zero);
    d = empty ? splat<W>(0) : d;
    F<W> e = x - s * d;
    error += e * e;
    F<W> code = zero + d;
    if (Symmetric)
      code = zero == half ? code : half - d;
    float lanes[W];
    store<W>(lanes, code);
    for (int l = 0; l < W; ++l)
      codes[kLanes * k + l] = static_cast<uint8_t>(static_cast<int>(lanes[l]));
  }
  if (Symmetric) {
    s = zero == half ? s : -s;
    zero = splat<W>(half);
  }
  for (int l = 0; l < W; ++l) {
    scales[l] = f16FromFloat(s[l]);
    zeros[l] = static_cast<uint8_t>(static_cast<int>(zero[l]));
    noise[l] = error[l];
  }
}

template <int W>
SPARKC_INLINE void fitAll(const GridSpec &grid, const float *w,
                          const float *importance, uint8_t *codes,
                          uint16_t *scales, uint8_t *zeros, float *noise) {
  for (int l = 0; l < kLanes; l += W)
    if (grid.symmetric)
      fitLanes<W, true>(grid, w + l, importance, codes + l, scales + l,
                        zeros + l, noise + l);
    else
      fitLanes<W, false>(grid, w + l, importance, codes + l, scales + l,
                         zeros + l, noise + l);
}

using FitFunction = void (*)(const GridSpec &, const float *, const float *,
                             uint8_t *, uint16_t *, uint8_t *, float *);

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void
fit512(const GridSpec &grid, const float *w, const float *importance,
       uint8_t *codes, uint16_t *scales, uint8_t *zeros, float *noise) {
  fitAll<16>(grid, w, importance, codes, scales, zeros, noise);
}

__attribute__((target("avx2"))) void
fit256(const GridSpec &grid, const float *w, const float *importance,
       uint8_t *codes, uint16_t *scales, uint8_t *zeros, float *noise) {
  fitAll<8>(grid, w, importance, codes, scales, zeros, noise);
}

void fit128(const GridSpec &grid, const float *w, const float *importance,
            uint8_t *codes, uint16_t *scales, uint8_t *zeros, float *noise) {
  fitAll<4>(grid, w, importance, codes, scales, zeros, noise);
}

FitFunction chooseFit(int maxLanes) {
  if (maxLanes >= 16 && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    return fit512;
  if (maxLanes >= 8 && __builtin_cpu_supports("avx2"))
    return fit256;
  return fit128;
}

} // namespace

namespace detail {
void fitGroups16With(int maxLanes, const GridSpec &grid, const float *weights,
                     const float *importance, uint8_t *codes, uint16_t *scales,
                     uint8_t *zeros, float *noise) {
  chooseFit(maxLanes)(grid, weights, importance, codes, scales, zeros, noise);
}
} // namespace detail

void fitGroups16(const GridSpec &grid, const float *weights,
                 const float *importance, uint8_t *codes, uint16_t *scales,
                 uint8_t *zeros, float *noise) {
  static const FitFunction fit = chooseFit(16);
  fit(grid, weights, importance, codes, scales, zeros, noise);
}

} // namespace sparkc
