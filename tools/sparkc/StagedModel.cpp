//===- StagedModel.cpp - A model that runs from linear to linear ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/StagedModel.h"
#include "codegen/microkernels/Kernels.h"
#include "codegen/object/Emit.h"
#include "codegen/object/Link.h"
#include "codegen/object/Target.h"
#include "dialect/import/ImportError.h"
#include "passes/Pipelines.h"
#include "passes/SplitStages.h"
#include "tools/sparkc/RunPasses.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

using namespace mlir;
using namespace sparkc;

Memory sparkc::zeroedMemory(uint64_t bytes) {
  bytes = (std::max<uint64_t>(bytes, 1) + 63) / 64 * 64;
  auto *p = static_cast<uint8_t *>(std::aligned_alloc(64, bytes));
  if (!p)
    llvm::report_bad_alloc_error("no memory for calibration");
  std::memset(p, 0, bytes);
  return Memory(p);
}

static bool isOfLayer(step::PackOp op, int64_t layer) {
  std::string prefix = "layers." + std::to_string(layer) + ".";
  auto first = cast<FlatSymbolRefAttr>(op.getWeights()[0]);
  return first.getValue().starts_with(prefix);
}

static bool isVector(step::PackOp op) {
  return op.getLayout() == layoutName(Layout::VectorF32);
}

StagedModel::~StagedModel() {
  if (handle)
    dlclose(handle);
}

llvm::Expected<std::unique_ptr<StagedModel>>
StagedModel::compile(OwningOpRef<ModuleOp> graph) {
  auto model = std::unique_ptr<StagedModel>(new StagedModel());
  model->module = std::move(graph);
  if (llvm::Error error = runPasses(
          *model->module, "calibration: schedule", [](OpPassManager &pm) {
            buildFusePipeline(pm, FusePipelineOptions());
            buildSchedulePipeline(pm, SchedulePipelineOptions());
          }))
    return error;
  if (llvm::Error error = model->plan())
    return error;
  if (llvm::Error error = model->loadCode())
    return error;
  return model;
}

//===----------------------------------------------------------------------===//
// What lies where
//===----------------------------------------------------------------------===//

int64_t StagedModel::placeOf(step::PackOp op, const Layer &layer) const {
  return op.getOffset() - layer.weights;
}

/// Finds the stage's tap.
llvm::Error StagedModel::planStage(step::FuncOp func, Stage &stage) {
  SymbolTable symbols(*module);
  bool floats = true;
  func.walk([&](step::PutOp put) {
    auto [cols, group] = step::activationShape(put.getInput().getType());
    floats &= group == 0 && !stage.tap;
    auto slot = symbols.lookup<step::SlotOp>(put.getSlot());
    stage.tap = Tap{int64_t(*slot.getOffset()), cols};
  });
  if (!floats)
    return llvm::createStringError("calibration: stage '" + func.getSymName() +
                                   "' has no single activation of floats");
  return llvm::Error::success();
}

llvm::Error StagedModel::plan() {
  auto config = *module->getOps<spark::ConfigOp>().begin();
  hiddenSize = config.getHidden();
  vocabSize = config.getVocab();
  block = config.getPrefillBlock();
  auto info = *module->getOps<step::DescriptorOp>().begin();
  int64_t multiple = info.getCapacityMultiple();
  capacity = (block + multiple - 1) / multiple * multiple;
  auto bytesAt = [&](step::AffineAttr size) {
    return int64_t(size.getConstant()) +
           int64_t(size.getPerPosition()) * capacity;
  };
  arenaBytes = bytesAt(*info.getArena());
  int64_t allKv = bytesAt(info.getKv());

  SymbolTable symbols(*module);
  step::SlotOp residual;
  SmallVector<step::CallOp> calls;
  module->walk([&](step::EmbedOp embed) {
    residual = symbols.lookup<step::SlotOp>(embed.getSlot());
  });
  if (auto entry = symbols.lookup<step::FuncOp>("prefill"))
    llvm::append_range(calls, entry.getBody().getOps<step::CallOp>());
  if (!residual || !residual.getRow() || calls.empty())
    return llvm::createStringError(
        "calibration: the model has no entry for blocks of tokens");
  residualOffset = *residual.getOffset();
  residualRow = *residual.getRow();

  SmallVector<int64_t> ends;
  for (step::CallOp call : calls) {
    Layer layer;
    layer.weights = call.getWeights();
    layer.kv = bytesAt(call.getKv());
    StringRef name = call.getCallee();
    name.consume_back(".prefill");
    layer.stages = &functions[name];
    ends.push_back(layer.kv);
    all.push_back(layer);
  }
  Layer head;
  head.stages = &functions["prefill"];
  all.push_back(head);
  ends.push_back(allKv);
  llvm::sort(ends);
  for (size_t i = 1; i < ends.size(); ++i)
    kvBytes = std::max(kvBytes, ends[i] - ends[i - 1]);
  for (auto op : module->getOps<step::PackOp>())
    for (auto [i, layer] : llvm::enumerate(all))
      if (i + 1 == all.size() ||
          isOfLayer(op, calls[i].getLayer())) {
        layer.packs.push_back(op);
        break;
      }

  ErrorCollector errors(*module->getContext());
  if (failed(splitStages(*module)))
    return errors.take("calibration: stages");
  for (auto func : module->getOps<step::FuncOp>()) {
    StringRef name = func.getSymName();
    std::vector<Stage> &stages =
        functions[name.substr(0, name.rfind(".stage"))];
    if (!stages.empty() && stages.back().tap) {
      // What reads the tap of the stage before.
      const Layer &layer = *llvm::find_if(
          all, [&](const Layer &l) { return l.stages == &stages; });
      func.walk([&](step::TilesOp tiles) {
        for (step::PackOp op : layer.packs) {
          int64_t from = placeOf(op, layer), at = tiles.getOffset();
          if (at < from || at >= from + packedMatrix(op).bytes())
            continue;
          for (auto weight : op.getWeights().getAsRange<FlatSymbolRefAttr>()) {
            StringRef name = weight.getValue();
            name = name.substr(name.rfind('.') + 1);
            if (!llvm::is_contained(stages.back().readers, name))
              stages.back().readers.push_back(name.str());
          }
        }
        stages.back().addsToResidual |=
            !tiles.getBody().getOps<step::ResidualOp>().empty();
      });
    }
    if (llvm::Error error = planStage(func, stages.emplace_back()))
      return error;
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

llvm::Error StagedModel::loadCode() {
  auto target = resolveTarget("native");
  if (!target)
    return target.takeError();
  OwningOpRef<ModuleOp> code = module->clone();
  // Weights are brought layer by layer, wherever their packs are.
  for (auto pack : llvm::make_early_inc_range(code->getOps<step::PackOp>()))
    pack.erase();
  std::vector<std::string> names;
  for (auto func : code->getOps<step::FuncOp>())
    names.push_back("sparkc_" + func.getSymName().str());
  if (llvm::Error error =
          runPasses(
              *code, "calibration: codegen",
              [&](OpPassManager &pm) { buildCodegenFor(*target, pm); },
              VerifyPasses::No))
    return error;
  for (Operation &op : llvm::make_early_inc_range(*code->getBody()))
    if (!isa<LLVM::LLVMDialect>(op.getDialect()))
      op.erase();
  SmallVector<StringRef> exports(names.begin(), names.end());
  auto object = compileToObject(*code, *target, exports);
  if (!object)
    return object.takeError();
  // (llvm::sys::fs::createTemporaryFile would replace a % in TMPDIR.)
  SmallString<128> path;
  llvm::sys::path::system_temp_directory(true, path);
  llvm::sys::path::append(path, "sparkc-calibrate-XXXXXX.so");
  // Else dlopen would look for a name without a folder elsewhere.
  llvm::sys::fs::make_absolute(path);
  path.c_str(); // Ends it by a NUL.
  int file = mkstemps(path.data(), strlen(".so"));
  if (file < 0)
    return llvm::createStringError("calibration: " + Twine(path) + ": " +
                                   strerror(errno));
  close(file);
  llvm::FileRemover remover(path);
  if (llvm::Error error = linkSharedObject(
          StringRef(object->data(), object->size()), path))
    return error;
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return llvm::createStringError("calibration: " + Twine(dlerror()));
  for (auto &entry : functions)
    for (auto [i, stage] : llvm::enumerate(entry.second)) {
      std::string name =
          ("sparkc_" + entry.first() + ".stage" + Twine(i)).str();
      stage.run = reinterpret_cast<sparkc_entry_fn>(dlsym(handle, name.c_str()));
      if (!stage.run)
        return llvm::createStringError("calibration: no entry '" + name + "'");
    }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

spark::WeightOp StagedModel::weight(StringRef name) const {
  return ModuleOp(*module).lookupSymbol<spark::WeightOp>(name);
}

void StagedModel::setSource(StringRef name, spark::SourceAttr source) {
  weight(name).replaceSource(source);
}

llvm::Error StagedModel::packOne(step::PackOp op, const Layer &layer,
                                 ArrayRef<SourceMatrix> sources,
                                 PackedLayer &packed) const {
  uint8_t *out = packed.bytes.get() + (placeOf(op, layer) - packed.base);
  return packFloatMatrix(packedMatrix(op), sources,
                         [&](ArrayRef<uint8_t> bytes) {
                           std::memcpy(out, bytes.data(), bytes.size());
                           out += bytes.size();
                           return llvm::Error::success();
                         });
}

llvm::Expected<std::vector<SourceMatrix>>
StagedModel::sourcesOf(step::PackOp op) const {
  WeightSources files;
  std::vector<SourceMatrix> sources;
  for (auto name : op.getWeights().getAsRange<FlatSymbolRefAttr>()) {
    auto source = files.open(weight(name.getValue()), isVector(op));
    if (!source)
      return source.takeError();
    sources.push_back(*source);
  }
  return sources;
}

llvm::Error StagedModel::packOwn(step::PackOp op, const Layer &layer,
                                 PackedLayer &packed) const {
  auto sources = sourcesOf(op);
  if (!sources)
    return sources.takeError();
  return packOne(op, layer, *sources, packed);
}

llvm::Expected<PackedLayer> StagedModel::pack(const Layer &layer,
                                              bool vectorsOnly) const {
  SmallVector<step::PackOp> wanted;
  for (step::PackOp op : layer.packs)
    // An embedding of its own is for the host to read.
    if (isVector(op) || (!vectorsOnly && isTiled(packedMatrix(op).layout)))
      wanted.push_back(op);
  PackedLayer packed;
  packed.base = placeOf(wanted.front(), layer);
  int64_t end = packed.base;
  for (step::PackOp op : wanted) {
    packed.base = std::min(packed.base, placeOf(op, layer));
    end = std::max(end, placeOf(op, layer) + packedMatrix(op).bytes());
  }
  packed.bytes = zeroedMemory(end - packed.base);
  for (step::PackOp op : wanted)
    if (llvm::Error error = packOwn(op, layer, packed))
      return error;
  return packed;
}

llvm::Error StagedModel::repack(const Layer &layer, PackedLayer &packed,
                                ArrayRef<std::string> names) const {
  for (step::PackOp op : layer.packs)
    if (llvm::any_of(op.getWeights().getAsRange<FlatSymbolRefAttr>(),
                     [&](FlatSymbolRefAttr name) {
                       return llvm::is_contained(names, name.getValue());
                     }))
      if (llvm::Error error = packOwn(op, layer, packed))
        return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

Window StagedModel::makeWindow(int64_t tokens) const {
  Window window;
  window.arena = zeroedMemory(arenaBytes);
  window.kv = zeroedMemory(kvBytes);
  window.ctx.arena = window.arena.get();
  window.ctx.kv = window.kv.get();
  window.ctx.n_tokens = tokens;
  window.ctx.flags = SPARKC_CTX_ALL_LOGITS;
  window.ctx.capacity = capacity;
  return window;
}

void StagedModel::clearCache(Window &window) const {
  std::memset(window.kv.get(), 0, kvBytes);
}

void StagedModel::run(const Stage &stage, const PackedLayer &weights,
                      llvm::MutableArrayRef<Window> windows) const {
  llvm::parallelFor(0, windows.size(), [&](size_t i) {
    sparkc_ctx &ctx = windows[i].ctx;
    ctx.weights = weights.pointer();
    ctx.barrier = &windows[i].barrier;
    stage.run(&ctx, 0, 1);
  });
}

llvm::Error
StagedModel::embed(ArrayRef<int32_t> tokens,
                   llvm::function_ref<float *(int64_t)> rowOf) const {
  WeightSources files;
  auto embedding = files.open(weight("embedding"), /*asRow=*/false);
  if (!embedding)
    return embedding.takeError();
  for (auto [t, token] : llvm::enumerate(tokens))
    readRow(*embedding, token, rowOf(int64_t(t)));
  return llvm::Error::success();
}

float *StagedModel::residual(Window &window, int64_t token) const {
  return reinterpret_cast<float *>(window.arena.get() + residualOffset +
                                   token * residualRow);
}

void StagedModel::read(const Tap &tap, const Window &window, float *out) const {
  // See !step.block: four tokens side by side, word by word.
  const int64_t quad = QuadLayout(tap.cols, 0).bytes;
  for (int64_t t = 0; t < window.ctx.n_tokens; ++t) {
    auto *lane = reinterpret_cast<const float *>(
        window.arena.get() + tap.offset + t / kQuad * quad) + t % kQuad;
    for (int64_t c = 0; c < tap.cols; ++c)
      out[t * tap.cols + c] = lane[c * kQuad];
  }
}
