//===- AmxGemm.h - Block kernels on tile registers --------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_MICROKERNELS_AMXGEMM_H
#define SPARKC_CODEGEN_MICROKERNELS_AMXGEMM_H

#include "codegen/microkernels/Kernels.h"

namespace sparkc {

/// Row tiles of a call of these and of the host, as kBlockTiles are of the
/// others.
constexpr int64_t kAmxTiles = 6;

llvm::ArrayRef<BlockKernel> amxBlockKernels();

/// Most row tiles that a call of \p kernel multiplies.
int64_t tilesOfCall(const BlockKernel &kernel);

} // namespace sparkc

#endif // SPARKC_CODEGEN_MICROKERNELS_AMXGEMM_H
