//===- Pipelines.cpp - The stages of the compiler -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"
#include "passes/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sparkc;

void sparkc::buildGraphPipeline(OpPassManager &pm,
                                const GraphPipelineOptions &options) {
  // builtin, func, spark
  pm.addPass(createSparkCheckConfig());
  if (options.rotate) {
    SparkRotateOptions rotate;
    rotate.seed = options.rotate;
    pm.addPass(createSparkRotate(rotate));
  }
  SparkQuantizeOptions quantize;
  quantize.scheme = options.scheme;
  quantize.rules = options.rules;
  quantize.keepCodes = options.keepCodes;
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

void sparkc::buildSchedulePipeline(OpPassManager &pm,
                                   const SchedulePipelineOptions &options) {
  // step (and the weights and config of spark)
  pm.addPass(createSparkToStep());
  pm.addPass(createStepMergeBarriers());
  pm.addPass(createStepPrefetch());
  pm.addPass(createStepAddPrefill());
  pm.addPass(createStepPlanArena());
}

void sparkc::buildCodegenPipeline(OpPassManager &pm,
                                  const CodegenPipelineOptions &options) {
  // step
  StepSelectMicrokernelOptions select;
  select.isa = options.isa;
  select.ahead = options.ahead;
  select.once = options.once;
  select.serial = options.serial;
  select.bf16 = options.bf16;
  pm.addPass(createStepSelectMicrokernel(select));
  pm.addPass(createStepVerifyStatic());
  // llvm, arith, math, vector, scf
  StepLowerToLLVMOptions lower;
  lower.sanitizeThread = options.sanitizeThread;
  pm.addPass(createStepLowerToLLVM(lower));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // llvm
  pm.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.amx = true;
  pm.addPass(createConvertVectorToLLVMPass(vectors));
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createStepVerifyStatic());
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
  PassPipelineRegistration<SchedulePipelineOptions>(
      "sparkc-schedule-pipeline",
      "Schedules a fused model: phases, barriers, offsets",
      buildSchedulePipeline);
  PassPipelineRegistration<CodegenPipelineOptions>(
      "sparkc-codegen-pipeline", "Lowers a schedule to the LLVM dialect",
      buildCodegenPipeline);
}
