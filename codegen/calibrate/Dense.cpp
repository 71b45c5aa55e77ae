//===- Dense.cpp - The machine's products of matrices ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Dense.h"

namespace sparkc {

extern const DenseKernels denseAvx2, denseAvx512;

const DenseKernels *denseKernels() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return nullptr;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
             ? &denseAvx512
             : &denseAvx2;
}

} // namespace sparkc
