//===- Synthetic.h - Weights that come from no file -------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_SYNTHETIC_H
#define SPARKC_RUNTIME_SYNTHETIC_H

#include <cstddef>
#include <cstdint>

namespace sparkc {

/// Fills `bytes` of memory (8-byte aligned) with a fixed pattern that is
/// finite and small however it is read, since only the weights file knows what
/// stands where. Every 32-bit word is two 16-bit numbers with random signs and
/// mantissas:
///
///   high  as f16 0.75 to 1, as bf16 and in f32 about 2^-11
///   low   as f16 about 2^-8, as bf16 about 2^-71
///
/// so scales (f16), weights, norms and embedding rows (f32, bf16) stay in
/// range; codes and zero points (bytes, nibbles) may be anything. Where no
/// layout has scales, high is about 2^-6: activations then stay far from
/// denormal numbers, which some processors compute slowly.
void fillSynthetic(uint8_t *data, uint64_t bytes, const uint32_t *layouts,
                   size_t nLayouts);

} // namespace sparkc

#endif // SPARKC_RUNTIME_SYNTHETIC_H
