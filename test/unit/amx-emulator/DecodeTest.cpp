//===- DecodeTest.cpp - llvm-mc's encodings, read back --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/tools/amx-emulator/Instruction.h"
#include "test/unit/amx-emulator/Instructions.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace amx;

namespace {

const uint8_t *bytesOf(TileFn *fn) {
  return reinterpret_cast<const uint8_t *>(fn);
}

/// rax = 1000, rcx = 1001, ... r15 = 1015, thousands apart.
struct Values {
  Values() {
    for (uint64_t i = 0; i < 16; ++i)
      of[i] = 1000 * (i + 1) + i;
  }
  Registers of;
};
constexpr unsigned rsp = 4, rsi = 6, rdi = 7, r12 = 12, r13 = 13;

TEST(Decode, RegistersOfEveryForm) {
  struct {
    TileFn *fn;
    Opcode opcode;
    unsigned reg, rm, vvvv;
  } cases[] = {
      {release, Opcode::TileRelease, 0, 0, 0},
      {zero_0, Opcode::TileZero, 0, 0, 0},
      {zero_7, Opcode::TileZero, 7, 0, 0},
      {load_3, Opcode::TileLoadD, 3, 4, 0},
      {load_t1_5, Opcode::TileLoadD, 5, 4, 0},
      {store_6, Opcode::TileStoreD, 6, 4, 0},
      {load_config, Opcode::LdTileCfg, 0, rdi, 0},
      {store_config, Opcode::StTileCfg, 0, rdi, 0},
      {tdpbssd_012, Opcode::TdpBSSD, 0, 1, 2},
      {tdpbssd_537, Opcode::TdpBSSD, 5, 3, 7},
      {tdpbsud_760, Opcode::TdpBSUD, 7, 6, 0},
      {tdpbusd_537, Opcode::TdpBUSD, 5, 3, 7},
      {tdpbuud_012, Opcode::TdpBUUD, 0, 1, 2},
      {tdpbf16ps_760, Opcode::TdpBF16PS, 7, 6, 0},
  };
  Values values;
  for (auto &c : cases) {
    Instruction i;
    size_t number = &c - cases;
    ASSERT_TRUE(decode(bytesOf(c.fn), values.of, 0, i)) << number;
    EXPECT_EQ(i.opcode, c.opcode) << number;
    EXPECT_EQ(i.reg, c.reg) << number;
    EXPECT_EQ(i.rm, c.rm) << number;
    EXPECT_EQ(i.vvvv, c.vvvv) << number;
    EXPECT_EQ(bytesOf(c.fn)[i.bytes], 0xc3) << number; // ret
  }
}

TEST(Decode, Addresses) {
  Values v;
  const uint64_t *of = v.of;
  uint64_t relative = uint64_t(reinterpret_cast<uintptr_t>(some_config));
  struct {
    TileFn *fn;
    uint64_t address, stride;
  } cases[] = {
      {load_0, of[rdi], of[rsi]},
      {load_scaled, of[rdi], 4 * of[rsi]},
      {load_disp8, of[rdi] + 64, of[rsi]},
      {load_disp8_back, of[rdi] - 64, of[rsi]},
      {load_disp32, of[rdi] + 4096, of[rsi]},
      {load_no_index, of[rdi], 0},
      {load_high_itself, of[r13] - 128, 2 * of[r12]},
      {store_rsp_itself, of[rsp] + 8, of[rsi]},
      {load_config, of[rdi], 0},
      {config_absolute, 8 * of[rsi] + 16, 0},
      {config_scaled, of[rdi] + 2 * of[rsi] + 8, 0},
      {config_rip, relative, 0},
  };
  for (auto &c : cases) {
    Instruction i;
    size_t number = &c - cases;
    ASSERT_TRUE(decode(bytesOf(c.fn), v.of, 0, i)) << number;
    EXPECT_EQ(i.address, c.address) << number;
    EXPECT_EQ(i.stride, c.stride) << number;
  }
}

TEST(Decode, Prefixes) {
  Values v;
  uint8_t code[16] = {0x64}; // fs
  memcpy(code + 1, bytesOf(load_disp8), 9);
  Instruction i;
  ASSERT_TRUE(decode(code, v.of, 1 << 20, i));
  EXPECT_EQ(i.address, v.of[rdi] + 64 + (1 << 20));
  EXPECT_EQ(i.bytes, 8u);
  code[0] = 0x67; // addresses of 32 bits
  v.of[rdi] += uint64_t(5) << 32;
  v.of[rsi] = 0xffffffc0; // a stride of -64
  ASSERT_TRUE(decode(code, v.of, 1 << 20, i));
  EXPECT_EQ(i.address, uint32_t(v.of[rdi]) + 64);
  EXPECT_EQ(int64_t(i.stride), -64);
  for (uint8_t refused : {0x66, 0xf2, 0xf3, 0xf0, 0x48}) {
    code[0] = refused;
    EXPECT_FALSE(decode(code, v.of, 0, i)) << int(refused);
  }
}

TEST(Decode, RefusesOthers) {
  Values v;
  Instruction i;
  for (TileFn *fn : {not_a_tile, undefined, load_without_sib, load_with_vvvv,
                     load_tile_8, product_long, product_wide})
    EXPECT_FALSE(decode(bytesOf(fn), v.of, 0, i));
}

/// Every ModRM byte of every opcode and prefix: what is taken is what the manual
/// lists, and nothing else.
TEST(Decode, AllModRM) {
  Values v;
  int taken[4][4] = {}; // [opcode][prefix]
  const uint8_t opcodes[] = {0x49, 0x4b, 0x5c, 0x5e};
  for (int o = 0; o < 4; ++o)
    for (int prefix = 0; prefix < 4; ++prefix)
      for (int modrm = 0; modrm < 256; ++modrm) {
        const uint8_t code[16] = {0xc4, 0xe2, uint8_t(0x78 | prefix),
                                  opcodes[o], uint8_t(modrm), 0x37};
        Instruction i;
        taken[o][prefix] += decode(code, v.of, 0, i);
      }
  // 49: NP memory of reg 0 (3 * 8) and release; 66 memory; F2 eight zeros.
  // 4B: memory with SIB, three modes of eight tiles. 5C, 5E: all of mod 3.
  const int want[4][4] = {
      {25, 24, 0, 8}, {0, 24, 24, 24}, {0, 0, 64, 0}, {64, 64, 64, 64}};
  for (int o = 0; o < 4; ++o)
    for (int prefix = 0; prefix < 4; ++prefix)
      EXPECT_EQ(taken[o][prefix], want[o][prefix]) << o << " " << prefix;
}

} // namespace
