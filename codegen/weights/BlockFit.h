//===- BlockFit.h - Fitting weights to GGUF's blocks ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_BLOCKFIT_H
#define SPARKC_CODEGEN_WEIGHTS_BLOCKFIT_H

#include "codegen/weights/BlockFormat.h"

namespace sparkc {

/// Fits `format.block` weights (finite, within kMaxScale's bound) to a block of
/// a form other than Zero. `importance`, if not null, has a factor >= 0 for
/// each weight's squared error; without it the factors are 1 + |w| / mean |w|
/// of the group.
///
/// Each group is fitted on its own: scales around the one that spans its
/// weights, each refitted by least squares to the codes it gives. Scales (and
/// minima) of a two-level form are then rounded to multiples of a common
/// factor, the codes chosen again, and the factors fitted to them, twice. All
/// machines give the same bits.
void fitBlock(const BlockFormat &format, const float *weights,
              const float *importance, BlockCodes &out);

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_BLOCKFIT_H
