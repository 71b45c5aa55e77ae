//===- Instruction.cpp - Encodings of the tile instructions ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   C4  R X B m-mmmm  W vvvv L pp  opcode  ModRM [SIB] [displacement]
//
// R, X, B and vvvv are inverted. All tile instructions have map 2 (0F 38), W 0
// and L 0.
//
//===----------------------------------------------------------------------===//

#include "test/tools/amx-emulator/Instruction.h"

#include <cstring>

using namespace amx;

namespace {

enum Prefix { NP, P66, PF3, PF2 };

/// A row of the manual's opcode tables. `form` is what ModRM must be.
enum class Form { Memory, MemoryWithSib, Nothing, OneTile, ThreeTiles };

struct Row {
  uint8_t opcode;
  Prefix prefix;
  Form form;
  Opcode meaning;
};

const Row rows[] = {
    {0x49, NP, Form::Memory, Opcode::LdTileCfg},
    {0x49, P66, Form::Memory, Opcode::StTileCfg},
    {0x49, NP, Form::Nothing, Opcode::TileRelease},
    {0x49, PF2, Form::OneTile, Opcode::TileZero},
    {0x4b, PF2, Form::MemoryWithSib, Opcode::TileLoadD},
    {0x4b, P66, Form::MemoryWithSib, Opcode::TileLoadD},
    {0x4b, PF3, Form::MemoryWithSib, Opcode::TileStoreD},
    {0x5e, PF2, Form::ThreeTiles, Opcode::TdpBSSD},
    {0x5e, PF3, Form::ThreeTiles, Opcode::TdpBSUD},
    {0x5e, P66, Form::ThreeTiles, Opcode::TdpBUSD},
    {0x5e, NP, Form::ThreeTiles, Opcode::TdpBUUD},
    {0x5c, PF3, Form::ThreeTiles, Opcode::TdpBF16PS},
};

struct ModRM {
  unsigned mod, reg, rm;
};

bool matches(const Row &row, const ModRM &modrm) {
  switch (row.form) {
  case Form::Memory:
    return modrm.mod != 3 && modrm.reg == 0;
  case Form::MemoryWithSib:
    return modrm.mod != 3 && modrm.rm == 4;
  case Form::Nothing:
    return modrm.mod == 3 && modrm.reg == 0 && modrm.rm == 0;
  case Form::OneTile:
    return modrm.mod == 3 && modrm.rm == 0;
  case Form::ThreeTiles:
    return modrm.mod == 3;
  }
  return false;
}

} // namespace

/// A displacement of one or four bytes.
static uint64_t displacement(const uint8_t *&at, unsigned bytes) {
  int32_t value = 0;
  if (bytes == 1)
    value = int8_t(*at);
  else
    memcpy(&value, at, 4);
  at += bytes;
  return uint64_t(int64_t(value));
}

bool amx::decode(const uint8_t *code, const Registers &registers,
                 uint64_t segmentBase, Instruction &result) {
  const uint8_t *at = code;
  bool shortAddress = false, hasSegment = false;
  for (; *at == 0x67 || *at == 0x64 || *at == 0x65 || *at == 0x2e ||
         *at == 0x36 || *at == 0x3e || *at == 0x26;
       ++at) {
    shortAddress |= *at == 0x67;
    hasSegment |= *at == 0x64 || *at == 0x65;
  }
  if (at[0] != 0xc4)
    return false;
  const bool r = !(at[1] & 0x80), x = !(at[1] & 0x40), b = !(at[1] & 0x20);
  const unsigned map = at[1] & 0x1f, vvvv = ~(at[2] >> 3) & 0xf;
  const bool w = at[2] & 0x80, l = at[2] & 0x04;
  const auto prefix = Prefix(at[2] & 3);
  const uint8_t opcode = at[3];
  const ModRM modrm = {unsigned(at[4] >> 6), unsigned(at[4] >> 3 & 7),
                       unsigned(at[4] & 7)};
  at += 5;
  if (map != 2 || w || l)
    return false;

  const Row *found = nullptr;
  for (const Row &row : rows)
    if (row.opcode == opcode && row.prefix == prefix && matches(row, modrm))
      found = &row;
  if (!found)
    return false;
  // There are eight tiles; a register field that names none must be unused.
  const bool three = found->form == Form::ThreeTiles;
  if (r || (!three && vvvv) || (three && (b || vvvv > 7)))
    return false;
  result = {};
  result.opcode = found->meaning;
  result.reg = modrm.reg;
  result.rm = modrm.rm;
  result.vvvv = vvvv;

  if (modrm.mod != 3) {
    unsigned base = modrm.rm | (b ? 8 : 0), scale = 0, index = 4;
    bool hasSib = modrm.rm == 4;
    if (hasSib) {
      scale = *at >> 6;
      index = (*at >> 3 & 7) | (x ? 8 : 0);
      base = (*at & 7) | (b ? 8 : 0);
      ++at;
    }
    const bool noBase = modrm.mod == 0 && (base & 7) == 5;
    const bool ripRelative = noBase && !hasSib;
    uint64_t offset = 0;
    if (modrm.mod == 1)
      offset = displacement(at, 1);
    else if (modrm.mod == 2 || noBase)
      offset = displacement(at, 4);
    if (ripRelative)
      result.address = uint64_t(uintptr_t(at));
    else if (!noBase)
      result.address = registers[base];
    result.address += offset;
    // Index 4 is none: tile loads then have a stride of 0.
    if (index != 4)
      result.stride = registers[index] << scale;
    if (found->form == Form::Memory) {
      result.address += result.stride;
      result.stride = 0;
    }
    if (shortAddress) {
      result.address = uint32_t(result.address);
      result.stride = uint64_t(int64_t(int32_t(result.stride)));
    }
    if (hasSegment)
      result.address += segmentBase;
  }
  result.bytes = unsigned(at - code);
  return true;
}
