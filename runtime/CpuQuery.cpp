//===- CpuQuery.cpp - The two replaceable questions to the machine --------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Cpu.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t xcr0() {
  uint32_t lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return uint64_t(hi) << 32 | lo;
}

extern "C" uint32_t sparkc_cpu_query(void) {
  auto bit = [](uint32_t word, int n) { return (word >> n & 1) != 0; };
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !bit(c, 27)) // OSXSAVE
    return 0;
  bool fma = bit(c, 12), movbe = bit(c, 22), avx = bit(c, 28),
       f16c = bit(c, 29);
  uint64_t saved = xcr0();
  bool ymm = (saved & 0x6) == 0x6;
  bool zmm = (saved & 0xe6) == 0xe6;
  bool tiles = (saved & 0x60000) == 0x60000;
  if (!ymm || !__get_cpuid(0x80000001, &a, &b, &c, &d))
    return 0;
  bool lzcnt = bit(c, 5);
  uint32_t b7, c7, d7, a71 = 0;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7))
    return 0;
  if (a >= 1)
    __get_cpuid_count(7, 1, &a71, &b, &c, &d);

  uint32_t has = 0;
  if (!(fma && movbe && avx && f16c && lzcnt && bit(b7, 3) && bit(b7, 5) &&
        bit(b7, 8)))
    return 0;
  has |= SPARKC_CPU_HAS_V3;
  if (bit(a71, 4))
    has |= SPARKC_CPU_HAS_AVXVNNI;
  if (!(zmm && bit(b7, 16) && bit(b7, 17) && bit(b7, 28) && bit(b7, 30) &&
        bit(b7, 31)))
    return has;
  has |= SPARKC_CPU_HAS_AVX512;
  if (bit(c7, 11))
    has |= SPARKC_CPU_HAS_AVX512VNNI;
  if (bit(c7, 1))
    has |= SPARKC_CPU_HAS_VBMI;
  if (bit(a71, 5))
    has |= SPARKC_CPU_HAS_AVX512BF16;
  if (bit(d7, 23))
    has |= SPARKC_CPU_HAS_AVX512FP16;
  if (tiles && bit(d7, 22) && bit(d7, 24) && bit(d7, 25))
    has |= SPARKC_CPU_HAS_AMX;
  return has;
}

extern "C" int sparkc_cpu_permit_amx(void) {
  constexpr int reqXcompPerm = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, reqXcompPerm, tileData) == 0;
}
