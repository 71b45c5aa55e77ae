//===- GridOf.h - Grids as attributes ---------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_GRIDOF_H
#define SPARKC_CODEGEN_WEIGHTS_GRIDOF_H

#include "codegen/weights/BlockFormat.h"
#include "dialect/spark/Spark.h"

namespace sparkc {

static_assert(int(spark::GridForm::zero) == int(ScaleForm::Zero) &&
                  int(spark::GridForm::minimum) == int(ScaleForm::Minimum) &&
                  int(spark::GridForm::super_minimum) ==
                      int(ScaleForm::SuperMinimum) &&
                  int(spark::GridForm::super) == int(ScaleForm::Super),
              "the dialect and the layouts have the same forms");

inline GridSpec gridOf(spark::GridAttr attr) {
  return {int(attr.getBits()), int(attr.getGroup()), attr.getSymmetric(),
          static_cast<ScaleForm>(attr.getForm())};
}

inline spark::GridAttr attrOf(mlir::MLIRContext *context,
                              const GridSpec &grid) {
  assert(grid.form != ScaleForm::Symmetric && "what `symmetric` says");
  return spark::GridAttr::get(context, grid.bits, grid.group, grid.symmetric,
                              static_cast<spark::GridForm>(grid.form));
}

/// The grid that the codes of a source lie on; none for floats.
inline std::optional<GridSpec> storedGrid(spark::SourceAttr source) {
  if (source.getGroup())
    return GridSpec{4, int(source.getGroup())};
  if (const BlockFormat *format = blockFormat(source.getDtype()))
    return format->grid;
  return std::nullopt;
}

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_GRIDOF_H
