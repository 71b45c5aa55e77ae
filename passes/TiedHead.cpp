//===- TiedHead.cpp - A head that reads the embedding ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/TiedHead.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

SmallVector<LinearOp> sparkc::tiedHeads(EmbedOp embed) {
  SmallVector<LinearOp> heads;
  embed->getParentOfType<ModuleOp>().walk([&](LinearOp linear) {
    if (linear.getWeightAttr() == embed.getWeightAttr() &&
        !linear->getParentOfType<LayerOp>())
      heads.push_back(linear);
  });
  return heads;
}

WeightOp sparkc::untie(LinearOp head, WeightOp table) {
  auto module = table->getParentOfType<ModuleOp>();
  OpBuilder b(table);
  b.setInsertionPointAfter(llvm::to_vector(module.getOps<WeightOp>()).back());
  auto own =
      WeightOp::create(b, head.getLoc(), "lm_head", table.getType(),
                       table.getSource(), table.getTransformsAttr());
  head.setWeightAttr(FlatSymbolRefAttr::get(own.getSymNameAttr()));
  return own;
}
