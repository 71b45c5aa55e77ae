//===- StepLowering.h - How step-lower-to-llvm works ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// StepLowerToLLVM.cpp makes functions, StepLowerPhase.cpp fills those of
// phases, StepLowerBlock.cpp those of phases that work on blocks of tokens.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_PASSES_STEPLOWERING_H
#define SPARKC_PASSES_STEPLOWERING_H

#include "codegen/microkernels/Kernels.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace sparkc {

/// A phase as a function of its own.
struct Outlined {
  mlir::LLVM::LLVMFuncOp function;
  /// What it uses from above, in the order of its arguments.
  llvm::SmallVector<mlir::Value> captured;
  /// Its index in the descriptor's table.
  int64_t index = 0;
  /// Where its weights start in those of the function that calls it.
  int64_t weights = 0;
};

class StepLowering {
public:
  StepLowering(mlir::ModuleOp module, bool sanitizeThread)
      : module(module), symbols(module), b(module.getContext()),
        sanitizeThread(sanitizeThread) {}
  llvm::LogicalResult run();

private:
  mlir::Type ptr() { return mlir::LLVM::LLVMPointerType::get(b.getContext()); }
  /// Its name is `name`, or that and a few "x" where something else has it.
  mlir::LLVM::LLVMFuncOp makeFunction(llvm::StringRef name,
                                      llvm::ArrayRef<mlir::Type> args,
                                      mlir::Location loc,
                                      mlir::Type result = {});
  /// An emitter at the start of a function (ctx, tid, n, weights, kv, ...).
  Emitter open(mlir::LLVM::LLVMFuncOp function);
  llvm::LogicalResult lowerFunc(step::FuncOp func, llvm::StringRef scheduled,
                                bool profile);
  llvm::FailureOr<Outlined> outline(step::PhaseOp phase, llvm::StringRef name);
  mlir::LLVM::LLVMFuncOp sharedFunction(step::PhaseOp phase,
                                          size_t captured);
  llvm::LogicalResult lowerPhase(step::PhaseOp phase,
                                 mlir::LLVM::LLVMFuncOp function,
                                 mlir::ValueRange captured);
  llvm::LogicalResult lowerWork(Emitter &e, step::PhaseOp phase);
  mlir::Value workOf(Emitter &e, step::PhaseOp phase, int64_t total);
  /// Where thread `thread`'s share of the work begins.
  mlir::Value shareAt(Emitter &e, mlir::Value work, mlir::Value thread) {
    return e.udiv(e.mul(work, thread), e.n);
  }
  void emitSharedWork(Emitter &e, mlir::Value work,
                      llvm::function_ref<void(mlir::Value, mlir::Value)> run);
  llvm::LogicalResult lowerPhaseOp(Emitter &e, mlir::Operation &op);
  llvm::LogicalResult lowerTiles(Emitter &e, step::TilesOp tiles,
                                 int64_t firstByte, mlir::Value loByte,
                                 mlir::Value hiByte);
  mlir::LLVM::LLVMFuncOp tileFunction(step::TilesOp tiles,
                                      const TileKernel &kernel, int64_t count);
  llvm::LogicalResult lowerEpilogueOp(Emitter &e, mlir::Operation &op);
  llvm::LogicalResult lowerTokensOp(Emitter &e, step::TokensOp tokens);

  // Tiles times blocks of tokens.
  llvm::LogicalResult lowerBlocks(Emitter &e,
                                  llvm::ArrayRef<step::TilesOp> tiles);
  llvm::LogicalResult lowerMacro(Emitter &e, step::TilesOp tiles,
                                 const BlockKernel &kernel,
                                 mlir::Value macro, mlir::Value firstToken);
  mlir::LLVM::LLVMFuncOp blockFunction(step::TilesOp tiles,
                                       const BlockKernel &kernel);

  void declareSanitizer();
  void makeBarrier();
  /// A slot, or its row for the token that the emitter stands at.
  mlir::Value slotAddress(Emitter &e, llvm::StringRef name) {
    return rowAddress(e, name, e.token);
  }
  mlir::Value rowAddress(Emitter &e, llvm::StringRef name, mlir::Value token);
  mlir::Value frequencies(Emitter &e, spark::RopeAttr rope);
  void lowerRopeTable(Emitter &e, step::RopeTableOp table);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  mlir::OpBuilder b;
  bool sanitizeThread;
  mlir::LLVM::LLVMFuncOp barrier;
  /// By the schedule's names, of both forms.
  llvm::StringMap<mlir::LLVM::LLVMFuncOp> lowered;
  /// Of tile and block kernels, by kernel and shape.
  llvm::StringMap<mlir::LLVM::LLVMFuncOp> kernels;
  llvm::MapVector<mlir::Operation *, Outlined> outlined;
  /// The descriptor's phase table: name, kind, bytes.
  llvm::SmallVector<mlir::Attribute> phases;
  /// Step values to addresses and vectors, in the function being emitted.
  mlir::IRMapping map;
};

} // namespace sparkc

#endif // SPARKC_PASSES_STEPLOWERING_H
