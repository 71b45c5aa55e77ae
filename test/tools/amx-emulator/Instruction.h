//===- Instruction.h - Encodings of the tile instructions -------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_AMXEMULATOR_INSTRUCTION_H
#define SPARKC_TEST_AMXEMULATOR_INSTRUCTION_H

#include <cstdint>

namespace amx {

enum class Opcode {
  LdTileCfg,
  StTileCfg,
  TileRelease,
  TileZero,
  TileLoadD, ///< and TILELOADDT1
  TileStoreD,
  TdpBSSD,
  TdpBSUD,
  TdpBUSD,
  TdpBUUD,
  TdpBF16PS
};

/// The sixteen general registers, in the order of their numbers (rax, rcx,
/// rdx, rbx, rsp, rbp, rsi, rdi, r8 .. r15).
using Registers = uint64_t[16];

struct Instruction {
  Opcode opcode;
  unsigned bytes;
  /// ModRM.reg, ModRM.r/m and VEX.vvvv, where they name tiles. Of a product
  /// they are destination, first and second source.
  unsigned reg, rm, vvvv;
  /// Of a memory operand: base + displacement, and index << scale.
  uint64_t address, stride;
};

/// Decodes what stands at `code`; addresses come of the registers and, behind a
/// prefix of FS, `segmentBase`. False if it is no tile instruction, or one that
/// the processor refuses to decode.
bool decode(const uint8_t *code, const Registers &registers,
            uint64_t segmentBase, Instruction &result);

} // namespace amx

#endif // SPARKC_TEST_AMXEMULATOR_INSTRUCTION_H
