//===- QuantizeTest.cpp - Activations in groups of int8 -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// emitQuantize against its definition, byte by byte, on each instruction set.
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Half.h"
#include "test/unit/kernels/KernelObject.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

namespace {

/// Sizes that are and are not multiples of the group and of 128.
constexpr int64_t kSizes[] = {1, 50, 96, 128, 300, 2880};
constexpr int64_t kGroups[] = {32, 64, 128};

std::string nameOf(int64_t size, int64_t group) {
  return "n" + std::to_string(size) + "_g" + std::to_string(group);
}

/// One group, as the dialect describes it.
struct Group {
  std::vector<int8_t> codes;
  float scale;
  int32_t sum = 0;
};
Group quantized(const float *x, int64_t size) {
  float largest = 0;
  for (int64_t i = 0; i < size; ++i)
    largest = std::max(largest, std::fabs(x[i]));
  Group group;
  group.scale = largest / 127.0f;
  float inverse = largest < 0x1p-120f ? 0.0f : 127.0f / largest;
  for (int64_t i = 0; i < size; ++i) {
    int code = int(std::nearbyint(x[i] * inverse)); // ties to even
    group.codes.push_back(code);
    group.sum += code;
  }
  return group;
}

class Quantize : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    auto target = resolveTarget(GetParam());
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    if (!hostRuns(*target))
      GTEST_SKIP() << "this host lacks features of " << GetParam();
    for (int64_t size : kSizes)
      for (int64_t group : kGroups)
        object.add(nameOf(size, group),
                   [&](Emitter &e, mlir::Value x, mlir::Value,
                       mlir::Value out) {
                     emitQuantize(e, x, size, group, out);
                   });
    ASSERT_EQ(object.compile(*target), "");
  }

  /// Quantizes value(i), i < size, zero after that.
  template <typename Value>
  void run(int64_t size, int64_t group, Value value,
           llvm::function_ref<void(const float *x, const GuardedBytes &out,
                                   const QVecLayout &layout)>
               check) {
    int64_t padded = ceilDiv(size, 128) * 128;
    GuardedBytes x(padded * 4);
    for (int64_t i = 0; i < padded; ++i)
      x.as<float>()[i] = i < size ? value(i) : 0.0f;
    QVecLayout layout(size, group);
    GuardedBytes out(layout.bytes);
    std::memset(out.data(), 0xa5, out.size());
    object.get(nameOf(size, group))(x.data(), nullptr, out.data());
    check(x.as<float>(), out, layout);
  }

  /// All of it must be what the definition gives.
  template <typename Value> void same(const char *what, Value value) {
    for (int64_t size : kSizes)
      for (int64_t group : kGroups)
        run(size, group, value,
            [&](const float *x, const GuardedBytes &out,
                const QVecLayout &layout) {
              ASSERT_EQ(layout.groups * group, ceilDiv(size, 128) * 128);
              for (int64_t g = 0; g < layout.groups; ++g) {
                Group want = quantized(x + g * group, group);
                ASSERT_EQ(bitsFromFloat(out.as<float>(layout.scales)[g]),
                          bitsFromFloat(want.scale))
                    << what << ", " << nameOf(size, group) << ", group " << g;
                ASSERT_EQ(out.as<int32_t>(layout.sums)[g], want.sum)
                    << what << ", " << nameOf(size, group) << ", group " << g;
                for (int64_t i = 0; i < group; ++i)
                  ASSERT_EQ(out.as<int8_t>()[g * group + i], want.codes[i])
                      << what << ", " << nameOf(size, group) << ", element "
                      << g * group + i << ": " << x[g * group + i];
              }
            });
  }

  KernelObject object;
  std::mt19937 rng{3};
};

} // namespace

TEST_P(Quantize, Random) {
  std::normal_distribution<float> normal;
  same("normal", [&](int64_t) { return normal(rng); });
  same("many magnitudes", [&](int64_t) {
    return std::ldexp(normal(rng), int(rng() % 40) - 20);
  });
}

TEST_P(Quantize, TiesGoToEven) {
  // The largest is 127, so the factor is 1: halves are ties.
  same("halves", [&](int64_t i) {
    return i % 32 == 5 ? 127.0f : float(int(rng() % 507) - 253) / 2;
  });
}

TEST_P(Quantize, ZeroGroups) {
  same("zeros", [](int64_t) { return 0.0f; });
  same("negative zeros", [](int64_t) { return -0.0f; });
  same("one group of zeros",
       [&](int64_t i) { return i / 128 == 1 ? 0.0f : float(i % 7) - 3; });
  same("one number", [](int64_t i) { return i % 128 == 127 ? -3.0f : 0.0f; });
}

TEST_P(Quantize, TinyGroupsCountAsZeros) {
  same("denormals", [&](int64_t) {
    return std::copysign(floatFromBits(rng() % 0x800000), rng() % 2 ? 1.f : -1.f);
  });
  same("smallest denormal", [](int64_t) { return FLT_TRUE_MIN; });
  same("normals whose reciprocal overflows", [&](int64_t) {
    return float(int(rng() % 255) - 127) * FLT_MIN;
  });
  same("the last that count as zeros",
       [](int64_t) { return std::nextafter(0x1p-120f, 0.0f); });
  same("the first that do not", [](int64_t) { return 0x1p-120f; });
}

TEST_P(Quantize, HugeValues) {
  same("FLT_MAX", [&](int64_t) { return rng() % 2 ? FLT_MAX : -FLT_MAX; });
  same("near FLT_MAX", [&](int64_t) {
    return std::ldexp(float(int(rng() % 2001) - 1000) / 1000, 127);
  });
}

// No number: the group's scale is none either, so that the logits show it.
TEST_P(Quantize, InfinityAndNaNReachTheScale) {
  for (float bad : {INFINITY, -INFINITY, float(NAN), -float(NAN)})
    for (int64_t size : kSizes)
      for (int64_t group : kGroups)
        for (int64_t at : {int64_t(0), size / 2, size - 1})
          run(
              size, group, [&](int64_t i) { return i == at ? bad : 1.0f; },
              [&](const float *, const GuardedBytes &out,
                  const QVecLayout &layout) {
                for (int64_t g = 0; g < layout.groups; ++g)
                  ASSERT_EQ(std::isfinite(out.as<float>(layout.scales)[g]),
                            g != at / group)
                      << bad << " at " << at << " of " << nameOf(size, group);
              });
}

INSTANTIATE_TEST_SUITE_P(Targets, Quantize,
                         testing::Values("x86-64-v3", "alderlake", "x86-64-v4",
                                         "native"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
