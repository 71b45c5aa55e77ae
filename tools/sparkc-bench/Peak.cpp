//===- Peak.cpp - How fast this machine multiplies bytes ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Peak.h"
#include "runtime/Cpu.h"
#include "tools/sparkc-bench/Team.h"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

using namespace sparkc::bench;

// Twelve accumulators: more than latency times throughput of any processor.
// The empty statements keep the compiler from seeing that inputs never change.

__attribute__((target("avx512f,avx512vnni"))) static int
dots512(uint64_t rounds) {
  __m512i sum[12], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
  for (__m512i &s : sum)
    s = _mm512_setzero_si512();
  for (uint64_t i = 0; i < rounds; ++i) {
    __asm__ volatile("" : "+v"(a), "+v"(b));
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k)
      sum[k] = _mm512_dpbusd_epi32(sum[k], a, b);
  }
  for (int k = 1; k < 12; ++k)
    sum[0] = _mm512_add_epi32(sum[0], sum[k]);
  int first;
  memcpy(&first, &sum[0], sizeof first);
  return first;
}

__attribute__((target("avx2,avxvnni"))) static int dots256(uint64_t rounds) {
  __m256i sum[12], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  for (__m256i &s : sum)
    s = _mm256_setzero_si256();
  for (uint64_t i = 0; i < rounds; ++i) {
    __asm__ volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k)
      sum[k] = _mm256_dpbusd_avx_epi32(sum[k], a, b);
  }
  for (int k = 1; k < 12; ++k)
    sum[0] = _mm256_add_epi32(sum[0], sum[k]);
  return _mm_cvtsi128_si32(_mm256_castsi256_si128(sum[0]));
}

__attribute__((target("avx2"))) static int multiplies256(uint64_t rounds) {
  __m256i sum[12], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  const __m256i ones = _mm256_set1_epi16(1);
  for (__m256i &s : sum)
    s = _mm256_setzero_si256();
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) {
      __asm__ volatile("" : "+x"(a), "+x"(b));
      sum[k] = _mm256_add_epi32(
          sum[k], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  for (int k = 1; k < 12; ++k)
    sum[0] = _mm256_add_epi32(sum[0], sum[k]);
  return _mm_cvtsi128_si32(_mm256_castsi256_si128(sum[0]));
}

Int8Peak sparkc::bench::int8Peak(uint32_t threads) {
  const uint32_t cpu = sparkc_cpu_query();
  int (*loop)(uint64_t) = nullptr;
  Int8Peak peak;
  double perRound = 12 * 32 * 2;
  if (cpu & SPARKC_CPU_HAS_AVX512VNNI) {
    loop = dots512;
    perRound *= 2;
    peak.instruction = "vpdpbusd zmm";
  } else if (cpu & SPARKC_CPU_HAS_AVXVNNI) {
    loop = dots256;
    peak.instruction = "vpdpbusd ymm";
  } else if (cpu & SPARKC_CPU_HAS_V3) {
    loop = multiplies256;
    peak.instruction = "vpmaddubsw ymm";
  } else {
    return peak;
  }
  auto seconds = [&](uint64_t rounds) {
    return onTeam(threads, [&](uint32_t) {
      volatile int sink = loop(rounds);
      (void)sink;
    });
  };
  // As many rounds as take about 20 ms.
  uint64_t rounds = 100000;
  double trial = std::max(seconds(rounds), 1e-6);
  rounds = uint64_t(std::clamp(rounds * 0.02 / trial, 1e4, 1e9));
  for (int i = 0; i < 3; ++i)
    peak.tops = std::max(peak.tops,
                         perRound * rounds * threads / seconds(rounds) * 1e-12);
  return peak;
}
