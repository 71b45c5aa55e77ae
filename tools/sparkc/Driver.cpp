//===- Driver.cpp - From a checkpoint or a stage to any later stage -------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/Driver.h"
#include "codegen/microkernels/Kernels.h"
#include "codegen/object/Descriptor.h"
#include "codegen/object/Emit.h"
#include "codegen/object/Link.h"
#include "codegen/object/Variants.h"
#include "codegen/weights/Dequantize.h"
#include "codegen/weights/GgufExport.h"
#include "codegen/weights/PackPlan.h"
#include "codegen/weights/Report.h"
#include "dialect/import/BuildGraph.h"
#include "dialect/import/ImportError.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace sparkc;

/// What plain `sparkc DIR` means: 4.7 bits a weight.
static constexpr const char *kDefaultScheme = "q4";
static constexpr const char *kDefaultRule = "lm_head=q6";

static constexpr int64_t kDefaultBlock = 256;

namespace {

class Compilation {
public:
  Compilation(MLIRContext &context, const DriverOptions &options)
      : context(context), options(options) {}
  llvm::Error run();

private:
  llvm::Error importCheckpoint();
  llvm::Error parseStage();
  llvm::Error runStages();
  llvm::Error runPipeline(StringRef stage,
                          llvm::function_ref<void(OpPassManager &)> build) {
    return runPipeline(*module, stage, build);
  }
  llvm::Error runPipeline(ModuleOp on, StringRef stage,
                          llvm::function_ref<void(OpPassManager &)> build);
  llvm::Error resolveTargets();
  /// From the schedule to functions for each of the targets.
  llvm::Error generateCode();
  llvm::Error writeText();
  llvm::Error writeCode();
  /// Packs for the sake of exports and --report alone.
  llvm::Error writeExport();
  llvm::Expected<WeightReport> pack(WeightFileWriter &writer);
  /// The report and the checkpoint of dequantized weights, where asked for.
  llvm::Error writeExtras(const WeightReport &report);
  /// Packs into `writer` and gives the object file or assembly.
  llvm::Expected<std::string> compileCode(WeightFileWriter &writer);

  MLIRContext &context;
  const DriverOptions &options;
  OwningOpRef<ModuleOp> module;
  Stage stage = Stage::Spark;
  /// One, or with --isa several, best first.
  SmallVector<TargetSpec> targets;
  std::unique_ptr<CheckpointExport> checkpointExport;
  std::unique_ptr<GgufExport> ggufExport;
  /// The report of compileCode, printed once all is written.
  std::string table;
};

/// Collects the first error that passes report, as one line.
class ErrorCollector {
public:
  ErrorCollector(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
              text.empty()) {
            llvm::raw_string_ostream os(text);
            if (!isa<UnknownLoc>(diagnostic.getLocation()))
              os << diagnostic.getLocation() << ": ";
            os << diagnostic;
          }
          return success();
        }) {}
  llvm::Error take(StringRef what) {
    return llvm::createStringError(what + ": " +
                                   (text.empty() ? "failed" : text));
  }

private:
  std::string text;
  ScopedDiagnosticHandler handler;
};

} // namespace

llvm::Error Compilation::importCheckpoint() {
  auto checkpoint = Checkpoint::open(options.input);
  if (!checkpoint)
    return checkpoint.takeError();
  for (const std::string &warning : checkpoint->warnings())
    llvm::errs() << "sparkc: warning: " << warning << "\n";
  GraphOptions graph;
  graph.context = options.context;
  if (options.context > checkpoint->config().maxContext)
    return importError(options.input,
                       "--context " + Twine(options.context) +
                           " exceeds the model's " +
                           Twine(checkpoint->config().maxContext));
  graph.prefillBlock =
      std::min(options.prefillBlock ? options.prefillBlock : kDefaultBlock,
               checkpoint->config().maxContext);
  graph.prefillGemm = options.prefillGemm;
  if (options.kv)
    graph.kv = *options.kv == "f32"  ? GraphOptions::KVType::F32
               : *options.kv == "q8" ? GraphOptions::KVType::Q8
                                     : GraphOptions::KVType::F16;
  module = buildGraph(context, *checkpoint, graph);
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  const Checkpoint::TextFiles &text = checkpoint->textFiles();
  const std::pair<StringRef, StringRef> assets[] = {
      {"tokenizer", text.tokenizer},
      {"tokenizer_config", text.tokenizerConfig},
      {"generation_config", text.generationConfig},
      {"chat_template", text.chatTemplate}};
  for (auto [kind, file] : assets)
    if (!file.empty())
      spark::AssetOp::create(b, module->getLoc(), kind, file);
  llvm::Error error = runPipeline("graph", [&](OpPassManager &pm) {
    GraphPipelineOptions graphOptions;
    // GGUF is compiled as it is.
    graphOptions.scheme = options.weights.value_or(
        checkpoint->isGguf() ? "stored" : kDefaultScheme);
    // So are the codes of other checkpoints.
    graphOptions.keepCodes = checkpoint->config().codes && !options.weights;
    std::vector<std::string> rules = options.weightsFor;
    const LogicalWeight *head = checkpoint->find("lm_head");
    if (!options.weights && !checkpoint->isGguf() && !(head && head->group))
      rules.insert(rules.begin(), kDefaultRule);
    graphOptions.rules = llvm::join(rules, ",");
    buildGraphPipeline(pm, graphOptions);
  });
  if (error)
    return error;
  if (!options.exportGguf.empty()) {
    auto started = GgufExport::create(*module, *checkpoint, options.input,
                                      options.exportGguf);
    if (!started)
      return started.takeError();
    ggufExport = std::move(*started);
  }
  if (options.dequantize.empty())
    return llvm::Error::success();
  bool headIsEmbedding = !SymbolTable(*module).lookup("lm_head");
  auto started = CheckpointExport::create(*checkpoint, options.input,
                                          options.dequantize, headIsEmbedding);
  if (!started)
    return started.takeError();
  checkpointExport = std::move(*started);
  return llvm::Error::success();
}

/// Which stage the text is of is plain from its ops.
llvm::Error Compilation::parseStage() {
  if (options.weights || !options.weightsFor.empty() || options.kv ||
      options.context || options.prefillBlock || !options.prefillGemm.empty())
    return importError(options.input,
                       "--weights, --weights-for, --kv, --context, "
                       "--prefill-block and --prefill-gemm are decided where a "
                       "checkpoint is read; this is the text of a stage");
  if (!options.dequantize.empty() || !options.exportGguf.empty())
    return importError(options.input,
                       "--dequantize and --export-gguf need the checkpoint, "
                       "whose config they copy; this is the text of a stage");
  ErrorCollector errors(context);
  module = parseSourceFile<ModuleOp>(options.input, &context);
  if (!module)
    return errors.take(options.input);
  if (!module->getOps<LLVM::LLVMFuncOp>().empty())
    stage = Stage::LLVM;
  else if (!module->getOps<step::FuncOp>().empty())
    stage = Stage::Step;
  else if (module->walk([](spark::FusedLinearOp) {
             return WalkResult::interrupt();
           }).wasInterrupted())
    stage = Stage::Fused;
  else if (module->getOps<func::FuncOp>().empty())
    return importError(options.input, "holds no stage of a model");
  if (options.emit < stage)
    return importError(options.input,
                       "is the text of a later stage than the one asked for");
  return llvm::Error::success();
}

llvm::Error
Compilation::runPipeline(ModuleOp on, StringRef name,
                         llvm::function_ref<void(OpPassManager &)> build) {
  ErrorCollector errors(context);
  PassManager pm(&context);
  build(pm);
  if (failed(pm.run(on)))
    return errors.take(options.input + ": " + name.str());
  return llvm::Error::success();
}

llvm::Error Compilation::runStages() {
  if (stage < Stage::Fused && options.emit >= Stage::Fused)
    if (llvm::Error error = runPipeline("fuse", [](OpPassManager &pm) {
          buildFusePipeline(pm, FusePipelineOptions());
        }))
      return error;
  if (stage < Stage::Step && options.emit >= Stage::Step)
    if (llvm::Error error = runPipeline("schedule", [](OpPassManager &pm) {
          buildSchedulePipeline(pm, SchedulePipelineOptions());
        }))
      return error;
  if (stage < Stage::LLVM && options.emit >= Stage::LLVM)
    return generateCode();
  return llvm::Error::success();
}

llvm::Error Compilation::generateCode() {
  OwningOpRef<ModuleOp> all;
  for (const TargetSpec &target : targets) {
    OwningOpRef<ModuleOp> copy;
    if (&target != &targets.back())
      copy = module->clone();
    ModuleOp code = copy ? *copy : *module;
    if (llvm::Error error = runPipeline(code, "codegen", [&](OpPassManager &pm) {
          CodegenPipelineOptions codegen;
          codegen.isa = isaName(target.isa).str();
          const StreamPrefetch prefetch = streamPrefetch(target.cpu);
          codegen.ahead = prefetch.ahead;
          codegen.once = prefetch.once;
          codegen.sanitizeThread = options.sanitizeThread;
          buildCodegenPipeline(pm, codegen);
        }))
      return error;
    if (!target.prefix.empty())
      prefixSymbols(code, target.prefix);
    if (all)
      moveCode(code, *all);
    else
      all = copy ? std::move(copy) : std::move(module);
  }
  module = std::move(all);
  return llvm::Error::success();
}

llvm::Error Compilation::writeText() {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, OpPrintingFlags()
                        .enableDebugInfo(true, false)
                        .useLocalScope()
                        .printNameLocAsPrefix(true));
  os << "\n";
  if (options.output.empty() || options.output == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    if (llvm::outs().has_error())
      return llvm::createStringError("<stdout>: " +
                                     llvm::outs().error().message());
    return llvm::Error::success();
  }
  return writeFileAtomically(options.output, text);
}

llvm::Expected<WeightReport> Compilation::pack(WeightFileWriter &writer) {
  PackOptions pack;
  pack.quiet = options.quiet;
  if (checkpointExport || ggufExport)
    pack.tap = [this](const DirectoryEntry &entry, int64_t firstTile,
                      ArrayRef<uint8_t> tiles) {
      if (ggufExport)
        if (llvm::Error error = ggufExport->add(entry, firstTile, tiles))
          return error;
      return checkpointExport ? checkpointExport->add(entry, firstTile, tiles)
                              : llvm::Error::success();
    };
  auto packed = packWeights(*module, writer, pack);
  if (!packed)
    return packed.takeError();
  return WeightReport::of(*module, std::move(*packed));
}

llvm::Error Compilation::writeExtras(const WeightReport &report) {
  if (!options.report.empty())
    if (llvm::Error error = writeReport(report, options.report))
      return error;
  if (ggufExport)
    if (llvm::Error error = ggufExport->finish())
      return error;
  return checkpointExport ? checkpointExport->finish()
                          : llvm::Error::success();
}

llvm::Error Compilation::writeExport() {
  auto writer = WeightFileWriter::createDigestOnly();
  auto report = pack(*writer);
  if (!report)
    return report.takeError();
  if (llvm::Error error = writeExtras(*report))
    return error;
  if (!options.quiet)
    llvm::outs() << report->table();
  return llvm::Error::success();
}

llvm::Expected<std::string> Compilation::compileCode(WeightFileWriter &writer) {
  auto report = pack(writer);
  if (!report)
    return report.takeError();
  auto digest = writer.finishPayload();
  if (!digest)
    return digest.takeError();
  for (auto info : module->getOps<step::DescriptorOp>())
    if (writer.payloadBytes() != info.getPayload())
      return llvm::createStringError(
          options.input + ": the packs are " + Twine(writer.payloadBytes()) +
          " bytes, but the descriptor says " + Twine(info.getPayload()));
  if (llvm::Error error = writeExtras(*report))
    return error;
  table = report->table();
  if (llvm::Error error = finishModule(*module, targets, *digest))
    return error;
  if (options.emit == Stage::Assembly)
    return compileToAssembly(*module, targets);
  auto object = compileToObject(*module, targets);
  if (!object)
    return object.takeError();
  return std::string(object->begin(), object->end());
}

llvm::Error Compilation::writeCode() {
  if (options.emit != Stage::Shared) {
    auto writer = WeightFileWriter::createDigestOnly();
    auto code = compileCode(*writer);
    if (!code)
      return code.takeError();
    if (options.output.empty() || options.output == "-") {
      llvm::outs() << *code;
      return llvm::Error::success();
    }
    return writeFileAtomically(options.output, *code);
  }
  SmallString<256> weights(options.output);
  llvm::sys::path::replace_extension(weights, ".weights");
  auto writer = WeightFileWriter::create(weights);
  if (!writer)
    return writer.takeError();
  auto code = compileCode(**writer);
  if (!code)
    return code.takeError();
  LinkOptions link;
  link.allowUndefined = options.sanitizeThread;
  if (llvm::Error error = linkSharedObject(*code, options.output, link))
    return error;
  if (llvm::Error error = (*writer)->finish()) {
    llvm::sys::fs::remove(options.output);
    return error;
  }
  if (!options.quiet)
    llvm::outs() << table;
  return llvm::Error::success();
}

llvm::Error Compilation::resolveTargets() {
  if (!options.isa.empty()) {
    auto resolved = resolveIsas(options.isa);
    if (!resolved)
      return resolved.takeError();
    targets = std::move(*resolved);
    return llvm::Error::success();
  }
  auto resolved = resolveTarget(options.mcpu);
  if (!resolved)
    return resolved.takeError();
  targets.push_back(std::move(*resolved));
  return llvm::Error::success();
}

llvm::Error Compilation::run() {
  if (llvm::Error error = resolveTargets())
    return error;
  bool directory = llvm::sys::fs::is_directory(options.input);
  bool text = StringRef(options.input).ends_with(".mlir");
  bool gguf = StringRef(options.input).ends_with(".gguf");
  if (!directory && !text) {
    if (!llvm::sys::fs::exists(options.input))
      return importError(options.input, "no such file or directory");
    if (!gguf)
      return importError(options.input,
                         "is neither a checkpoint (a directory, or .gguf) nor "
                         "the text of a stage (.mlir)");
  }
  if (llvm::Error error = text ? parseStage() : importCheckpoint())
    return error;
  if (llvm::Error error = runStages())
    return error;
  if (options.emit > Stage::LLVM)
    return writeCode();
  return options.dequantize.empty() && options.exportGguf.empty()
             ? writeText()
             : writeExport();
}

llvm::Error sparkc::compile(MLIRContext &context, const DriverOptions &options) {
  return Compilation(context, options).run();
}
