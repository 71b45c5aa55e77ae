//===- TargetTest.cpp - CPU names to instruction sets --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/object/LoadedObject.h"

#include "llvm/Target/TargetMachine.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {

TEST(Target, NamesToIsa) {
  struct {
    const char *cpu;
    uint32_t isa;
    uint32_t features;
    unsigned width;
    const char *baseline;
  } cases[] = {
      {"x86-64-v3", SPARKC_ISA_AVX2, 0, 256, "x86-64-v3"},
      {"haswell", SPARKC_ISA_AVX2, 0, 256, "x86-64-v3"},
      {"znver3", SPARKC_ISA_AVX2, 0, 256, "x86-64-v3"},
      {"alderlake", SPARKC_ISA_AVXVNNI, 0, 256, "x86-64-v3"},
      {"x86-64-v4", SPARKC_ISA_AVX512, 0, 512, "x86-64-v4"},
      {"skylake-avx512", SPARKC_ISA_AVX512, 0, 512, "x86-64-v4"},
      {"cascadelake", SPARKC_ISA_AVX512VNNI, 0, 512, "x86-64-v4"},
      {"icelake-server", SPARKC_ISA_AVX512VNNI, SPARKC_CPU_AVX512VBMI, 512,
       "x86-64-v4"},
      {"znver5", SPARKC_ISA_AVX512VNNI, SPARKC_CPU_AVX512VBMI, 512,
       "x86-64-v4"},
      {"sapphirerapids", SPARKC_ISA_AMX, SPARKC_CPU_AVX512VBMI, 512,
       "x86-64-v4"},
  };
  for (auto &c : cases) {
    auto spec = resolveTarget(c.cpu);
    ASSERT_TRUE(bool(spec)) << messageOf(spec.takeError());
    EXPECT_EQ(spec->cpu, c.cpu);
    EXPECT_EQ(spec->isa, c.isa) << c.cpu;
    EXPECT_EQ(spec->abiFeatures, c.features) << c.cpu;
    EXPECT_EQ(spec->preferVectorWidth, c.width) << c.cpu;
    EXPECT_EQ(spec->baseline, c.baseline) << c.cpu;
    auto machine = createTargetMachine(*spec);
    ASSERT_TRUE(bool(machine)) << messageOf(machine.takeError());
    EXPECT_EQ((*machine)->getRelocationModel(), llvm::Reloc::PIC_);
  }
}

TEST(Target, BF16WhereItIsAskedFor) {
  const std::pair<const char *, uint32_t> cases[] = {
      {"haswell", 0},
      {"cascadelake", 0},
      {"icelake-server", SPARKC_CPU_AVX512VBMI},
      {"cooperlake", SPARKC_CPU_AVX512BF16},
      {"znver4", SPARKC_CPU_AVX512VBMI | SPARKC_CPU_AVX512BF16},
      {"sapphirerapids", SPARKC_CPU_AVX512VBMI | SPARKC_CPU_AVX512BF16},
  };
  for (auto [cpu, features] : cases)
    for (bool asked : {false, true}) {
      auto spec = resolveTarget(cpu, asked);
      ASSERT_TRUE(bool(spec)) << messageOf(spec.takeError());
      bool has = features & SPARKC_CPU_AVX512BF16;
      EXPECT_EQ(spec->abiFeatures,
                asked ? features : features & ~SPARKC_CPU_AVX512BF16)
          << cpu;
      EXPECT_EQ(spec->features.find("avx512bf16") != std::string::npos,
                asked && has)
          << cpu;
      auto machine = createTargetMachine(*spec);
      EXPECT_TRUE(bool(machine)) << messageOf(machine.takeError());
    }
}

TEST(Target, WithoutTiles) {
  auto with = resolveTarget("sapphirerapids");
  auto without =
      resolveTarget("sapphirerapids", /*bf16=*/false, /*tiles=*/false);
  ASSERT_TRUE(bool(with)) << messageOf(with.takeError());
  ASSERT_TRUE(bool(without)) << messageOf(without.takeError());
  EXPECT_EQ(with->isa, uint32_t(SPARKC_ISA_AMX));
  EXPECT_EQ(without->isa, uint32_t(SPARKC_ISA_AVX512VNNI));
  EXPECT_NE(with->features.find("amx"), std::string::npos);
  EXPECT_EQ(without->features.find("amx"), std::string::npos);
}

TEST(Target, Native) {
  __builtin_cpu_init();
  auto spec = resolveTarget("native");
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    ASSERT_FALSE(bool(spec));
    llvm::consumeError(spec.takeError());
    return;
  }
  ASSERT_TRUE(bool(spec)) << messageOf(spec.takeError());
  EXPECT_NE(spec->cpu, "native");
  EXPECT_EQ(spec->preferVectorWidth,
            __builtin_cpu_supports("avx512vl") ? 512u : 256u);
}

TEST(Target, RefusesUnknownNames) {
  for (const char *cpu : {"", "znver99", "Haswell", "native ", "avx2"}) {
    auto spec = resolveTarget(cpu);
    ASSERT_FALSE(bool(spec)) << cpu;
    std::string message = messageOf(spec.takeError());
    EXPECT_EQ(message.find(std::string("unknown CPU '") + cpu + "'"), 0u)
        << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Target, RefusesCpusBelowV3) {
  for (const char *cpu :
       {"x86-64", "x86-64-v2", "nehalem", "ivybridge", "generic", "i686"}) {
    auto spec = resolveTarget(cpu);
    ASSERT_FALSE(bool(spec)) << cpu;
    std::string message = messageOf(spec.takeError());
    EXPECT_NE(message.find("sparkc needs AVX2, FMA and F16C"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("lacks avx2, fma"), std::string::npos) << message;
  }
  // AVX-512, but not all of x86-64-v4: used as a v3.
  auto knl = resolveTarget("knl");
  ASSERT_TRUE(bool(knl)) << messageOf(knl.takeError());
  EXPECT_EQ(knl->isa, uint32_t(SPARKC_ISA_AVX2));
}

} // namespace
