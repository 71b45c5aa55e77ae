//===- DenseAvx2.cpp - Products of matrices with AVX2 ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define DENSE_NAME denseAvx2
#define DENSE_EIGEN EigenAvx2
#include "codegen/calibrate/Dense.inc"
