//===- Spark.h - The spark dialect ------------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spark-X2.5 on tensors. See SparkDialect.td and SparkOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_DIALECT_SPARK_SPARK_H
#define SPARKC_DIALECT_SPARK_SPARK_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/spark/SparkDialect.h.inc"

#include "dialect/spark/SparkEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/spark/SparkAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/spark/SparkOps.h.inc"

namespace sparkc {

/// Columns of an activation, tensor<tokens x features>.
inline int64_t features(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getDimSize(1);
}

} // namespace sparkc

#endif // SPARKC_DIALECT_SPARK_SPARK_H
