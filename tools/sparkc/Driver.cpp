//===- Driver.cpp - From a checkpoint or a stage to any later stage -------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/Driver.h"
#include "tools/sparkc/Calibration.h"
#include "tools/sparkc/Certificate.h"
#include "tools/sparkc/Outputs.h"
#include "tools/sparkc/RunPasses.h"
#include "tools/sparkc/Sensitivity.h"
#include "codegen/microkernels/Kernels.h"
#include "codegen/object/Descriptor.h"
#include "codegen/object/Emit.h"
#include "codegen/output/OutputFile.h"
#include "codegen/object/Link.h"
#include "codegen/object/Variants.h"
#include "codegen/weights/Dequantize.h"
#include "codegen/weights/GgufExport.h"
#include "codegen/weights/PackPlan.h"
#include "codegen/weights/Report.h"
#include "codegen/weights/WeightPolicy.h"
#include "dialect/import/BuildGraph.h"
#include "dialect/import/ImportError.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "runtime/Cpu.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/SourceMgr.h"
#include <malloc.h>

using namespace mlir;
using namespace sparkc;

/// What plain `sparkc DIR` means: 4.7 bits a weight.
static constexpr const char *kDefaultScheme = "q4";
static constexpr const char *kDefaultHeadScheme = "q6";
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
  /// The unquantized model that calibration runs.
  llvm::Error compileStages(const Checkpoint &checkpoint, GraphOptions graph);
  /// Chooses a grid for each fused linear, as rules.
  llvm::Error chooseGrids(std::vector<std::string> &rules);
  /// Whether it should: nothing is said of grids, and the checkpoint has none.
  bool choosesGrids(const Checkpoint &checkpoint) const;
  llvm::Error calibrateWeights();
  llvm::Error parseStage();
  llvm::Error runStages();
  llvm::Error runPipeline(StringRef stage,
                          llvm::function_ref<void(OpPassManager &)> build) {
    return runPipeline(*module, stage, build);
  }
  llvm::Error runPipeline(ModuleOp on, StringRef stage,
                          llvm::function_ref<void(OpPassManager &)> build,
                          VerifyPasses verify = VerifyPasses::Yes);
  /// `bf16`: code may use the instructions of AVX512-BF16.
  llvm::Error resolveTargets(bool bf16);
  /// From the schedule to functions for each of the targets.
  llvm::Error generateCode();
  llvm::Error writeText();
  llvm::Error writeCode();
  /// The model's two files, `path` and its .weights.
  llvm::Error writeModel(StringRef path);
  /// The same by way of a copy that is measured first.
  llvm::Error writeCertifiedModel();
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
  bool isText = false; ///< The module was read as the text of a stage.
  /// One, or with --isa several, best first.
  SmallVector<TargetSpec> targets;
  std::unique_ptr<CheckpointExport> checkpointExport;
  std::unique_ptr<GgufExport> ggufExport;
  std::unique_ptr<StagedModel> staged;
  std::string chosenFor; ///< the budget, in words
  ParetoPicture picture;
  /// What --calibrate has chosen; its file is a source of weights.
  std::optional<Calibrated> calibrated;
  /// Of the weights packed last; printed once all is written.
  WeightReport report;
};

} // namespace

/// Calibration makes and frees matrices of some megabytes all the time. Given back
/// to the system each time, they would cost a page fault for each 4 KiB of the
/// next one: a tenth of the time.
static void keepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

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
  if (!options.prefillGemm.empty() && options.prefillBlock == 1)
    return importError(options.input, "--prefill-gemm multiplies blocks of "
                                      "tokens; --prefill-block 1 leaves none");
  graph.prefillBlock =
      std::min(options.prefillBlock ? options.prefillBlock : kDefaultBlock,
               checkpoint->config().maxContext);
  graph.prefillGemm = options.prefillGemm;
  graph.activations = options.activations;
  if (graph.activations.empty() && !options.calibrate.empty())
    graph.activations = "int8:g32";
  if (graph.activations == "int8")
    graph.activations.clear();
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
  if (llvm::Error error = checkOutputs(options, *module))
    return error;
  std::vector<std::string> chosen;
  if (!options.calibrate.empty()) {
    keepFreedMemory();
    if (llvm::Error error = compileStages(*checkpoint, graph))
      return error;
    if (!choosesGrids(*checkpoint) && !options.pareto.empty())
      return importError(options.input, "has grids of its own; --pareto needs "
                                        "--bits, --bytes-per-token or --max-kl");
    if (choosesGrids(*checkpoint))
      if (llvm::Error error = chooseGrids(chosen))
        return error;
  }
  llvm::Error error = runPipeline("graph", [&](OpPassManager &pm) {
    GraphPipelineOptions graphOptions;
    graphOptions.rotate = options.rotate;
    // GGUF is compiled as it is.
    graphOptions.scheme = options.weights.value_or(
        checkpoint->isGguf() ? "stored" : kDefaultScheme);
    // So are the codes of other checkpoints.
    graphOptions.keepCodes = checkpoint->config().codes && !options.weights;
    std::vector<std::string> rules = options.weightsFor;
    const LogicalWeight *head = checkpoint->find("lm_head");
    if (!chosen.empty()) {
      graphOptions.scheme = kDefaultScheme;
      rules.insert(rules.begin(), chosen.begin(), chosen.end());
    } else if (!options.weights && !checkpoint->isGguf() &&
               !(head && head->group)) {
      rules.insert(rules.begin(), kDefaultRule);
    }
    graphOptions.rules = llvm::join(rules, ",");
    buildGraphPipeline(pm, graphOptions);
  });
  if (error)
    return error;
  if (!options.calibrate.empty())
    if (llvm::Error error = calibrateWeights())
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

llvm::Error Compilation::compileStages(const Checkpoint &checkpoint,
                                       GraphOptions graph) {
  graph.prefillBlock =
      std::min<int64_t>(kCalibrationWindow, checkpoint.config().maxContext);
  OwningOpRef<ModuleOp> floats = buildGraph(context, checkpoint, graph);
  if (llvm::Error error =
          runPipeline(*floats, "graph", [&](OpPassManager &pm) {
            GraphPipelineOptions graphOptions;
            graphOptions.scheme = "f32";
            graphOptions.rotate = options.rotate;
            buildGraphPipeline(pm, graphOptions);
          }))
    return error;
  auto compiled = StagedModel::compile(std::move(floats));
  if (!compiled)
    return compiled.takeError();
  staged = std::move(*compiled);
  return llvm::Error::success();
}

bool Compilation::choosesGrids(const Checkpoint &checkpoint) const {
  if (options.bits || options.bytesPerToken)
    return true;
  const LogicalWeight *head = checkpoint.find("lm_head");
  return options.choosesGrids() &&
         (options.maxKl || (!checkpoint.isGguf() && !checkpoint.config().codes &&
                            !(head && head->group)));
}

llvm::Error Compilation::chooseGrids(std::vector<std::string> &rules) {
  WeightPolicy pinned;
  for (const std::string &rule : options.weightsFor)
    if (llvm::Error error = pinned.addRule(rule))
      return error;
  // Logits of all windows are kept: at most 256 MB, and eight windows do.
  const int64_t length = staged->windowLength();
  int64_t count = kWindowsPerMeasured *
                  std::clamp<int64_t>(
                      (64 << 20) / (length * staged->vocab()), 1, 8);
  if (options.calibrateWindows)
    count = std::min(count, options.calibrateWindows);
  auto tokens = readWindows(*module, options.calibrate, staged->vocab(), length,
                            count);
  if (!tokens)
    return tokens.takeError();
  // Bytes for all units: those asked for, else without limit for --max-kl, else
  // what the default grids take.
  auto budgetFor = [&](const Sensitivities &sizes) {
    const uint64_t fewest = fewestBytes(sizes.units);
    if (!options.bits && !options.bytesPerToken)
      return options.maxKl ? UINT64_MAX : std::max(sizes.defaultBytes, fewest);
    double bytes =
        options.bits ? options.bits * sizes.weights / 8 : options.bytesPerToken;
    // 1e18 is in the range of the cast.
    return uint64_t(std::clamp(bytes - double(sizes.otherBytes), 0.0, 1e18));
  };
  auto measured = measureSensitivities(
      *staged, *tokens,
      [&](StringRef name) {
        auto rule = pinned.ruleFor(name);
        return rule ? rule->str() : std::string();
      },
      [](StringRef name) {
        return name == "lm_head" ? kDefaultHeadScheme : kDefaultScheme;
      },
      [&](const Sensitivities &sizes) -> llvm::Error {
        std::vector<std::string> names;
        for (const GridUnit &unit : sizes.units)
          llvm::append_range(names, unit.weights);
        if (llvm::Error error = pinned.checkAllUsed(names))
          return importError(options.input, llvm::toString(std::move(error)));
        const uint64_t fewest = fewestBytes(sizes.units);
        if (fewest <= budgetFor(sizes))
          return llvm::Error::success();
        return importError(
            options.input,
            llvm::formatv("the budget is too small: the grids need {0:f3} bits "
                          "a weight, {1} bytes a token",
                          sizes.bits(fewest), fewest + sizes.otherBytes)
                .str());
      },
      options.quiet);
  if (!measured)
    return measured.takeError();
  std::vector<FrontPoint> front = gridFront(measured->units);
  FrontPoint best = front.back();
  if (options.bits || options.bytesPerToken || !options.maxKl) {
    best = llvm::cantFail(bestWithin(measured->units, budgetFor(*measured)));
    chosenFor = llvm::formatv("{0:f2} bits", measured->bits(best.bytes));
  } else {
    for (const FrontPoint &point : front)
      if (point.kl <= *options.maxKl) {
        best = point;
        break;
      }
    if (best.kl > *options.maxKl)
      return importError(
          options.input,
          llvm::formatv("--max-kl {0:f6} is out of reach: with the finest "
                        "grids {1:f6} is expected",
                        *options.maxKl, best.kl)
              .str());
    chosenFor = llvm::formatv("KL {0:f6}", *options.maxKl);
  }
  for (auto [unit, choice] : llvm::zip_equal(measured->units, best.chosen))
    for (const std::string &name : unit.weights)
      rules.push_back(name + "=" + unit.choices[choice].scheme);
  for (const FrontPoint &point : front)
    picture.front.push_back(
        {measured->bits(point.bytes), point.kl});
  picture.chosen.push_back(
      {measured->bits(best.bytes), best.kl});
  picture.title = "Bits against what they lose";
  return llvm::Error::success();
}

/// Chooses the codes of quantized weights on a text. They come to lie in a file
/// beside the output, which text of a stage goes on naming.
llvm::Error Compilation::calibrateWeights() {
  const std::string codes = codesBeside(options);
  if (codes.empty())
    return importError(options.input, "--calibrate needs -o FILE: the codes it "
                                      "chooses lie beside that file");
  CalibrationOptions calibration;
  calibration.text = options.calibrate;
  calibration.windows = options.calibrateWindows;
  calibration.codes = codes;
  calibration.quiet = options.quiet;
  auto chosen = calibrate(*module, *staged, calibration);
  if (!chosen)
    return chosen.takeError();
  calibrated = std::move(*chosen);
  staged.reset();
  for (const std::string &note : calibrated->notes)
    llvm::errs() << "sparkc: note: " << note << "\n";
  for (auto config : module->getOps<spark::ConfigOp>())
    config.setScheme(chosenFor.empty()
                         ? (config.getScheme() + ", calibrated").str()
                         : "mixed for " + chosenFor +
                               (options.rotate ? ", rotated" : "") +
                               ", calibrated");
  return llvm::Error::success();
}

/// Which stage the text is of is plain from its ops.
llvm::Error Compilation::parseStage() {
  if (options.weights || !options.weightsFor.empty() || options.rotate ||
      options.kv || options.context || options.prefillBlock ||
      !options.prefillGemm.empty() || !options.activations.empty() ||
      !options.calibrate.empty() || !options.certify.empty())
    return importError(options.input,
                       "--weights, --weights-for, --rotate, --calibrate, "
                       "--certify, --kv, --context, --prefill-block, "
                       "--prefill-gemm and --activations are decided where a "
                       "checkpoint is read; "
                       "this is the text of a stage");
  if (!options.dequantize.empty() || !options.exportGguf.empty())
    return importError(options.input,
                       "--dequantize and --export-gguf need the checkpoint, "
                       "whose config they copy; this is the text of a stage");
  ErrorCollector errors(context);
  module = parseSourceFile<ModuleOp>(options.input, &context);
  if (!module)
    return errors.take(options.input);
  if (llvm::Error error = checkOutputs(options, *module))
    return error;
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
                         llvm::function_ref<void(OpPassManager &)> build,
                         VerifyPasses verify) {
  return runPasses(on, options.input + ": " + name.str(), build, verify);
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
  for (auto config : module->getOps<spark::ConfigOp>())
    if (config.hasBF16Activations() && options.emit >= Stage::LLVM)
      if (llvm::Error error = resolveTargets(/*bf16=*/true))
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
    if (llvm::Error error = runPipeline(
            code, "codegen",
            [&](OpPassManager &pm) {
              buildCodegenFor(target, pm, options.sanitizeThread);
            },
            isText ? VerifyPasses::Yes : VerifyPasses::No))
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
  if (options.output.empty() || options.output == "-")
    return printOut(text);
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
  for (PackedTensor &tensor : *packed)
    for (PackedSource &source : tensor.sources)
      if (const CodeFile::Record *chosen =
              calibrated ? calibrated->file->find(source.name) : nullptr;
          chosen && !chosen->dtype.empty())
        source.sqnr = chosen->sqnr;
  return WeightReport::of(*module, std::move(*packed));
}

llvm::Error Compilation::writeExtras(const WeightReport &report) {
  if (options.report == "-") {
    if (llvm::Error error = printOut(report.text()))
      return error;
  } else if (!options.report.empty()) {
    if (llvm::Error error = writeFileAtomically(options.report, report.text()))
      return error;
  }
  if (!options.pareto.empty())
    if (llvm::Error error = writeFileAtomically(options.pareto, picture.svg()))
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
  return options.quiet ? llvm::Error::success() : printOut(report->table());
}

llvm::Expected<std::string> Compilation::compileCode(WeightFileWriter &writer) {
  auto packed = pack(writer);
  if (!packed)
    return packed.takeError();
  report = std::move(*packed);
  auto digest = writer.finishPayload();
  if (!digest)
    return digest.takeError();
  for (auto info : module->getOps<step::DescriptorOp>())
    if (writer.payloadBytes() != info.getPayload())
      return llvm::createStringError(
          options.input + ": the packs are " + Twine(writer.payloadBytes()) +
          " bytes, but the descriptor says " + Twine(info.getPayload()));
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
    if (llvm::Error error = writeExtras(report))
      return error;
    if (options.output.empty() || options.output == "-")
      return printOut(*code);
    return writeFileAtomically(options.output, *code);
  }
  if (llvm::Error error = options.certify.empty() ? writeModel(options.output)
                                                  : writeCertifiedModel())
    return error;
  return options.quiet ? llvm::Error::success() : printOut(report.table());
}

llvm::Error Compilation::writeModel(StringRef path) {
  auto writer = WeightFileWriter::create(weightsBeside(path));
  if (!writer)
    return writer.takeError();
  auto code = compileCode(**writer);
  if (!code)
    return code.takeError();
  LinkOptions link;
  link.allowUndefined = options.sanitizeThread;
  auto object = linkOutput(*code, path, link);
  if (!object)
    return object.takeError();
  object->removeOnSignal();
  // A certified model has them once it is measured.
  if (options.certify.empty())
    if (llvm::Error error = writeExtras(report))
      return error;
  return replaceModel(
      path, [&] { return (*writer)->finish(); },
      [&] { return object->commit(); });
}

namespace {
/// A model's two files, gone when this goes.
struct PassingModel {
  explicit PassingModel(std::string object)
      : object(std::move(object)), weights(weightsBeside(this->object)) {
    for (const std::string &file : {this->object, weights})
      llvm::sys::RemoveFileOnSignal(file);
  }
  ~PassingModel() {
    for (const std::string &file : {object, weights}) {
      llvm::sys::fs::remove(file);
      llvm::sys::DontRemoveFileOnSignal(file);
    }
  }
  std::string object, weights;
};
} // namespace

llvm::Error Compilation::writeCertifiedModel() {
  const std::string unique = temporaryName(options.output, "");
  PassingModel build(unique + ".so");
  if (llvm::Error error = writeModel(build.object))
    return error;
  PassingModel unquantized(unique + ".reference.so");
  DriverOptions reference; // without calibration
  reference.input = options.input;
  reference.output = unquantized.object;
  reference.weights =
      StringRef(options.input).ends_with(".gguf") ? "f32" : "stored";
  // It runs on what the build is measured on.
  reference.mcpu = options.mcpu;
  reference.isa = options.isa;
  reference.kv = options.kv;
  reference.context = options.context;
  reference.quiet = true;
  if (llvm::Error error = Compilation(context, reference).run())
    return error;
  CertifyOptions certifying;
  certifying.text = options.certify;
  certifying.windows = options.certifyWindows;
  certifying.maxKl = options.maxKl;
  certifying.quiet = options.quiet;
  auto certificate = certify(build.object, unquantized.object, certifying);
  if (!certificate)
    return certificate.takeError();
  report.certificate = certificate->figures;
  picture.measured.push_back(
      {report.bitsPerWeight(),
       certificate->figures.getNumber("kl_mean").value_or(0)});
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", llvm::json::Value(llvm::json::Object(
                                    certificate->figures)));
  if (llvm::Error error = addSectionToFile(
          build.weights, SPARKC_SECTION_CERTIFICATE, text))
    return error;
  if (llvm::Error error = writeExtras(report))
    return error;
  auto rename = [&](StringRef from, StringRef to) -> llvm::Error {
    if (std::error_code failed = llvm::sys::fs::rename(from, to))
      return importError(to, failed.message());
    return llvm::Error::success();
  };
  return replaceModel(
      options.output,
      [&] { return rename(build.weights, weightsBeside(options.output)); },
      [&] { return rename(build.object, options.output); });
}

llvm::Error Compilation::resolveTargets(bool bf16) {
  targets.clear();
  if (!options.isa.empty()) {
    auto resolved = resolveIsas(options.isa, bf16);
    if (!resolved)
      return resolved.takeError();
    targets = std::move(*resolved);
    return llvm::Error::success();
  }
  auto resolved = resolveTarget(options.mcpu, bf16);
  // What this machine has but its system does not permit would not run here.
  if (resolved && resolved->isa == SPARKC_ISA_AMX &&
      options.mcpu == "native" && !sparkc_cpu_permit_amx())
    resolved = resolveTarget(options.mcpu, bf16, /*tiles=*/false);
  if (!resolved)
    return resolved.takeError();
  targets.push_back(std::move(*resolved));
  return llvm::Error::success();
}

llvm::Error Compilation::run() {
  if (llvm::Error error = resolveTargets(/*bf16=*/false))
    return error;
  if (!options.certify.empty() &&
      (options.emit != Stage::Shared || options.sanitizeThread))
    return importError(options.input,
                       "--certify measures a finished model: --emit so");
  bool directory = llvm::sys::fs::is_directory(options.input);
  isText = StringRef(options.input).ends_with(".mlir");
  bool gguf = StringRef(options.input).ends_with(".gguf");
  if (!directory && !isText) {
    if (!llvm::sys::fs::exists(options.input))
      return importError(options.input, "no such file or directory");
    if (!gguf)
      return importError(options.input,
                         "is neither a checkpoint (a directory, or .gguf) nor "
                         "the text of a stage (.mlir)");
  }
  if (llvm::Error error = isText ? parseStage() : importCheckpoint())
    return error;
  if (llvm::Error error = runStages())
    return error;
  bool writesText = options.emit <= Stage::LLVM &&
                    options.dequantize.empty() && options.exportGguf.empty();
  if (llvm::Error error = options.emit > Stage::LLVM ? writeCode()
                          : writesText               ? writeText()
                                                     : writeExport())
    return error;
  if (calibrated && !writesText)
    calibrated->file->remove();
  return llvm::Error::success();
}

llvm::Error sparkc::compile(MLIRContext &context, const DriverOptions &options) {
  return Compilation(context, options).run();
}
