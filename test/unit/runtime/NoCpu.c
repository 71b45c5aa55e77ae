/*===- NoCpu.c - A machine that runs nothing ------------------------------===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 * Preloaded, it takes the place of the runtime's questions in Cpu.h.
 *===----------------------------------------------------------------------===*/
#include <stdint.h>

uint32_t sparkc_cpu_query(void);
uint32_t sparkc_cpu_query(void) { return 0; }
