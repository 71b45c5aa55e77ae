//===- Machine.h - What the processor, or its emulator, runs ----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_KERNELS_MACHINE_H
#define SPARKC_TEST_UNIT_KERNELS_MACHINE_H

namespace sparkc::test {

/// Of AVX-512-VNNI; of AMX, whose use it asks for.
bool runsVnni();
bool runsAmx();

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_KERNELS_MACHINE_H
