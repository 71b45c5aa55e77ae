//===- GridTest.cpp - Fitting groups to grids -----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Grid.h"
#include "codegen/weights/Half.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace sparkc;

namespace {
struct Fit {
  Fit(const GridSpec &grid, const std::vector<float> &weights,
      const float *importance = nullptr, int maxLanes = 16)
      : grid(grid), weights(weights), codes(weights.size()) {
    detail::fitGroups16With(maxLanes, grid, weights.data(), importance,
                            codes.data(), scales, zeros, noise);
  }
  float value(int k, int lane) const {
    return floatFromF16(scales[lane]) *
           float(int(codes[16 * k + lane]) - int(zeros[lane]));
  }
  double error(int lane, const float *importance = nullptr) const {
    double sum = 0;
    for (int k = 0; k < grid.group; ++k)
      sum += (importance ? importance[k] : 1) * square(k, lane);
    return sum;
  }
  double error(int lane, const std::vector<double> &factors) const {
    double sum = 0;
    for (int k = 0; k < grid.group; ++k)
      sum += factors[k] * square(k, lane);
    return sum;
  }
  double square(int k, int lane) const {
    double e = double(weights[16 * k + lane]) - value(k, lane);
    return e * e;
  }
  bool operator==(const Fit &o) const {
    return codes == o.codes && std::equal(scales, scales + 16, o.scales) &&
           std::equal(zeros, zeros + 16, o.zeros) &&
           std::equal(noise, noise + 16, o.noise);
  }
  GridSpec grid;
  std::vector<float> weights;
  std::vector<uint8_t> codes;
  uint16_t scales[16];
  uint8_t zeros[16];
  float noise[16];
};

std::vector<float> randomGroups(int group, unsigned seed, float scale = 0.02f) {
  std::mt19937 rng(seed);
  std::student_t_distribution<float> heavy(5);
  std::vector<float> weights(16 * group);
  for (float &w : weights)
    w = scale * heavy(rng);
  return weights;
}

/// What a fit without importance weighs squared errors by.
std::vector<double> magnitudes(const GridSpec &grid,
                               const std::vector<float> &w, int lane) {
  double mean = 0;
  for (int k = 0; k < grid.group; ++k)
    mean += std::fabs(w[16 * k + lane]) / grid.group;
  std::vector<double> factors;
  for (int k = 0; k < grid.group; ++k)
    factors.push_back(1 + std::fabs(w[16 * k + lane]) / mean);
  return factors;
}

/// Round to nearest without a search: the scale is range over codes.
double plainError(const GridSpec &grid, const std::vector<float> &w, int lane,
                  const std::vector<double> &factors) {
  double low = 0, high = 0, sum = 0, q = grid.maxCode();
  for (int k = 0; k < grid.group; ++k) {
    low = std::min<double>(low, w[16 * k + lane]);
    high = std::max<double>(high, w[16 * k + lane]);
  }
  double s = (high - low) / q, z = std::nearbyint(-low / s);
  if (grid.symmetric) {
    s = 2 * std::max(-low, high) / q;
    z = (q + 1) / 2;
  }
  s = floatFromF16(f16FromFloat(s));
  for (int k = 0; k < grid.group; ++k) {
    double d = std::nearbyint(w[16 * k + lane] / s);
    double e = w[16 * k + lane] - s * std::min(std::max(d, -z), q - z);
    sum += factors[k] * e * e;
  }
  return sum;
}

/// The best over all zero points and finely spaced scales.
double bestError(const GridSpec &grid, const std::vector<float> &w, int lane,
                 const std::vector<double> &factors) {
  double low = 0, high = 0, q = grid.maxCode(), best = 1e300;
  for (int k = 0; k < grid.group; ++k) {
    low = std::min<double>(low, w[16 * k + lane]);
    high = std::max<double>(high, w[16 * k + lane]);
  }
  for (double share = 0.4; share < 1.1; share += 0.01)
    for (double z = 0; z <= q; ++z) {
      double s = share * (high - low) / q, sum = 0, slope = 0, power = 0;
      for (int k = 0; k < grid.group; ++k) {
        double x = w[16 * k + lane];
        double d = std::min(std::max(std::nearbyint(x / s), -z), q - z);
        sum += factors[k] * (x - s * d) * (x - s * d);
        slope += factors[k] * (x - s * d) * d;
        power += factors[k] * d * d;
      }
      best = std::min(best, sum - (power > 0 ? slope * slope / power : 0));
    }
  return best;
}

void forAllGrids(std::function<void(const GridSpec &)> f) {
  for (int bits : {4, 5, 6, 8})
    for (int group : {32, 64, 128})
      for (bool symmetric : {false, true})
        f({bits, group, symmetric});
}
} // namespace

TEST(WeightScheme, Parses) {
  auto parse = [](llvm::StringRef text) {
    auto scheme = WeightScheme::parse(text);
    return scheme ? scheme->str() : llvm::toString(scheme.takeError());
  };
  EXPECT_EQ(parse("q4"), "q4:g64");
  EXPECT_EQ(parse("q4:g32"), "q4:g32");
  EXPECT_EQ(parse("q8:sym:g128"), "q8:g128:sym");
  EXPECT_EQ(parse("q5:g64:sym"), "q5:g64:sym");
  for (const char *name : {"q4_1", "q5_1", "q4k", "q5k", "q6k"})
    EXPECT_EQ(parse(name), name);
  EXPECT_EQ(parse("q4_0"), "q4:g32:sym");
  EXPECT_EQ(parse("q5_0"), "q5:g32:sym");
  EXPECT_EQ(parse("q8_0"), "q8:g32:sym");
  EXPECT_EQ(parse("f32"), "f32");
  EXPECT_EQ(parse("bf16"), "bf16");
  std::string unknown =
      "; expected f32, bf16, q4, q5, q6 or q8, grids also with :g32, :g64, "
      ":g128 and :sym; or q4k, q5k, q6k, q4_0, q4_1, q5_0, q5_1, q8_0";
  for (const char *bad : {"q3", "", "Q4", "q4 ", "bf16:g64", ":g64", "q40"})
    EXPECT_EQ(parse(bad),
              "unknown weight scheme '" + std::string(bad) + "'" + unknown);
  EXPECT_EQ(parse("q4:g48"),
            "group of '48' in weight scheme 'q4:g48'; expected 32, 64 or 128");
  EXPECT_EQ(parse("q4:g"),
            "group of '' in weight scheme 'q4:g'; expected 32, 64 or 128");
  for (const char *bad : {"q4:", "q4:asym"})
    EXPECT_EQ(parse(bad).rfind("unknown part ':", 0), 0u) << parse(bad);
  EXPECT_EQ(parse("q4:g64:g32"), "second ':g32' in weight scheme 'q4:g64:g32'");
  EXPECT_EQ(parse("q4:sym:sym"), "second ':sym' in weight scheme 'q4:sym:sym'");
}

// Every vector width gives the same bits, so every machine does.
TEST(GridFit, SameOnEveryMachine) {
  forAllGrids([](const GridSpec &grid) {
    std::vector<float> weights = randomGroups(grid.group, grid.bits);
    std::vector<float> importance(grid.group);
    for (int k = 0; k < grid.group; ++k)
      importance[k] = 0.1f + (k * 7 % 13);
    const float *choices[] = {nullptr, importance.data()};
    for (const float *factors : choices) {
      Fit wide(grid, weights, factors, 16);
      EXPECT_TRUE(wide == Fit(grid, weights, factors, 8));
      EXPECT_TRUE(wide == Fit(grid, weights, factors, 4));
    }
  });
}

TEST(GridFit, LanesAreIndependent) {
  forAllGrids([](const GridSpec &grid) {
    std::vector<float> weights = randomGroups(grid.group, 9), shifted(weights);
    for (int k = 0; k < grid.group; ++k)
      for (int l = 0; l < 16; ++l)
        shifted[16 * k + l] = weights[16 * k + (l + 5) % 16];
    Fit a(grid, weights), b(grid, shifted);
    for (int l = 0; l < 16; ++l) {
      EXPECT_EQ(a.scales[(l + 5) % 16], b.scales[l]);
      EXPECT_EQ(a.noise[(l + 5) % 16], b.noise[l]);
    }
  });
}

// The fit is never worse than plain rounding, reports its own error, and at 4
// bits is as good as a search of everything to 0.05 dB: by squared errors where
// all weights matter alike, by the magnitudes' where nothing is known.
TEST(GridFit, ErrorIsNearTheLeastPossible) {
  const std::vector<float> ones(128, 1);
  forAllGrids([&](const GridSpec &grid) {
    for (bool alike : {true, false}) {
      double fitted = 0, plain = 0, best = 0;
      for (unsigned seed = 0; seed < 4; ++seed) {
        std::vector<float> weights = randomGroups(grid.group, seed);
        Fit fit(grid, weights, alike ? ones.data() : nullptr);
        for (int l = 0; l < 16; ++l) {
          std::vector<double> factors(grid.group, 1);
          if (!alike)
            factors = magnitudes(grid, weights, l);
          const double error = fit.error(l, factors);
          const double rounded = plainError(grid, weights, l, factors);
          EXPECT_NEAR(fit.noise[l], fit.error(l), 1e-4 * fit.error(l));
          EXPECT_LE(error, rounded * 1.002);
          fitted += error;
          plain += rounded;
          if (grid.bits == 4 && !grid.symmetric)
            best += bestError(grid, weights, l, factors);
          EXPECT_TRUE(!grid.symmetric || fit.zeros[l] == 1 << (grid.bits - 1));
        }
      }
      EXPECT_LT(fitted, plain * 0.97);
      if (best > 0) {
        EXPECT_LT(10 * std::log10(fitted / best), 0.05);
      }
    }
  });
}

TEST(GridFit, ImportanceMovesTheError) {
  forAllGrids([](const GridSpec &grid) {
    std::vector<float> weights = randomGroups(grid.group, 17);
    std::vector<float> importance(grid.group, 1);
    for (int k = 0; k < grid.group / 4; ++k)
      importance[k] = 100;
    Fit plain(grid, weights), weighted(grid, weights, importance.data());
    double a = 0, b = 0;
    for (int l = 0; l < 16; ++l) {
      a += plain.error(l, importance.data());
      b += weighted.error(l, importance.data());
    }
    EXPECT_LT(b, a * 0.99);
    Fit none(grid, weights, std::vector<float>(grid.group, 0).data());
    for (int l = 0; l < 16; ++l)
      EXPECT_TRUE(std::isfinite(none.error(l)));
  });
}

TEST(GridFit, ConstantGroups) {
  // Lane l: a constant that float16 holds; exact on every grid.
  const float values[16] = {0,      1,      -1,     0.02f, -0.02f, 65504,
                            -65504, 6e-8f,  -6e-8f, 0.5f,  3,      -7,
                            1e-3f,  -1e-3f, 100,    -1e-5f};
  forAllGrids([&](const GridSpec &grid) {
    std::vector<float> weights(16 * grid.group);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = floatFromF16(f16FromFloat(values[i % 16]));
    Fit fit(grid, weights);
    for (int l = 0; l < 16; ++l) {
      EXPECT_EQ(fit.noise[l], 0) << values[l];
      for (int k = 0; k < grid.group; ++k)
        ASSERT_EQ(fit.value(k, l), weights[l]);
    }
    EXPECT_EQ(fit.scales[0], 0);
    EXPECT_EQ(fit.codes[0], fit.zeros[0]);
  });
  // Signs of one size are exact too.
  forAllGrids([&](const GridSpec &grid) {
    std::vector<float> weights(16 * grid.group);
    for (int k = 0; k < grid.group; ++k)
      for (int l = 0; l < 16; ++l)
        weights[16 * k + l] = 0.75f * ((k * 5 + l) % 3 - 1);
    Fit fit(grid, weights);
    for (int l = 0; l < 16; ++l)
      EXPECT_EQ(fit.noise[l], 0);
  });
}

TEST(GridFit, ExtremeValues) {
  forAllGrids([&](const GridSpec &grid) {
    for (float scale : {1e-30f, 1e-9f, 3e-8f, 1e-7f, 1e-6f, 1e3f}) {
      std::vector<float> weights = randomGroups(grid.group, 3, scale);
      Fit fit(grid, weights);
      for (int l = 0; l < 16; ++l) {
        double signal = 0;
        for (int k = 0; k < grid.group; ++k)
          signal += double(weights[16 * k + l]) * weights[16 * k + l];
        EXPECT_LE(fit.error(l), signal * 1.0001) << scale;
        EXPECT_FALSE(std::isinf(floatFromF16(fit.scales[l])));
      }
    }
    // A power of two changes nothing but the scales.
    std::vector<float> small = randomGroups(grid.group, 4), large(small);
    for (float &w : large)
      w *= 0x1p16f;
    Fit a(grid, small), b(grid, large);
    EXPECT_TRUE(a.codes == b.codes);
    for (int l = 0; l < 16; ++l)
      EXPECT_EQ(a.noise[l] * 0x1p32f, b.noise[l]);
    // The largest range that a caller may pass, both signs: no overflow.
    std::vector<float> weights(16 * grid.group, 0.0f);
    float limit = kMaxScale * float(grid.maxCode() / 2);
    for (int l = 0; l < 16; ++l) {
      weights[l] = limit;
      weights[16 + l] = l % 2 ? -limit : 0;
    }
    Fit fit(grid, weights);
    for (int l = 0; l < 16; ++l)
      EXPECT_LT(fit.error(l), 0.01 * limit * double(limit));
    // One outlier must not make the fit worse than leaving it out.
    std::vector<float> outlier = randomGroups(grid.group, 5, 1e-3f);
    for (int l = 0; l < 16; ++l)
      outlier[l] = 1;
    Fit out(grid, outlier);
    for (int l = 0; l < 16; ++l)
      EXPECT_LT(out.error(l), 0.01);
  });
}

// What has been quantized once stays as it is.
TEST(GridFit, Idempotent) {
  forAllGrids([](const GridSpec &grid) {
    Fit first(grid, randomGroups(grid.group, 21));
    std::vector<float> again(first.weights.size());
    for (int k = 0; k < grid.group; ++k)
      for (int l = 0; l < 16; ++l)
        again[16 * k + l] = first.value(k, l);
    Fit second(grid, again);
    double signal = 0, noise = 0;
    for (int l = 0; l < 16; ++l)
      noise += second.error(l);
    for (float w : again)
      signal += double(w) * w;
    EXPECT_LT(noise, signal * (grid.bits == 8 ? 1e-4 : 1e-3));
  });
}
