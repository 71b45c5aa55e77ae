//===- Tiles.h - The tile architecture in software --------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of one thread and what each instruction does to it, as the
// architecture manual has it in its pseudocode. An instruction that the
// processor would refuse says so and changes nothing.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_AMXEMULATOR_TILES_H
#define SPARKC_TEST_AMXEMULATOR_TILES_H

#include <cstdint>

namespace amx {

/// Palette 1, the only one there is.
constexpr unsigned kTiles = 8, kRows = 16, kRowBytes = 64;
/// Limits of the multiplier: bytes of a row of C, rows of B.
constexpr unsigned kMaxN = 64, kMaxK = 16;

/// What an instruction raises.
enum class Fault { None, UD, GP };

struct Tile {
  uint8_t row[kRows][kRowBytes];
};

/// TILECFG and TILEDATA. All zero is the INIT state.
struct State {
  bool configured;
  uint8_t palette, startRow;
  uint8_t rows[kTiles];
  uint16_t rowBytes[kTiles];
  Tile tile[kTiles];
};

/// Which of the products of bytes: is the first, the second source unsigned?
struct Signs {
  bool unsigned1, unsigned2;
};

/// LDTILECFG, STTILECFG, TILERELEASE.
Fault loadConfig(State &state, const void *memory);
void storeConfig(const State &state, void *memory);
void release(State &state);

Fault zero(State &state, unsigned tile);
/// Row i at base + i * stride.
Fault load(State &state, unsigned tile, const uint8_t *base, int64_t stride);
Fault store(State &state, unsigned tile, uint8_t *base, int64_t stride);

/// dest += source1 * source2: TDPBSSD and its sisters, TDPBF16PS.
Fault multiplyBytes(State &state, unsigned dest, unsigned source1,
                    unsigned source2, Signs signs);
Fault multiplyBf16(State &state, unsigned dest, unsigned source1,
                   unsigned source2);

} // namespace amx

#endif // SPARKC_TEST_AMXEMULATOR_TILES_H
