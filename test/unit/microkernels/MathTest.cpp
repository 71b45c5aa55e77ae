//===- MathTest.cpp - Elementary functions against double precision -------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every function is compiled for several instruction sets, as the compiler
// would, as 16 lanes and as a scalar. All must agree to the bit; the error is
// measured on floats from the whole range of bit patterns.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Math.h"
#include "test/unit/object/LoadedObject.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

using namespace mlir;
using namespace sparkc;
using namespace sparkc::test;

namespace {

using KernelFn = void(const void *in, void *out0, void *out1);

/// Builds `void name(ptr in, ptr out0, ptr out1)`: loads an \p in, stores what
/// \p body makes of it.
using Body =
    llvm::function_ref<SmallVector<Value>(OpBuilder &, Location, Value)>;

class Kernels {
public:
  Kernels() {
    context.loadDialect<arith::ArithDialect, math::MathDialect,
                        vector::VectorDialect, LLVM::LLVMDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }

  void add(StringRef name, Type in, Body body) {
    OpBuilder b(module->getBodyRegion());
    Location loc = b.getUnknownLoc();
    Type ptr = LLVM::LLVMPointerType::get(&context);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&context),
                                            {ptr, ptr, ptr});
    auto function = LLVM::LLVMFuncOp::create(b, loc, name, type);
    b.setInsertionPointToStart(function.addEntryBlock(b));
    Value x = LLVM::LoadOp::create(b, loc, in, function.getArgument(0),
                                   /*alignment=*/4);
    for (auto [i, value] : llvm::enumerate(body(b, loc, x)))
      LLVM::StoreOp::create(b, loc, value, function.getArgument(1 + i),
                            /*alignment=*/4);
    LLVM::ReturnOp::create(b, loc, ValueRange());
    names.push_back(name.str());
  }

  void addUnary(StringRef name, Type in,
                Value (*builder)(OpBuilder &, Location, Value)) {
    add(name, in, [&](OpBuilder &b, Location loc, Value x) {
      return SmallVector<Value>{builder(b, loc, x)};
    });
  }

  /// Compiles all for each target that this host runs.
  void compile() {
    PassManager passes(&context);
    passes.addPass(createConvertVectorToLLVMPass());
    passes.addPass(createConvertMathToLLVMPass());
    passes.addPass(createArithToLLVMConversionPass());
    passes.addPass(createUBToLLVMConversionPass());
    passes.addPass(createReconcileUnrealizedCastsPass());
    ASSERT_TRUE(succeeded(passes.run(*module)));
    SmallVector<StringRef> exports(names.begin(), names.end());
    for (const char *cpu : {"x86-64-v3", "znver3", "x86-64-v4", "native"}) {
      auto spec = resolveTarget(cpu);
      ASSERT_TRUE(bool(spec)) << messageOf(spec.takeError());
      if (!hostRuns(*spec)) {
        printf("not run on %s: this host lacks its features\n", cpu);
        continue;
      }
      auto object = std::make_unique<LoadedObject>(*module, *spec, exports);
      ASSERT_EQ(object->error, "") << cpu;
      objects.emplace_back(cpu, std::move(object));
    }
    ASSERT_FALSE(objects.empty());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::unique_ptr<LoadedObject>>> objects;
};

Kernels &kernels() {
  static Kernels *all = [] {
    auto *k = new Kernels;
    MLIRContext *c = &k->context;
    Type f32 = Float32Type::get(c), f64 = Float64Type::get(c);
    Type f16 = Float16Type::get(c), bf16 = BFloat16Type::get(c);
    struct {
      const char *name;
      Type element;
      Value (*builder)(OpBuilder &, Location, Value);
    } unary[] = {
        {"exp", f32, buildExp},           {"sigmoid", f32, buildSigmoid},
        {"gelu", f32, buildGeluErf},      {"rsqrt", f32, buildRsqrt},
        {"ext_f16", f16, buildExtF16},    {"trunc_f16", f32, buildTruncF16},
        {"ext_bf16", bf16, buildExtBF16}, {"trunc_bf16", f32, buildTruncBF16}};
    for (auto &u : unary) {
      k->addUnary(u.name, VectorType::get({16}, u.element), u.builder);
      k->addUnary(std::string(u.name) + "_scalar", u.element, u.builder);
    }
    // Odd and short vectors are legal too.
    k->addUnary("exp_5", VectorType::get({5}, f32), buildExp);
    k->addUnary("gelu_2x3", VectorType::get({6}, f32),
                [](OpBuilder &b, Location loc, Value x) -> Value {
                  auto flat = x.getType();
                  auto shaped = VectorType::get({2, 3}, b.getF32Type());
                  x = vector::ShapeCastOp::create(b, loc, shaped, x);
                  return vector::ShapeCastOp::create(b, loc, flat,
                                                     buildGeluErf(b, loc, x));
                });
    Body sincos = [](OpBuilder &b, Location loc, Value x) {
      SinCos both = buildSinCos(b, loc, x);
      return SmallVector<Value>{both.sin, both.cos};
    };
    k->add("sincos", VectorType::get({16}, f64), sincos);
    k->add("sincos_scalar", f64, sincos);
    k->addUnary("sum16", VectorType::get({16}, f32), buildHorizontalSum16);
    k->addUnary("max16", VectorType::get({16}, f32), buildHorizontalMax16);
    k->compile();
    return k;
  }();
  return *all;
}

uint32_t bitsOf(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

float fromBits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

/// |got - want| in units of the last place of a float near want.
double ulps(float got, double want) {
  if (std::isinf(want) || std::isinf(got) || std::isnan(got))
    return double(got) == want ? 0 : std::numeric_limits<double>::infinity();
  int exponent = want == 0 ? -126 : std::max(std::ilogb(want), -126);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - 23);
}

/// Runs \p name on blocks of 16 values on every object, requires the same bits
/// of all, and of the scalar function on the first; calls check(in, out).
template <typename In, typename Out, typename Check>
void forEach(const std::string &name, const std::vector<In> &values,
             Check check) {
  Kernels &k = kernels();
  std::vector<KernelFn *> functions;
  for (auto &entry : k.objects) {
    const LoadedObject &object = *entry.second;
    functions.push_back(object.get<KernelFn>(name.c_str()));
    ASSERT_NE(functions.back(), nullptr);
  }
  const LoadedObject &first = *k.objects[0].second;
  KernelFn *scalar = first.get<KernelFn>((name + "_scalar").c_str());
  ASSERT_NE(scalar, nullptr);
  for (size_t i = 0; i + 16 <= values.size(); i += 16) {
    alignas(64) Out want[16], got[16];
    functions[0](&values[i], want, nullptr);
    for (size_t f = 1; f < functions.size(); ++f) {
      functions[f](&values[i], got, nullptr);
      ASSERT_EQ(memcmp(want, got, sizeof got), 0)
          << name << " differs on " << k.objects[f].first << " near "
          << float(values[i]);
    }
    if (i % 1024 == 0) {
      for (size_t lane = 0; lane < 16; ++lane)
        scalar(&values[i + lane], &got[lane], nullptr);
      ASSERT_EQ(memcmp(want, got, sizeof got), 0)
          << name << " scalar differs near " << float(values[i]);
    }
    for (size_t lane = 0; lane < 16; ++lane)
      check(values[i + lane], want[lane]);
  }
}

/// Floats over the whole range of bit patterns, NaN included, every \p step-th,
/// and dense ones in [-16, 16].
std::vector<float> samples(uint32_t step) {
  std::vector<float> all = {0.0f,
                            -0.0f,
                            INFINITY,
                            -INFINITY,
                            NAN,
                            fromBits(0xffc12345),
                            fromBits(0x7f812345), // signalling
                            FLT_MAX,
                            -FLT_MAX,
                            FLT_MIN,
                            -FLT_MIN,
                            fromBits(1),
                            fromBits(0x80000001),
                            fromBits(0x42b17217), // ln(FLT_MAX)
                            fromBits(0x42b17218),
                            -87.3f,
                            std::nextafter(-87.3f, -100.0f)};
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += step)
    all.push_back(fromBits(uint32_t(bits)));
  for (int i = -200000; i <= 200000; ++i)
    all.push_back(float(i) * (16.0f / 200000));
  for (int i = -200000; i <= 200000; ++i)
    all.push_back(float(i) * (90.0f / 200000));
  while (all.size() % 16)
    all.push_back(1.0f);
  return all;
}

/// Keeps the largest error and where it was.
struct Worst {
  double error = 0;
  float at = 0;
  void note(double e, float x) {
    if (!(e <= error)) {
      error = e;
      at = x;
    }
  }
};

constexpr uint32_t step = 509;

TEST(Math, Exp) {
  Worst worst;
  forEach<float, float>("exp", samples(step), [&](float x, float y) {
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(y));
      return;
    }
    if (x < -87.3f) {
      ASSERT_EQ(bitsOf(y), 0u) << x;
      return;
    }
    double want = std::exp(double(x));
    if (x > fromBits(0x42b17217))
      want = INFINITY;
    worst.note(ulps(y, want), x);
  });
  printf("exp: %.3f ulp at %a\n", worst.error, worst.at);
  EXPECT_LE(worst.error, 1.0) << worst.at;
}

TEST(Math, Sigmoid) {
  Worst worst, tail;
  forEach<float, float>("sigmoid", samples(step), [&](float x, float y) {
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(y));
      return;
    }
    double want = 1 / (1 + std::exp(-double(x)));
    if (x >= -87.3f)
      worst.note(ulps(y, want), x);
    else
      tail.note(std::fabs(y - want), x);
  });
  printf("sigmoid: %.3f ulp at %a, tail %g at %a\n", worst.error, worst.at,
         tail.error, tail.at);
  EXPECT_LE(worst.error, 2.6) << worst.at;
  EXPECT_LE(tail.error, 0x1p-126) << tail.at;
}

TEST(Math, GeluErf) {
  Worst worst, absolute, tail;
  forEach<float, float>("gelu", samples(step), [&](float x, float y) {
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(y));
      return;
    }
    if (std::isinf(x)) {
      ASSERT_EQ(y, x > 0 ? x : 0.0f);
      return;
    }
    double want = x * 0.5 * std::erfc(-double(x) * std::sqrt(0.5));
    if (x >= -13.2f)
      worst.note(ulps(y, want), x);
    else
      tail.note(std::fabs(y - want), x);
    absolute.note(std::fabs(y - want) / std::fmax(1.0, std::fabs(x)), x);
  });
  printf("gelu: %.3f ulp at %a, absolute %g at %a, tail %g at %a\n",
         worst.error, worst.at, absolute.error, absolute.at, tail.error,
         tail.at);
  EXPECT_LE(worst.error, 6.0) << worst.at;
  EXPECT_LE(absolute.error, 1.2e-7) << absolute.at;
  EXPECT_LE(tail.error, 1.5e-38) << tail.at;
}

TEST(Math, Rsqrt) {
  forEach<float, float>("rsqrt", samples(step), [&](float x, float y) {
    if (std::isnan(x) || x < 0) {
      ASSERT_TRUE(std::isnan(y));
      return;
    }
    ASSERT_EQ(bitsOf(y), bitsOf(1.0f / std::sqrt(x))) << x;
  });
}

TEST(Math, SinCos) {
  std::vector<double> angles = {0.0, -0.0, 0x1p-600, 0x1p-60, 0x1p-30};
  // Positions times frequencies, as rotary embeddings have them; dense small
  // ones; and the neighbourhoods of multiples of pi/4.
  for (int position : {0, 1, 2, 511, 4095, 131071, 1048575})
    for (int i = 0; i < 128; ++i)
      angles.push_back(position * std::pow(1e4, -2.0 * i / 256));
  for (int i = -100000; i <= 100000; ++i)
    angles.push_back(i * 1e-4);
  for (int i = -100000; i <= 100000; ++i)
    angles.push_back(i * (0x1p21 / 100000));
  for (int n = -2000000; n <= 2000000; n += 97)
    for (double off : {-1e-9, 0.0, 1e-9})
      angles.push_back(n * (M_PI / 4) + off);
  while (angles.size() % 16)
    angles.push_back(1.0);
  Kernels &k = kernels();
  Worst worst;
  for (size_t i = 0; i < angles.size(); i += 16) {
    alignas(64) float want[2][16], got[2][16];
    k.objects[0].second->get<KernelFn>("sincos")(&angles[i], want[0], want[1]);
    for (auto &[cpu, object] : k.objects) {
      object->get<KernelFn>("sincos")(&angles[i], got[0], got[1]);
      ASSERT_EQ(memcmp(want, got, sizeof got), 0) << cpu << " " << angles[i];
      if (i % 256 == 0) {
        for (size_t lane = 0; lane < 16; ++lane)
          object->get<KernelFn>("sincos_scalar")(&angles[i + lane],
                                                 &got[0][lane], &got[1][lane]);
        ASSERT_EQ(memcmp(want, got, sizeof got), 0) << cpu << " " << angles[i];
      }
    }
    for (size_t lane = 0; lane < 16; ++lane) {
      double angle = angles[i + lane];
      double exact[2] = {std::sin(angle), std::cos(angle)};
      for (int part = 0; part < 2; ++part) {
        if (std::fabs(want[part][lane] - exact[part]) > 0x1p-52)
          worst.note(ulps(want[part][lane], exact[part]), angle);
      }
    }
  }
  printf("sincos: %.4f ulp at %a\n", worst.error, worst.at);
  EXPECT_LE(worst.error, 0.501) << worst.at;
}

TEST(Math, HorizontalOrder) {
  Kernels &k = kernels();
  // Numbers whose sum depends on the order.
  for (unsigned seed = 1; seed < 2000; ++seed) {
    alignas(64) float x[16];
    uint32_t state = seed * 2654435761u;
    for (float &v : x) {
      state = state * 1664525u + 1013904223u;
      v = std::ldexp(float(int32_t(state)), int(state >> 27) - 20);
    }
    float sum[16], largest[16];
    std::copy(x, x + 16, sum);
    std::copy(x, x + 16, largest);
    for (int half = 8; half >= 1; half /= 2)
      for (int i = 0; i < half; ++i) {
        sum[i] = sum[i] + sum[i + half];
        largest[i] = std::max(largest[i], largest[i + half]);
      }
    for (auto &[cpu, object] : k.objects) {
      float got;
      object->get<KernelFn>("sum16")(x, &got, nullptr);
      ASSERT_EQ(bitsOf(got), bitsOf(sum[0])) << cpu << " seed " << seed;
      object->get<KernelFn>("max16")(x, &got, nullptr);
      ASSERT_EQ(bitsOf(got), bitsOf(largest[0])) << cpu << " seed " << seed;
    }
  }
}

/// x rounded to nearest even with `mantissa` bits after the point, exponents
/// from minExponent; beyond `largest` infinite.
double rounded(double x, int mantissa, int minExponent, double largest) {
  if (x == 0 || std::isinf(x))
    return x;
  int shift = mantissa - std::max(std::ilogb(x), minExponent);
  double y = std::ldexp(std::nearbyint(std::ldexp(x, shift)), -shift);
  return std::fabs(y) > largest ? std::copysign(INFINITY, x) : y;
}

double valueOfF16(uint16_t bits) {
  int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  double magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                    : std::ldexp(mantissa, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

std::vector<uint16_t> allHalves() {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 65536; ++bits)
    all.push_back(uint16_t(bits));
  return all;
}

TEST(Math, ExtF16) {
  forEach<uint16_t, float>("ext_f16", allHalves(), [](uint16_t x, float y) {
    double want = valueOfF16(x);
    if (std::isnan(want))
      ASSERT_TRUE(std::isnan(y));
    else
      ASSERT_EQ(bitsOf(y), bitsOf(float(want))) << x;
  });
}

TEST(Math, TruncF16) {
  forEach<float, uint16_t>("trunc_f16", samples(step), [](float x, uint16_t y) {
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(valueOfF16(y)));
      return;
    }
    double want = rounded(x, 10, -14, 65504);
    ASSERT_EQ(valueOfF16(y), want) << x;
    ASSERT_EQ(y >> 15, std::signbit(x)) << x;
  });
}

TEST(Math, ExtBF16) {
  forEach<uint16_t, float>("ext_bf16", allHalves(), [](uint16_t x, float y) {
    ASSERT_EQ(bitsOf(y), uint32_t(x) << 16);
  });
}

TEST(Math, TruncBF16) {
  forEach<float, uint16_t>("trunc_bf16", samples(step),
                           [](float x, uint16_t y) {
                             float got = fromBits(uint32_t(y) << 16);
                             if (std::isnan(x)) {
                               ASSERT_TRUE(std::isnan(got));
                               return;
                             }
                             double want = rounded(x, 7, -126, 0x1.fep127);
                             ASSERT_EQ(double(got), want) << x;
                             ASSERT_EQ(std::signbit(got), std::signbit(x)) << x;
                           });
}

TEST(Math, OtherShapes) {
  Kernels &k = kernels();
  for (auto &[cpu, object] : k.objects) {
    alignas(64) float in[16], want[16], got[16];
    for (int i = 0; i < 16; ++i)
      in[i] = float(i) * 0.71f - 3.0f;
    object->get<KernelFn>("exp")(in, want, nullptr);
    object->get<KernelFn>("exp_5")(in, got, nullptr);
    EXPECT_EQ(memcmp(want, got, 5 * sizeof(float)), 0) << cpu;
    object->get<KernelFn>("gelu")(in, want, nullptr);
    object->get<KernelFn>("gelu_2x3")(in, got, nullptr);
    EXPECT_EQ(memcmp(want, got, 6 * sizeof(float)), 0) << cpu;
  }
}

} // namespace
