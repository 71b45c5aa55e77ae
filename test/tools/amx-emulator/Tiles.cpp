//===- Tiles.cpp - The tile architecture in software ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/tools/amx-emulator/Tiles.h"

#include <cmath>
#include <cstring>
#include <initializer_list>

using namespace amx;

static bool anyNonzero(const uint8_t *bytes, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; ++i)
    if (bytes[i])
      return true;
  return false;
}

Fault amx::loadConfig(State &state, const void *memory) {
  uint8_t bytes[64];
  memcpy(bytes, memory, sizeof bytes);
  State next = {};
  next.palette = bytes[0];
  if (next.palette > 1)
    return Fault::GP;
  if (next.palette == 0) {
    release(state);
    return Fault::None;
  }
  // Bytes 16..31: bytes a row of eight tiles; 48..55: rows. The rest is 0.
  next.startRow = bytes[1];
  if (anyNonzero(bytes, 2, 16) || anyNonzero(bytes, 32, 48) ||
      anyNonzero(bytes, 56, 64))
    return Fault::GP;
  for (unsigned i = 0; i < kTiles; ++i) {
    memcpy(&next.rowBytes[i], bytes + 16 + 2 * i, 2);
    next.rows[i] = bytes[48 + i];
    if (next.rowBytes[i] > kRowBytes || next.rows[i] > kRows ||
        (next.rows[i] == 0) != (next.rowBytes[i] == 0))
      return Fault::GP;
  }
  next.configured = true;
  state = next; // and all tiles are zero
  return Fault::None;
}

void amx::storeConfig(const State &state, void *memory) {
  uint8_t bytes[64] = {};
  if (state.configured) {
    bytes[0] = state.palette;
    bytes[1] = state.startRow;
    for (unsigned i = 0; i < kTiles; ++i) {
      memcpy(bytes + 16 + 2 * i, &state.rowBytes[i], 2);
      bytes[48 + i] = state.rows[i];
    }
  }
  memcpy(memory, bytes, sizeof bytes);
}

void amx::release(State &state) { state = State(); }

/// Tiles are configured, and this one has rows.
static bool isValid(const State &state, unsigned tile) {
  return state.configured && tile < kTiles && state.rows[tile] != 0;
}

Fault amx::zero(State &state, unsigned tile) {
  if (!isValid(state, tile))
    return Fault::UD;
  state.tile[tile] = Tile();
  state.startRow = 0;
  return Fault::None;
}

/// May it be loaded or stored, from the row at which it was interrupted on?
static bool canMove(const State &state, unsigned tile) {
  return isValid(state, tile) && state.rowBytes[tile] % 4 == 0 &&
         state.startRow < state.rows[tile];
}

Fault amx::load(State &state, unsigned tile, const uint8_t *base,
                int64_t stride) {
  if (!canMove(state, tile))
    return Fault::UD;
  for (; state.startRow < state.rows[tile]; ++state.startRow) {
    uint8_t *row = state.tile[tile].row[state.startRow];
    memcpy(row, base + state.startRow * stride, state.rowBytes[tile]);
    memset(row + state.rowBytes[tile], 0, kRowBytes - state.rowBytes[tile]);
  }
  for (unsigned i = state.rows[tile]; i < kRows; ++i)
    memset(state.tile[tile].row[i], 0, kRowBytes);
  state.startRow = 0;
  return Fault::None;
}

Fault amx::store(State &state, unsigned tile, uint8_t *base, int64_t stride) {
  if (!canMove(state, tile))
    return Fault::UD;
  for (; state.startRow < state.rows[tile]; ++state.startRow)
    memcpy(base + state.startRow * stride,
           state.tile[tile].row[state.startRow], state.rowBytes[tile]);
  state.startRow = 0;
  return Fault::None;
}

/// dest: M x N, source1: M x K, source2: K x N, all in words of four bytes.
static bool canMultiply(const State &state, unsigned dest, unsigned source1,
                        unsigned source2) {
  if (dest == source1 || dest == source2 || source1 == source2)
    return false;
  for (unsigned tile : {dest, source1, source2})
    if (!isValid(state, tile) || state.rowBytes[tile] % 4)
      return false;
  return state.rowBytes[dest] == state.rowBytes[source2] &&
         state.rows[dest] == state.rows[source1] &&
         state.rowBytes[source1] / 4 == state.rows[source2] &&
         state.rowBytes[dest] <= kMaxN && state.rows[source2] <= kMaxK;
}

/// What follows a product: rows and columns past the configured ones are zero.
static void clearRest(State &state, unsigned tile) {
  for (unsigned m = 0; m < kRows; ++m) {
    unsigned from = m < state.rows[tile] ? state.rowBytes[tile] : 0;
    memset(state.tile[tile].row[m] + from, 0, kRowBytes - from);
  }
  state.startRow = 0;
}

/// A byte as a number of the given kind.
static int32_t extend(uint8_t byte, bool isUnsigned) {
  return isUnsigned ? int32_t(byte) : int32_t(int8_t(byte));
}

Fault amx::multiplyBytes(State &state, unsigned dest, unsigned source1,
                         unsigned source2, Signs signs) {
  if (!canMultiply(state, dest, source1, source2))
    return Fault::UD;
  const unsigned words = state.rowBytes[dest] / 4,
                 depth = state.rowBytes[source1] / 4;
  // The second source as numbers, once: [k][byte][n].
  int32_t b[kMaxK][4][kMaxN / 4];
  for (unsigned k = 0; k < depth; ++k)
    for (unsigned n = 0; n < words; ++n)
      for (unsigned byte = 0; byte < 4; ++byte)
        b[k][byte][n] = extend(state.tile[source2].row[k][4 * n + byte],
                               signs.unsigned2);
  for (unsigned m = 0; m < state.rows[dest]; ++m) {
    uint32_t sum[kMaxN / 4] = {};
    memcpy(sum, state.tile[dest].row[m], 4 * words);
    for (unsigned k = 0; k < depth; ++k)
      for (unsigned byte = 0; byte < 4; ++byte) {
        int32_t a = extend(state.tile[source1].row[m][4 * k + byte],
                           signs.unsigned1);
        for (unsigned n = 0; n < kMaxN / 4; ++n) // those past `words` are lost
          sum[n] += uint32_t(a * b[k][byte][n]);
      }
    memcpy(state.tile[dest].row[m], sum, 4 * words);
  }
  clearRest(state, dest);
  return Fault::None;
}

/// Denormals count as zeros, and become zeros.
static float flush(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

static float fromBf16(const uint8_t *bytes) {
  uint32_t word = uint32_t(bytes[0]) << 16 | uint32_t(bytes[1]) << 24;
  float x;
  memcpy(&x, &word, sizeof x);
  return flush(x);
}

Fault amx::multiplyBf16(State &state, unsigned dest, unsigned source1,
                        unsigned source2) {
  if (!canMultiply(state, dest, source1, source2))
    return Fault::UD;
  const unsigned words = state.rowBytes[dest] / 4,
                 depth = state.rowBytes[source1] / 4;
  for (unsigned m = 0; m < state.rows[dest]; ++m) {
    float sum[kMaxN / 4][2] = {};
    for (unsigned k = 0; k < depth; ++k)
      for (unsigned n = 0; n < words; ++n)
        for (unsigned half = 0; half < 2; ++half)
          sum[n][half] = flush(std::fma(
              fromBf16(state.tile[source1].row[m] + 4 * k + 2 * half),
              fromBf16(state.tile[source2].row[k] + 4 * n + 2 * half),
              sum[n][half]));
    for (unsigned n = 0; n < words; ++n) {
      float old;
      uint8_t *at = state.tile[dest].row[m] + 4 * n;
      memcpy(&old, at, sizeof old);
      float next = flush(flush(old) + flush(sum[n][0] + sum[n][1]));
      memcpy(at, &next, sizeof next);
    }
  }
  clearRest(state, dest);
  return Fault::None;
}
