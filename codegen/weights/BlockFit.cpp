//===- BlockFit.cpp - Fitting weights to GGUF's blocks --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled without contraction into fused multiply-adds, so that every machine
// gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/BlockFit.h"
#include "codegen/weights/Half.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <cmath>

using namespace sparkc;

/// Adding and subtracting it rounds |x| < 2^22 to an integer, ties to even.
static constexpr float kRound = 12582912.0f;
static float roundEven(float x) { return (x + kRound) - kRound; }

/// Scales tried, as a share of the one that spans the group's weights.
static constexpr int kShares = 14;
static float shareOf(int i, int bits) {
  float step = bits <= 4 ? 0.03f : bits == 5 ? 0.025f : 0.018f;
  return 1.0f + step * float(2 - i);
}

namespace {

/// A group: w ~ scale * (code - zero) + minimum.
struct Line {
  float scale = 0, minimum = 0;
};

/// The weights of a group and the factors of their squared errors.
struct Group {
  const float *w;
  float factors[32];
  int size;
  float highest; ///< code
};

/// Weighted sums for least squares over codes.
struct Sums {
  double f = 0, c = 0, cc = 0, w = 0, wc = 0;
  void add(float factor, float code, float weight) {
    double fc = double(factor) * code;
    f += factor;
    c += fc;
    cc += fc * code;
    w += double(factor) * weight;
    wc += fc * weight;
  }
};

} // namespace

static void setFactors(const float *importance, Group &group) {
  float mean = 0;
  for (int i = 0; i < group.size; ++i)
    mean += std::fabs(group.w[i]);
  mean = std::max(mean / float(group.size), 0x1p-126f);
  for (int i = 0; i < group.size; ++i)
    group.factors[i] =
        importance ? importance[i] : 1.0f + std::fabs(group.w[i]) / mean;
}

/// The code in [0, highest] of a weight, given 1/scale.
static float codeOf(float w, float minimum, float inverse, float highest) {
  return std::clamp(roundEven((w - minimum) * inverse), 0.0f, highest);
}

static float inverseOf(float scale) {
  return std::fabs(scale) < 0x1p-100f ? 0.0f : 1.0f / scale;
}

/// Squared error of the line, and the sums of its codes.
static double errorOf(const Group &group, Line line, Sums &sums) {
  float inverse = inverseOf(line.scale);
  double error = 0;
  for (int i = 0; i < group.size; ++i) {
    float code = codeOf(group.w[i], line.minimum, inverse, group.highest);
    sums.add(group.factors[i], code, group.w[i]);
    float e = line.scale * code + line.minimum - group.w[i];
    error += double(group.factors[i]) * e * e;
  }
  return error;
}

/// Scale and minimum by least squares; the minimum stays at or below `most`.
static Line refit(const Sums &s, float most) {
  double det = s.f * s.cc - s.c * s.c;
  Line line;
  if (det > 1e-12 * s.f * s.cc) {
    line.scale = float((s.f * s.wc - s.c * s.w) / det);
    line.minimum = float((s.cc * s.w - s.c * s.wc) / det);
  }
  if (!(line.minimum <= most)) {
    line.minimum = most;
    line.scale = s.cc > 0 ? float((s.wc - double(most) * s.c) / s.cc) : 0;
  }
  return line;
}

/// A group with a minimum, at or below `most`.
static Line fitLine(const Group &group, float most, int bits) {
  auto [lowest, highest] =
      std::minmax_element(group.w, group.w + group.size);
  float low = std::min(*lowest, most), span = *highest - low;
  Line best;
  best.minimum = low;
  double bestError = -1;
  for (int i = 0; i < kShares; ++i) {
    Line line{span / group.highest * shareOf(i, bits), low};
    for (int pass = 0; pass < 3; ++pass) {
      Sums sums;
      double error = errorOf(group, line, sums);
      if (line.scale >= 0 && (bestError < 0 || error < bestError)) {
        best = line;
        bestError = error;
      }
      line = refit(sums, most);
    }
  }
  return best;
}

/// A group around zero: a scale of either sign, so that the larger end gets
/// the code that only one end has.
static float fitScale(const Group &group, int bits) {
  float largest = 0;
  for (int i = 0; i < group.size; ++i)
    if (std::fabs(group.w[i]) > std::fabs(largest))
      largest = group.w[i];
  float half = (group.highest + 1) / 2, best = 0;
  double bestError = -1;
  for (int i = 0; i < kShares; ++i) {
    float scale = -largest / half * shareOf(i, bits);
    for (int pass = 0; pass < 2; ++pass) {
      float inverse = inverseOf(scale);
      double error = 0, wc = 0, cc = 0;
      for (int k = 0; k < group.size; ++k) {
        float code =
            codeOf(group.w[k], -half * scale, inverse, group.highest) - half;
        double fc = double(group.factors[k]) * code;
        wc += fc * group.w[k];
        cc += fc * code;
        float e = scale * code - group.w[k];
        error += double(group.factors[k]) * e * e;
      }
      if (bestError < 0 || error < bestError) {
        best = scale;
        bestError = error;
      }
      if (cc > 0)
        scale = float(wc / cc);
    }
  }
  return best;
}

namespace {

/// One block under construction.
class Fit {
public:
  Fit(const BlockFormat &format, const float *w, const float *importance,
      BlockCodes &out)
      : format(format), w(w), out(out), bits(format.grid.bits) {
    for (int g = 0; g < format.groups(); ++g) {
      groups[g].w = w + g * format.grid.group;
      groups[g].size = format.grid.group;
      groups[g].highest = float((1 << bits) - 1);
      setFactors(importance ? importance + g * format.grid.group : nullptr,
                 groups[g]);
    }
  }
  void minimum();
  void superMinimum();
  void super();

private:
  void chooseCodes();
  void fitFactors();

  const BlockFormat &format;
  const float *w;
  BlockCodes &out;
  int bits;
  Group groups[16];
};

} // namespace

/// Codes for the scales and minima that the block has now.
void Fit::chooseCodes() {
  float d = floatFromF16(out.scale), e = floatFromF16(out.minimum);
  float half = float(1 << (bits - 1));
  for (int g = 0; g < format.groups(); ++g) {
    float scale = d, minimum = e;
    if (format.grid.form == ScaleForm::SuperMinimum) {
      scale *= out.subScales[g];
      minimum *= out.subMinima[g];
    } else if (format.grid.form == ScaleForm::Super) {
      scale *= static_cast<int8_t>(out.subScales[g]);
      minimum = -half * scale;
    }
    float inverse = inverseOf(scale);
    uint8_t *codes = out.codes + g * format.grid.group;
    for (int i = 0; i < groups[g].size; ++i)
      codes[i] = uint8_t(
          inverse ? codeOf(groups[g].w[i], minimum, inverse, groups[g].highest)
          : format.grid.form == ScaleForm::Super ? half
                                                 : 0.0f);
  }
}

/// The factors of scales and minima by least squares, all else fixed.
void Fit::fitFactors() {
  // w ~ d * p + e * q
  double pp = 0, pq = 0, qq = 0, wp = 0, wq = 0;
  bool super = format.grid.form == ScaleForm::Super;
  int half = super ? 1 << (bits - 1) : 0;
  for (int g = 0; g < format.groups(); ++g) {
    int u = super ? static_cast<int8_t>(out.subScales[g]) : out.subScales[g];
    double q = super ? 0 : out.subMinima[g];
    const uint8_t *codes = out.codes + g * format.grid.group;
    for (int i = 0; i < groups[g].size; ++i) {
      double p = double(u) * (codes[i] - half), f = groups[g].factors[i];
      pp += f * p * p;
      pq += f * p * q;
      qq += f * q * q;
      wp += f * p * groups[g].w[i];
      wq += f * q * groups[g].w[i];
    }
  }
  double det = pp * qq - pq * pq;
  if (det > 1e-9 * pp * qq) {
    double d = (qq * wp - pq * wq) / det, e = (pp * wq - pq * wp) / det;
    if (d > 0 && e < 0) {
      out.scale = f16FromFloat(float(d));
      out.minimum = f16FromFloat(float(e));
    }
  } else if (pp > 0 && qq == 0 && wp / pp != 0) {
    out.scale = f16FromFloat(float(wp / pp));
  }
}

void Fit::minimum() {
  Line line = fitLine(groups[0], 65504.0f, bits);
  out.scale = f16FromFloat(line.scale);
  out.minimum = f16FromFloat(line.minimum);
  chooseCodes();
}

void Fit::superMinimum() {
  Line lines[16];
  float scale = 0, minimum = 0;
  for (int g = 0; g < format.groups(); ++g) {
    lines[g] = fitLine(groups[g], 0.0f, bits);
    scale = std::max(scale, lines[g].scale);
    minimum = std::min(minimum, lines[g].minimum);
  }
  out.scale = f16FromFloat(scale / 63);
  out.minimum = f16FromFloat(minimum / 63);
  for (int pass = 0; pass < 3; ++pass) {
    float d = inverseOf(floatFromF16(out.scale));
    float e = inverseOf(floatFromF16(out.minimum));
    for (int g = 0; g < format.groups(); ++g) {
      out.subScales[g] =
          uint8_t(std::clamp(roundEven(lines[g].scale * d), 0.0f, 63.0f));
      out.subMinima[g] =
          uint8_t(std::clamp(roundEven(lines[g].minimum * e), 0.0f, 63.0f));
    }
    chooseCodes();
    if (pass == 2)
      break;
    fitFactors();
    chooseCodes();
  }
}

void Fit::super() {
  float scales[16], largest = 0;
  for (int g = 0; g < format.groups(); ++g) {
    scales[g] = fitScale(groups[g], bits);
    if (std::fabs(scales[g]) > std::fabs(largest))
      largest = scales[g];
  }
  out.scale = f16FromFloat(-largest / 128);
  for (int pass = 0; pass < 3; ++pass) {
    float d = inverseOf(floatFromF16(out.scale));
    for (int g = 0; g < format.groups(); ++g)
      out.subScales[g] = uint8_t(
          int(std::clamp(roundEven(scales[g] * d), -128.0f, 127.0f)));
    chooseCodes();
    if (pass == 2)
      break;
    fitFactors();
  }
}

void sparkc::fitBlock(const BlockFormat &format, const float *weights,
                      const float *importance, BlockCodes &out) {
  out = {};
  Fit fit(format, weights, importance, out);
  switch (format.grid.form) {
  case ScaleForm::Zero:
  case ScaleForm::Symmetric:
    llvm_unreachable("grids with zero points are fitted by GridFit");
  case ScaleForm::Minimum:
    return fit.minimum();
  case ScaleForm::SuperMinimum:
    return fit.superMinimum();
  case ScaleForm::Super:
    return fit.super();
  }
}
