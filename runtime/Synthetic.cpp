//===- Synthetic.cpp - Weights that come from no file ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Synthetic.h"
#include "runtime/include/sparkc_abi.h"

#include <algorithm>
#include <cstring>

void sparkc::fillSynthetic(uint8_t *data, uint64_t bytes,
                           const uint32_t *layouts, size_t nLayouts) {
  const bool scales =
      std::any_of(layouts, layouts + nLayouts, [](uint32_t layout) {
        return layout != SPARKC_LAYOUT_VECTOR_F32 &&
               layout != SPARKC_LAYOUT_ROWS_F32 &&
               layout != SPARKC_LAYOUT_ROWS_BF16 &&
               layout != SPARKC_LAYOUT_TILE16_F32 &&
               layout != SPARKC_LAYOUT_TILE16_BF16;
      });
  const uint64_t exponents = scales ? 0x3a001c003a001c00u : 0x3c801c003c801c00u;
  const uint64_t random = 0x80ff80ff80ff80ffu; // signs and mantissas
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (uint64_t i = 0; i < bytes; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t word = (state & random) | exponents;
    memcpy(data + i, &word, std::min<uint64_t>(8, bytes - i));
  }
}
