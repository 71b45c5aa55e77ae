//===- Emit.cpp - LLVM dialect to LLVM IR, assembly and object ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/Emit.h"

#include "sparkc_abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;
using namespace sparkc;

/// Makes every definition but \p exports internal. Private linkage too: its
/// names would not reach the symbol table.
static Error setLinkage(Module &module, ArrayRef<StringRef> exports) {
  for (StringRef name : exports) {
    GlobalValue *value = module.getNamedValue(name);
    if (!value || value->isDeclaration())
      return createStringError("the module does not define the symbol '" +
                               name + "' that it must export");
  }
  for (GlobalValue &value : module.global_values()) {
    if (value.isDeclaration())
      continue;
    if (is_contained(exports, value.getName())) {
      value.setLinkage(GlobalValue::ExternalLinkage);
      value.setVisibility(GlobalValue::DefaultVisibility);
      continue;
    }
    value.setVisibility(GlobalValue::DefaultVisibility);
    value.setLinkage(GlobalValue::InternalLinkage);
    value.setDSOLocal(true);
  }
  return Error::success();
}

Expected<std::unique_ptr<Module>>
sparkc::translateToLLVMIR(mlir::ModuleOp op, LLVMContext &context,
                          ArrayRef<TargetSpec> specs,
                          ArrayRef<StringRef> exports) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  op.getContext()->appendDialectRegistry(registry);

  std::string diagnostics;
  std::unique_ptr<Module> module;
  {
    mlir::ScopedDiagnosticHandler handler(
        op.getContext(), [&](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
          return mlir::success();
        });
    module = mlir::translateModuleToLLVMIR(op, context, "sparkc");
  }
  if (!module)
    return createStringError("translation to LLVM IR failed: " + diagnostics);
  module->setSourceFileName("sparkc");

  StringRef descriptor = SPARKC_DESCRIPTOR_SYMBOL;
  if (exports.empty())
    exports = descriptor;
  if (Error error = setLinkage(*module, exports))
    return error;

  auto machine = createTargetMachine(specs.back());
  if (!machine)
    return machine.takeError();
  applyTarget(*module, specs, **machine);

  std::string message;
  raw_string_ostream stream(message);
  if (verifyModule(*module, &stream))
    return createStringError("invalid LLVM IR: " + message);
  return module;
}

Error sparkc::optimize(Module &module, ArrayRef<TargetSpec> specs) {
  // Functions name their own targets; the machine is that of the least.
  auto machine = createTargetMachine(specs.back());
  if (!machine)
    return machine.takeError();

  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.SLPVectorization = false;
  PassBuilder builder(machine->get(), tuning);

  // No library function exists: loops that clear or copy stay loops.
  TargetLibraryInfoImpl library((*machine)->getTargetTriple());
  library.disableAllFunctions();

  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2)
      .run(module, modules);
  return Error::success();
}

static Error emit(Module &module, ArrayRef<TargetSpec> specs,
                  raw_pwrite_stream &stream, CodeGenFileType type) {
  auto machine = createTargetMachine(specs.back());
  if (!machine)
    return machine.takeError();
  legacy::PassManager passes;
  TargetLibraryInfoImpl library((*machine)->getTargetTriple());
  library.disableAllFunctions();
  passes.add(new TargetLibraryInfoWrapperPass(library));
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, type))
    return createStringError("LLVM cannot emit this kind of file for " +
                             targetName(specs));
  passes.run(module);
  return Error::success();
}

Expected<std::string> sparkc::emitAssembly(Module &module,
                                           ArrayRef<TargetSpec> specs) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  if (Error error = emit(module, specs, stream, CodeGenFileType::AssemblyFile))
    return error;
  return std::string(bytes.begin(), bytes.end());
}

Expected<SmallVector<char, 0>> sparkc::emitObject(Module &module,
                                                  ArrayRef<TargetSpec> specs) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  if (Error error = emit(module, specs, stream, CodeGenFileType::ObjectFile))
    return error;
  return bytes;
}

/// Translates, optimises and hands the module to \p emitter.
template <typename Emitter>
static auto compile(mlir::ModuleOp op, ArrayRef<TargetSpec> specs,
                    ArrayRef<StringRef> exports, Emitter emitter)
    -> decltype(emitter(std::declval<Module &>(), specs)) {
  LLVMContext context;
  auto module = translateToLLVMIR(op, context, specs, exports);
  if (!module)
    return module.takeError();
  if (Error error = optimize(**module, specs))
    return error;
  return emitter(**module, specs);
}

Expected<SmallVector<char, 0>>
sparkc::compileToObject(mlir::ModuleOp module, ArrayRef<TargetSpec> specs,
                        ArrayRef<StringRef> exports) {
  return compile(module, specs, exports, emitObject);
}

Expected<std::string> sparkc::compileToAssembly(mlir::ModuleOp module,
                                                ArrayRef<TargetSpec> specs,
                                                ArrayRef<StringRef> exports) {
  return compile(module, specs, exports, emitAssembly);
}
