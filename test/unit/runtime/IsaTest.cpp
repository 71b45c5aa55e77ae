//===- IsaTest.cpp - Which entry runs on which machine --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// This program answers the runtime's two questions to the machine itself, as
// an emulator does: its definitions take the place of the library's.
//===----------------------------------------------------------------------===//

#include "runtime/Cpu.h"
#include "test/unit/runtime/ToyFiles.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

static uint32_t machine;
static int permits, asked;

extern "C" uint32_t sparkc_cpu_query(void) { return machine; }
extern "C" int sparkc_cpu_permit_amx(void) {
  ++asked;
  return permits;
}

namespace {

constexpr uint32_t v3 = SPARKC_CPU_HAS_V3;
constexpr uint32_t v4 = v3 | SPARKC_CPU_HAS_AVX512;
constexpr uint32_t vnni = v4 | SPARKC_CPU_HAS_AVX512VNNI;
constexpr uint32_t amx = vnni | SPARKC_CPU_HAS_AMX;

class IsaTest : public testing::Test {
protected:
  void SetUp() override {
    unsetenv("SPARKC_ISA");
    asked = 0;
    permits = 1;
  }
  /// Opens the fat toy (amx; avx512vnni with an unknown feature; avx2): the
  /// name of the entry taken, or "" with the reason in `why`.
  std::string isa(uint32_t cpu, const char *forced = nullptr) {
    machine = cpu;
    if (forced)
      setenv("SPARKC_ISA", forced, 1);
    std::string so =
        writePair(dir, objectImage(nullptr, Toy::Fat), weightsImage());
    sparkc_model *model;
    status = sparkc_open(so.c_str(), nullptr, nullptr, &model, &why);
    unsetenv("SPARKC_ISA");
    if (status != SPARKC_OK)
      return "";
    sparkc_model_info info = {};
    info.struct_size = sizeof info;
    sparkc_info(model, &info);
    std::string name = info.isa;
    reason = info.isa_reason;
    sparkc_close(model);
    return name;
  }
  TempDir dir;
  sparkc_error why = {};
  sparkc_status status = SPARKC_OK;
  std::string reason;
};

TEST_F(IsaTest, BestThatRuns) {
  EXPECT_EQ(isa(amx), "amx");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(isa(v3), "avx2");
  // The toy's avx512vnni entry needs a feature that this runtime cannot know.
  EXPECT_EQ(isa(vnni), "avx2");
  EXPECT_NE(reason.find("amx"), std::string::npos) << reason;
  EXPECT_EQ(asked, 1); // not asked for where the processor has it not
}

TEST_F(IsaTest, TilePermissionRefused) {
  permits = 0;
  EXPECT_EQ(isa(amx), "avx2");
  EXPECT_NE(reason.find("does not permit"), std::string::npos) << reason;
  EXPECT_EQ(isa(amx, "amx"), "");
  EXPECT_EQ(status, SPARKC_UNSUPPORTED_CPU);
}

TEST_F(IsaTest, Forced) {
  EXPECT_EQ(isa(amx, "avx2"), "avx2");
  EXPECT_EQ(reason, "forced by SPARKC_ISA");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(isa(vnni, "amx"), "");
  EXPECT_EQ(status, SPARKC_UNSUPPORTED_CPU);
  EXPECT_NE(strstr(why.message, "not on this machine"), nullptr) << why.message;
  EXPECT_EQ(isa(amx, "avxvnni"), ""); // not in the object
  EXPECT_EQ(status, SPARKC_UNSUPPORTED_CPU);
  EXPECT_NE(strstr(why.message, "no code for"), nullptr) << why.message;
  EXPECT_EQ(isa(amx, "sse2"), "");
  EXPECT_EQ(status, SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(isa(v3, ""), "avx2");
}

TEST_F(IsaTest, MachineWithNone) {
  EXPECT_EQ(isa(0), "");
  EXPECT_EQ(status, SPARKC_UNSUPPORTED_CPU);
  EXPECT_NE(strstr(why.message, "model.so"), nullptr) << why.message;
}

TEST_F(IsaTest, WhatEachNeeds) {
  EXPECT_TRUE(cpuRuns(v3, SPARKC_ISA_AVX2, 0));
  EXPECT_FALSE(cpuRuns(v3, SPARKC_ISA_AVXVNNI, 0));
  EXPECT_TRUE(cpuRuns(v3 | SPARKC_CPU_HAS_AVXVNNI, SPARKC_ISA_AVXVNNI, 0));
  EXPECT_FALSE(cpuRuns(SPARKC_CPU_HAS_AVXVNNI, SPARKC_ISA_AVXVNNI, 0));
  EXPECT_FALSE(cpuRuns(v3, SPARKC_ISA_AVX512, 0));
  EXPECT_TRUE(cpuRuns(v4, SPARKC_ISA_AVX512, 0));
  EXPECT_FALSE(cpuRuns(v4, SPARKC_ISA_AVX512VNNI, 0));
  EXPECT_TRUE(cpuRuns(vnni, SPARKC_ISA_AVX512VNNI, 0));
  EXPECT_FALSE(cpuRuns(vnni, SPARKC_ISA_AMX, 0));
  EXPECT_TRUE(cpuRuns(amx, SPARKC_ISA_AMX, 0));
  EXPECT_FALSE(cpuRuns(amx, SPARKC_ISA_AVX2, SPARKC_CPU_AVX512VBMI));
  EXPECT_TRUE(cpuRuns(amx | SPARKC_CPU_HAS_VBMI, SPARKC_ISA_AVX512VNNI,
                      SPARKC_CPU_AVX512VBMI));
  EXPECT_FALSE(cpuRuns(~0u, 0, 0));
  EXPECT_FALSE(cpuRuns(~0u, 99, 0));
  EXPECT_FALSE(cpuRuns(~0u, SPARKC_ISA_AVX2, 1u << 31));
}

TEST_F(IsaTest, Names) {
  for (uint32_t i = SPARKC_ISA_AVX2; i <= SPARKC_ISA_AMX; ++i)
    EXPECT_EQ(isaOfName(nameOfIsa(i)), i);
  EXPECT_EQ(nameOfIsa(0), nullptr);
  EXPECT_EQ(isaOfName("AVX2"), 0u);
}

} // namespace
