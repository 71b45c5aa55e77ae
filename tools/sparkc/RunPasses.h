//===- RunPasses.h - Passes, and their first error as a line ----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_SPARKC_RUNPASSES_H
#define SPARKC_TOOLS_SPARKC_RUNPASSES_H

#include "codegen/microkernels/Kernels.h"
#include "codegen/object/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "sparkc_abi.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace sparkc {

/// Collects the first error that passes report, as one line.
class ErrorCollector {
public:
  ErrorCollector(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error &&
              text.empty()) {
            llvm::raw_string_ostream os(text);
            describe(diagnostic.getLocation(), os);
            os << diagnostic;
          }
          return mlir::success();
        }) {}
  llvm::Error take(llvm::StringRef what) {
    return llvm::createStringError(llvm::Twine(what) + ": " +
                                   (text.empty() ? "failed" : text));
  }

private:
  /// The layer and op, or the place in the text of a stage.
  static void describe(mlir::Location loc, llvm::raw_ostream &os) {
    if (auto name = loc->findInstanceOf<mlir::NameLoc>())
      os << name.getName().getValue() << ": ";
    else if (auto place = loc->findInstanceOf<mlir::FileLineColLoc>())
      os << place.getFilename().getValue() << ":" << place.getLine() << ":"
         << place.getColumn() << ": ";
  }

  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// Whether the module is verified after each pass. Code generation that begins
/// with a schedule of our own does without: verifying what it makes of it takes
/// a tenth of a compile. A schedule that was read as text may hold anything.
enum class VerifyPasses { Yes, No };

/// Runs the passes that `build` adds; an error starts with `what`.
inline llvm::Error
runPasses(mlir::ModuleOp module, llvm::StringRef what,
          llvm::function_ref<void(mlir::OpPassManager &)> build,
          VerifyPasses verify = VerifyPasses::Yes) {
  ErrorCollector errors(*module.getContext());
  mlir::PassManager pm(module.getContext());
  pm.enableVerifier(verify == VerifyPasses::Yes);
  build(pm);
  if (mlir::failed(pm.run(module)))
    return errors.take(what);
  return llvm::Error::success();
}

/// Adds the passes from the step stage to code for `target`.
inline void buildCodegenFor(const TargetSpec &target, mlir::OpPassManager &pm,
                            bool sanitizeThread = false) {
  CodegenPipelineOptions codegen;
  codegen.isa = isaName(target.isa).str();
  const WeightStreams streams = weightStreams(target.cpu);
  codegen.ahead = streams.ahead;
  codegen.once = streams.once;
  codegen.serial = streams.serial;
  codegen.bf16 = target.abiFeatures & SPARKC_CPU_AVX512BF16;
  codegen.sanitizeThread = sanitizeThread;
  buildCodegenPipeline(pm, codegen);
}

} // namespace sparkc

#endif // SPARKC_TOOLS_SPARKC_RUNPASSES_H
