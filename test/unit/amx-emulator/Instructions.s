# Tile instructions as functions: what each test executes, and decodes.
# llvm-mc assembles this; nothing here is known to the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
  .intel_syntax noprefix
  .text

.macro fn name, text:vararg
  .globl \name
  .type \name, @function
\name:
  \text
  ret
.endm

# Functions of (memory) and of (base, stride).
  fn load_config, ldtilecfg [rdi]
  fn store_config, sttilecfg [rdi]
  fn release, tilerelease

.irp n, 0, 1, 2, 3, 4, 5, 6, 7
  fn zero_\n, tilezero tmm\n
  fn load_\n, tileloadd tmm\n, [rdi + rsi]
  fn store_\n, tilestored [rdi + rsi], tmm\n
.endr
  fn load_t1_5, tileloaddt1 tmm5, [rdi + rsi]

# Products of tiles in three arrangements.
.irp op, tdpbssd, tdpbsud, tdpbusd, tdpbuud, tdpbf16ps
  fn \op\()_012, \op tmm0, tmm1, tmm2
  fn \op\()_537, \op tmm5, tmm3, tmm7
  fn \op\()_760, \op tmm7, tmm6, tmm0
.endr

# Addresses.
  fn load_scaled, tileloadd tmm0, [rdi + rsi*4]
  fn load_disp8, tileloadd tmm0, [rdi + rsi + 64]
  fn load_disp8_back, tileloadd tmm0, [rdi + rsi - 64]
  fn load_disp32, tileloadd tmm0, [rdi + rsi + 4096]
  fn load_no_index, tileloadd tmm0, [rdi]

  .globl load_high
load_high:
  push r12
  push r13
  mov r13, rdi
  mov r12, rsi
  .globl load_high_itself
load_high_itself:
  tileloadd tmm6, [r13 + r12*2 - 128]
  pop r13
  pop r12
  ret

  .globl store_rsp
store_rsp:
  sub rsp, 1032
  .globl store_rsp_itself
store_rsp_itself:
  tilestored [rsp + rsi + 8], tmm3
  mov rcx, 128
  lea rdx, [rsp + 8]
1:
  mov rax, [rdx + rcx*8 - 8]
  mov [rdi + rcx*8 - 8], rax
  dec rcx
  jnz 1b
  add rsp, 1032
  ret

# Of the stack pointer, r13 and nothing as base; a configuration behind a scale.
  fn config_absolute, ldtilecfg [rsi*8 + 16]
  fn config_scaled, ldtilecfg [rdi + rsi*2 + 8]
  fn config_rip, ldtilecfg [rip + some_config]

# Not tile instructions, or no good ones: the processor refuses them all.
  fn not_a_tile, vpaddd xmm0, xmm1, xmm2
  fn undefined, ud2
  .globl load_without_sib
load_without_sib: # VEX.128.F2.0F38.W0 4B, ModRM without SIB
  .byte 0xc4, 0xe2, 0x7b, 0x4b, 0x07
  ret
  .globl load_with_vvvv
load_with_vvvv: # vvvv must be 1111
  .byte 0xc4, 0xe2, 0x73, 0x4b, 0x04, 0x37
  ret
  .globl load_tile_8
load_tile_8: # VEX.R: tile 8
  .byte 0xc4, 0x62, 0x7b, 0x4b, 0x04, 0x37
  ret
  .globl product_long
product_long: # VEX.L
  .byte 0xc4, 0xe2, 0x6f, 0x5e, 0xc1
  ret
  .globl product_wide
product_wide: # VEX.W
  .byte 0xc4, 0xe2, 0xeb, 0x5e, 0xc1
  ret

  .section .rodata
  .balign 64
  .globl some_config
some_config: # tiles 0 to 2: 2 x 8, 3 x 12 and 4 x 16 bytes
  .byte 1, 0
  .zero 14
  .short 8, 12, 16, 0, 0, 0, 0, 0
  .zero 16
  .byte 2, 3, 4, 0, 0, 0, 0, 0
  .zero 8
  .section .note.GNU-stack,"",@progbits
