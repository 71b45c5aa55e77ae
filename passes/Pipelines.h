//===- Pipelines.h - The stages of the compiler -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A named pipeline for each stage, used alike by sparkc and sparkc-opt.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_PIPELINES_H
#define SPARKC_PASSES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace sparkc {

struct GraphPipelineOptions : mlir::PassPipelineOptions<GraphPipelineOptions> {
  Option<std::string> scheme{
      *this, "scheme",
      llvm::cl::desc("How matrices are stored: stored, f32, bf16 or a grid"),
      llvm::cl::init("stored")};
  Option<std::string> rules{
      *this, "rules", llvm::cl::desc("Exceptions: GLOB=SCHEME, by commas"),
      llvm::cl::init("")};
  Option<uint64_t> rotate{
      *this, "rotate",
      llvm::cl::desc("Seed of rotations of weights; 0: there are none"),
      llvm::cl::init(0)};
  Option<bool> keepCodes{
      *this, "keep-codes",
      llvm::cl::desc("Only rules change matrices that are codes in their file"),
      llvm::cl::init(false)};
};

struct FusePipelineOptions : mlir::PassPipelineOptions<FusePipelineOptions> {};

struct SchedulePipelineOptions
    : mlir::PassPipelineOptions<SchedulePipelineOptions> {};

struct CodegenPipelineOptions
    : mlir::PassPipelineOptions<CodegenPipelineOptions> {
  Option<std::string> isa{
      *this, "isa",
      llvm::cl::desc("avx2, avxvnni, avx512, avx512vnni or amx"),
      llvm::cl::init("avx2")};
  Option<int64_t> ahead{
      *this, "ahead",
      llvm::cl::desc("Bytes ahead at which weights are prefetched; 0: not"),
      llvm::cl::init(3072)};
  Option<bool> once{*this, "once",
                    llvm::cl::desc("Prefetch them past the L2 cache"),
                    llvm::cl::init(false)};
  Option<bool> serial{
      *this, "serial",
      llvm::cl::desc(
          "Read one unit of weights after the other, not two side by side"),
      llvm::cl::init(false)};
  Option<bool> bf16{*this, "bf16",
                    llvm::cl::desc("The machine has AVX512-BF16"),
                    llvm::cl::init(false)};
  Option<bool> sanitizeThread{
      *this, "sanitize-thread",
      llvm::cl::desc("Announce accesses to shared memory to ThreadSanitizer"),
      llvm::cl::init(false)};
};

/// sparkc-graph-pipeline: from an imported graph to one whose weights have the
/// types in which they will be stored.
void buildGraphPipeline(mlir::OpPassManager &pm,
                        const GraphPipelineOptions &options);

/// sparkc-fuse-pipeline: from there to four fused linears and one attention a
/// layer.
void buildFusePipeline(mlir::OpPassManager &pm,
                       const FusePipelineOptions &options);

/// sparkc-schedule-pipeline: to phases, barriers, packs and placed slots.
void buildSchedulePipeline(mlir::OpPassManager &pm,
                           const SchedulePipelineOptions &options);

/// sparkc-codegen-pipeline: to functions of the LLVM dialect.
void buildCodegenPipeline(mlir::OpPassManager &pm,
                          const CodegenPipelineOptions &options);

/// Makes the pipelines known by name. Call once.
void registerSparkcPipelines();

} // namespace sparkc

#endif // SPARKC_PASSES_PIPELINES_H
