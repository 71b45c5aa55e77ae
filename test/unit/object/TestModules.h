//===- TestModules.h - Small modules in the LLVM dialect --------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_OBJECT_TESTMODULES_H
#define SPARKC_TEST_UNIT_OBJECT_TESTMODULES_H

#include "test/unit/object/LoadedObject.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

namespace sparkc::test {

/// One exported function and two private ones.
inline const char addOneText[] = R"(
llvm.func internal @step_phase_0(%x: i64) -> i64 attributes {no_inline} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %sum = llvm.add %x, %one : i64
  llvm.return %sum : i64
}
llvm.func private @step_phase_1(%x: i64) -> i64 attributes {no_inline} {
  %y = llvm.call @step_phase_0(%x) : (i64) -> i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %z = llvm.mul %y, %two : i64
  llvm.return %z : i64
}
llvm.func @add_one(%x: i64) -> i64 {
  %y = llvm.call @step_phase_1(%x) : (i64) -> i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %z = llvm.sdiv %y, %two : i64
  llvm.return %z : i64
}
)";

/// Loops that LLVM's idiom pass would turn into memset and memcpy.
inline const char memoryText[] = R"(
llvm.func @clear(%to: !llvm.ptr {llvm.noalias}, %n: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%zero : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^body, ^done
^body:
  %p = llvm.getelementptr %to[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %zero, %p : i64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^done:
  llvm.return
}
llvm.func @copy(%to: !llvm.ptr {llvm.noalias}, %from: !llvm.ptr {llvm.noalias},
                %n: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%zero : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^body, ^done
^body:
  %s = llvm.getelementptr %from[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %p = llvm.getelementptr %to[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %v = llvm.load %s : !llvm.ptr -> i64
  llvm.store %v, %p : i64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^done:
  llvm.return
}
)";

/// *p = *p * *p + *p on 16 floats.
inline const char scaleText[] = R"(
llvm.func @scale(%p: !llvm.ptr) {
  %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
  %y = llvm.fmul %x, %x : vector<16xf32>
  %z = llvm.fadd %y, %x : vector<16xf32>
  llvm.store %z, %p {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
  llvm.return
}
)";

/// A call of a function that is not there.
inline const char undefinedText[] = R"(
llvm.func @elsewhere(i64) -> i64
llvm.func @calls(%x: i64) -> i64 {
  %y = llvm.call @elsewhere(%x) : (i64) -> i64
  llvm.return %y : i64
}
)";

/// Parsed text, with the context that it lives in.
class TestModule {
public:
  explicit TestModule(const char *text) {
    context.loadDialect<mlir::LLVM::LLVMDialect, mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
  mlir::ModuleOp operator*() { return *module; }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The target of a CPU that is known to be good.
inline TargetSpec target(const char *cpu) {
  return llvm::cantFail(resolveTarget(cpu));
}

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_OBJECT_TESTMODULES_H
