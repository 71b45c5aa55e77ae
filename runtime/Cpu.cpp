//===- Cpu.cpp - Which instruction sets a machine runs --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Cpu.h"

#include <cstring>

using namespace sparkc;

static const struct {
  uint32_t isa;
  const char *name;
  uint32_t needs;
} isaTable[] = {
    {SPARKC_ISA_AVX2, "avx2", SPARKC_CPU_HAS_V3},
    {SPARKC_ISA_AVXVNNI, "avxvnni", SPARKC_CPU_HAS_V3 | SPARKC_CPU_HAS_AVXVNNI},
    {SPARKC_ISA_AVX512, "avx512", SPARKC_CPU_HAS_V3 | SPARKC_CPU_HAS_AVX512},
    {SPARKC_ISA_AVX512VNNI, "avx512vnni",
     SPARKC_CPU_HAS_V3 | SPARKC_CPU_HAS_AVX512 | SPARKC_CPU_HAS_AVX512VNNI},
    {SPARKC_ISA_AMX, "amx",
     SPARKC_CPU_HAS_V3 | SPARKC_CPU_HAS_AVX512 | SPARKC_CPU_HAS_AVX512VNNI |
         SPARKC_CPU_HAS_AMX},
};

static const struct {
  uint32_t feature, needs;
} featureTable[] = {
    {SPARKC_CPU_AVX512VBMI, SPARKC_CPU_HAS_VBMI},
    {SPARKC_CPU_AVX512BF16, SPARKC_CPU_HAS_AVX512BF16},
    {SPARKC_CPU_AVX512FP16, SPARKC_CPU_HAS_AVX512FP16},
};

const char *sparkc::nameOfIsa(uint32_t isa) {
  for (const auto &row : isaTable)
    if (row.isa == isa)
      return row.name;
  return nullptr;
}

uint32_t sparkc::isaOfName(const char *name) {
  for (const auto &row : isaTable)
    if (!strcmp(row.name, name))
      return row.isa;
  return 0;
}

bool sparkc::cpuRuns(uint32_t cpu, uint32_t isa, uint32_t features) {
  uint32_t needs = 0;
  for (const auto &row : isaTable)
    if (row.isa == isa)
      needs = row.needs;
  if (!needs)
    return false;
  for (const auto &row : featureTable)
    if (features & row.feature) {
      needs |= row.needs;
      features &= ~row.feature;
    }
  features &= ~uint32_t(SPARKC_NEEDS_GEMM);
  // A feature that this runtime does not know cannot be promised.
  return features == 0 && (cpu & needs) == needs;
}
