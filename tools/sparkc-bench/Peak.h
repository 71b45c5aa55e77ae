//===- Peak.h - How fast this machine multiplies bytes ----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_BENCH_PEAK_H
#define SPARKC_TOOLS_BENCH_PEAK_H

#include <cstdint>

namespace sparkc::bench {

struct Int8Peak {
  double tops = 0; ///< 1e12 operations a second; a multiply-add is two
  const char *instruction = "none";
};

/// What n threads reach with nothing but independent int8 dot products in
/// registers: vpdpbusd of 64 bytes or 32, else AVX2's vpmaddubsw, vpmaddwd and
/// vpaddd; 0 without any of these. Takes about 60 ms, best of three.
Int8Peak int8Peak(uint32_t threads);

} // namespace sparkc::bench

#endif // SPARKC_TOOLS_BENCH_PEAK_H
