//===- Machine.cpp - What the processor, or its emulator, runs ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/Machine.h"
#include "runtime/Cpu.h"

bool sparkc::test::runsVnni() {
  return (sparkc_cpu_query() & SPARKC_CPU_HAS_AVX512VNNI) != 0;
}

bool sparkc::test::runsAmx() {
  return (sparkc_cpu_query() & SPARKC_CPU_HAS_AMX) && sparkc_cpu_permit_amx();
}
