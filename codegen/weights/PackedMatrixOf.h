//===- PackedMatrixOf.h - What a step.pack lays out -------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the op to the layout: PackedLayout.h knows no IR, and the step dialect no
/// layouts.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_PACKEDMATRIXOF_H
#define SPARKC_CODEGEN_WEIGHTS_PACKEDMATRIXOF_H

#include "codegen/weights/PackedLayout.h"
#include "dialect/step/Step.h"

namespace sparkc {

/// What a step.pack of a known layout says, as the packer wants it.
inline PackedMatrix packedMatrix(step::PackOp pack) {
  PackedMatrix matrix;
  matrix.layout = *layoutFromName(pack.getLayout());
  matrix.cols = pack.getCols();
  matrix.group = pack.getGroup();
  for (auto run : pack.getRuns().getAsRange<step::RunAttr>()) {
    RowRun row;
    row.heads = run.getHeads(), row.width = run.getWidth();
    row.stride = run.getStride();
    row.weightA = run.getWeightA(), row.baseA = run.getBaseA();
    row.weightB = run.getWeightB(), row.baseB = run.getBaseB();
    matrix.runs.push_back(row);
  }
  return matrix;
}

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_PACKEDMATRIXOF_H
