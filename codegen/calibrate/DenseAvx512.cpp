//===- DenseAvx512.cpp - Products of matrices with AVX-512 ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define DENSE_NAME denseAvx512
#define DENSE_EIGEN EigenAvx512
#include "codegen/calibrate/Dense.inc"
