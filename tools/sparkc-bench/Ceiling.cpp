//===- Ceiling.cpp - How fast this machine reads memory -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Ceiling.h"
#include "runtime/Cpu.h"
#include "tools/sparkc-bench/Team.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <immintrin.h>
#include <sys/mman.h>

using namespace sparkc::bench;

static constexpr size_t huge = size_t(2) << 20;

ReadBuffer::~ReadBuffer() {
  if (start)
    munmap(start, length);
}

bool ReadBuffer::allocate(size_t bytes, bool hugePages) {
  length = (bytes + huge - 1) / huge * huge;
  void *range = mmap(nullptr, length + huge, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED)
    return false;
  uint8_t *base = static_cast<uint8_t *>(range);
  size_t before = -reinterpret_cast<uintptr_t>(base) % huge;
  if (before)
    munmap(base, before);
  if (before < huge)
    munmap(base + before + length, huge - before);
  start = base + before;
  madvise(start, length, hugePages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  memset(start, 1, length);
  return true;
}

std::string ReadPattern::name() const {
  std::string text =
      std::to_string(streams) + (streams > 1 ? " streams" : " stream");
  if (prefetch)
    text += ", prefetch " + std::to_string(prefetch);
  if (block)
    text += ", blocks of " + std::to_string(block / 1024) + " KiB";
  return text;
}

const std::vector<ReadPattern> &sparkc::bench::readPatterns() {
  static const std::vector<ReadPattern> patterns = {
      {1, 0, 0},    {1, 2048, 0}, {1, 4096, 0}, {1, 8192, 0}, {2, 0, 0},
      {2, 2048, 0}, {2, 4096, 0}, {4, 0, 0},    {4, 1024, 0}, {4, 2048, 0},
      {4, 4096, 0}, {8, 0, 0},    {8, 2048, 0}, {1, 0, 16384}};
  return patterns;
}

//===----------------------------------------------------------------------===//
// Kernels: all lines of [data, data + bytes), bytes a multiple of 256 * streams
//===----------------------------------------------------------------------===//

// One kernel for each width; GCC and clang inline intrinsics only into
// functions of their target, so the body is a macro.
#define SPARKC_READ_KERNEL(NAME, TARGET, VECTOR, LOAD, XOR, ZERO)              \
  template <unsigned streams, bool prefetch>                                   \
  __attribute__((target(TARGET))) static uint64_t NAME(                        \
      const uint8_t *data, size_t bytes, size_t ahead) {                       \
    constexpr size_t width = sizeof(VECTOR);                                   \
    const size_t slice = bytes / streams;                                      \
    VECTOR sums[4] = {ZERO(), ZERO(), ZERO(), ZERO()};                         \
    for (size_t i = 0; i < slice; i += 256)                                    \
      for (unsigned s = 0; s < streams; ++s) {                                 \
        const uint8_t *at = data + s * slice + i;                              \
        for (size_t line = 0; prefetch && line < 256; line += 64)              \
          _mm_prefetch(reinterpret_cast<const char *>(at + line + ahead),      \
                       _MM_HINT_T0);                                           \
        for (size_t part = 0; part < 256 / width; ++part)                      \
          sums[part % 4] =                                                     \
              XOR(sums[part % 4],                                              \
                  LOAD(reinterpret_cast<const VECTOR *>(at + part * width)));  \
      }                                                                        \
    VECTOR all = XOR(XOR(sums[0], sums[1]), XOR(sums[2], sums[3]));            \
    uint64_t words[width / 8], sum = 0;                                        \
    memcpy(words, &all, width);                                                \
    for (uint64_t word : words)                                                \
      sum ^= word;                                                             \
    return sum;                                                                \
  }

SPARKC_READ_KERNEL(read512, "avx512f", __m512i, _mm512_load_si512,
                   _mm512_xor_si512, _mm512_setzero_si512)
SPARKC_READ_KERNEL(read256, "avx2", __m256i, _mm256_load_si256,
                   _mm256_xor_si256, _mm256_setzero_si256)
SPARKC_READ_KERNEL(read128, "sse2", __m128i, _mm_load_si128, _mm_xor_si128,
                   _mm_setzero_si128)

using Kernel = uint64_t (*)(const uint8_t *, size_t, size_t);

template <unsigned streams, bool prefetch> static Kernel kernelOfWidth() {
  uint32_t cpu = sparkc_cpu_query();
  return cpu & SPARKC_CPU_HAS_AVX512 ? read512<streams, prefetch>
         : cpu & SPARKC_CPU_HAS_V3   ? read256<streams, prefetch>
                                     : read128<streams, prefetch>;
}

template <unsigned streams> static Kernel kernelOf(bool prefetch) {
  return prefetch ? kernelOfWidth<streams, true>()
                  : kernelOfWidth<streams, false>();
}

static Kernel kernelFor(const ReadPattern &p) {
  bool ahead = p.prefetch != 0;
  return p.streams == 1   ? kernelOf<1>(ahead)
         : p.streams == 2 ? kernelOf<2>(ahead)
         : p.streams == 4 ? kernelOf<4>(ahead)
                          : kernelOf<8>(ahead);
}

/// What thread `tid` of n reads; bytes are a multiple of 2048 * n (or, with
/// blocks, of n blocks).
static uint64_t readShare(const uint8_t *data, size_t bytes, uint32_t tid,
                          uint32_t n, const ReadPattern &pattern,
                          Kernel kernel) {
  if (!pattern.block)
    return kernel(data + bytes / n * tid, bytes / n, pattern.prefetch);
  uint64_t sum = 0;
  for (size_t i = size_t(tid) * pattern.block; i < bytes;
       i += size_t(n) * pattern.block)
    sum ^= kernel(data + i, pattern.block, pattern.prefetch);
  return sum;
}

uint64_t sparkc::bench::readOnce(const uint8_t *data, size_t bytes,
                                 const ReadPattern &pattern) {
  return readShare(data, bytes, 0, 1, pattern, kernelFor(pattern));
}

double sparkc::bench::readPass(const uint8_t *data, size_t bytes,
                               uint32_t threads, const ReadPattern &pattern) {
  const size_t unit = size_t(16384) * threads;
  const size_t pass = std::min<size_t>(bytes, size_t(1) << 30) / unit * unit;
  Kernel kernel = kernelFor(pattern);
  static std::atomic<uint64_t> sink{0};
  double seconds = onTeam(threads, [&](uint32_t tid) {
    sink ^= readShare(data, pass, tid, threads, pattern, kernel);
  });
  return seconds > 0 ? pass / seconds * 1e-9 : 0;
}

ReadRate sparkc::bench::readCeiling(const uint8_t *data, size_t bytes,
                                    uint32_t threads, unsigned passes) {
  ReadRate best;
  const std::vector<ReadPattern> &patterns = readPatterns();
  best.meanSeconds.resize(patterns.size());
  for (unsigned round = 0; round < passes; ++round)
    for (size_t i = 0; i < patterns.size(); ++i) {
      double gbps = readPass(data, bytes, threads, patterns[i]);
      best.meanSeconds[i] += 1 / gbps / passes;
      if (gbps > best.gbps) {
        best.gbps = gbps;
        best.pattern = patterns[i];
      }
    }
  return best;
}
