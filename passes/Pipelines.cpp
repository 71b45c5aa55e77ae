//===- Pipelines.cpp - The stages of the compiler -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace sparkc;

void sparkc::buildGraphPipeline(OpPassManager &pm,
                                const GraphPipelineOptions &options) {
  // builtin, func, spark
  pm.addPass(createSparkCheckConfig());
  SparkQuantizeOptions quantize;
  quantize.scheme = options.scheme;
  pm.addPass(createSparkQuantize(quantize));
}

void sparkc::buildFusePipeline(OpPassManager &pm,
                               const FusePipelineOptions &options) {
  // builtin, func, spark; afterwards every layer is four spark.fused_linear and
  // one spark.attention.
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createSparkFuseHeadGate());
  func.addPass(createSparkFuseNorm());
  func.addPass(createSparkFuseRopeKV());
  func.addPass(createSparkFuseGeglu());
  func.addPass(createSparkFuseResidual());
}

void sparkc::registerSparkcPipelines() {
  PassPipelineRegistration<GraphPipelineOptions>(
      "sparkc-graph-pipeline",
      "Checks an imported graph and decides how its weights are stored",
      buildGraphPipeline);
  PassPipelineRegistration<FusePipelineOptions>(
      "sparkc-fuse-pipeline",
      "Fuses each layer into four linears and one attention",
      buildFusePipeline);
}
