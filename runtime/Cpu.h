//===- Cpu.h - What the processor and the system allow ----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// The two questions to the machine that choose an entry. Both are plain C
/// functions of default visibility that nothing in the runtime inlines, so
/// that a preloaded library (an emulator) can answer in their place.
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_CPU_H
#define SPARKC_RUNTIME_CPU_H

#include "runtime/include/sparkc.h"

extern "C" {

/// Answers of sparkc_cpu_query: what the processor has *and* the system saves
/// and restores (CPUID and XCR0). A bit includes nothing but what it names.
enum sparkc_cpu_bits {
  SPARKC_CPU_HAS_V3 = 1u << 0,         // AVX2, FMA, F16C, BMI1/2, LZCNT, MOVBE
  SPARKC_CPU_HAS_AVXVNNI = 1u << 1,    //
  SPARKC_CPU_HAS_AVX512 = 1u << 2,     // F, BW, CD, DQ, VL
  SPARKC_CPU_HAS_AVX512VNNI = 1u << 3, //
  SPARKC_CPU_HAS_VBMI = 1u << 4,       //
  SPARKC_CPU_HAS_AVX512BF16 = 1u << 5, //
  SPARKC_CPU_HAS_AVX512FP16 = 1u << 6, //
  SPARKC_CPU_HAS_AMX = 1u << 7         // TILE, INT8, BF16
};

/// A mask of sparkc_cpu_bits.
SPARKC_API uint32_t sparkc_cpu_query(void);

/// Asks the system for the use of AMX tile state in this process. Nonzero if
/// granted. Asked only when an entry that needs AMX would be chosen, and by
/// sparkc before it compiles such code for its own machine.
SPARKC_API int sparkc_cpu_permit_amx(void);
}

namespace sparkc {

/// "amx", "avx512vnni", ...; null for a value that is none of sparkc_isa.
const char *nameOfIsa(uint32_t isa);
/// The sparkc_isa of a name, 0 if there is none.
uint32_t isaOfName(const char *name);
/// True if a machine with `cpu` (sparkc_cpu_bits) runs code for `isa` that
/// also needs `features` (sparkc_cpu_feature). AMX permission and ctx->gemm
/// aside.
bool cpuRuns(uint32_t cpu, uint32_t isa, uint32_t features);

} // namespace sparkc

#endif // SPARKC_RUNTIME_CPU_H
