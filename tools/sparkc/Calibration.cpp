//===- Calibration.cpp - Codes chosen on a text ---------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/Calibration.h"
#include "codegen/calibrate/HeadMoments.h"
#include "codegen/calibrate/Rounding.h"
#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/GridOf.h"
#include "codegen/weights/Progress.h"
#include "codegen/weights/QuantizedTile.h"
#include "dialect/import/ImportError.h"
#include "tools/sparkc/CalibrationText.h"
#include "tools/sparkc/Interrupt.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Parallel.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace sparkc;

/// Windows where no number is given, at most, and what they may take.
static constexpr int64_t kWindows = 128, kWindowMemory = int64_t(4) << 30;
/// How much is taken of the aim's corrections, regressions that fit c columns
/// to n tokens. They explain about a ninth of what they are to make up for, so
/// that 1 - 8 c / n of them is best; the rest is chance.
static float shareOfCorrections(int64_t cols, int64_t tokens) {
  return std::max(0.0f, 1 - 8 * float(cols) / float(tokens));
}

namespace {

class Calibration {
public:
  Calibration(ModuleOp module, StagedModel &model,
              const CalibrationOptions &options)
      : module(module), model(&model), options(options) {}
  llvm::Error run();

  Calibrated result;

private:
  llvm::Error openFile();
  llvm::Error startWindows();
  llvm::Error runLayer(size_t index);
  /// Quantizes what reads the stage's tap.
  llvm::Error quantize(size_t index, const StagedModel::Stage &stage,
                       PackedLayer &packed);
  /// The moments of the stage's tap, which `reader` reads.
  /// So are those of the head's rows, in `head` if there is one.
  llvm::Expected<Moments> collect(const StagedModel::Stage &stage,
                                  StringRef reader, HeadMoments *head);
  llvm::Error quantizeMatrix(StringRef name, const Moments &moments,
                             const ErrorFactor *factor,
                             const HeadMoments *head);
  llvm::Error note(StringRef name, const Twine &why);
  /// An error that the same command would meet again: the file goes.
  llvm::Error hopeless(StringRef file, const Twine &why) {
    result.file->remove();
    return importError(file, why);
  }
  /// A layer's own weights. Those that cannot be packed are as bad the next
  /// time.
  llvm::Expected<PackedLayer> packFloats(const StagedModel::Layer &layer,
                                         bool vectorsOnly) {
    auto packed = model->pack(layer, vectorsOnly);
    if (!packed)
      result.file->remove();
    return packed;
  }
  /// Makes the file the source of a weight.
  void adopt(StringRef name);

  /// The module's weight for one of the staged model: a tied head has its own.
  spark::WeightOp target(StringRef name) const;
  bool isDone(StringRef name) const {
    spark::WeightOp weight = target(name);
    return !weight || !weight.getGrid() ||
           result.file->find(weight.getSymName());
  }

  /// How much of its aim's corrections a matrix gets.
  float shareOf(int64_t cols) const {
    return shareOfCorrections(cols, tokens.count() * tokens.length);
  }
  /// Whether any matrix gets some: only then the unquantized model is run. (The
  /// head's rows take their probabilities from it where it is.)
  bool corrects() const {
    for (const StagedModel::Layer &layer : model->layers())
      for (const StagedModel::Stage &stage : *layer.stages)
        if (stage.tap && shareOf(stage.tap->cols) > 0)
          return true;
    return false;
  }

  ModuleOp module;
  StagedModel *model;
  const CalibrationOptions &options;
  const DenseKernels *dense = nullptr;
  TokenWindows tokens;
  std::vector<Window> quantized;
  std::vector<Window> reference; ///< empty where nothing is corrected
  std::unique_ptr<Progress> progress;
  InterruptGuard interrupt;
};

} // namespace

spark::WeightOp Calibration::target(StringRef name) const {
  ModuleOp in = module;
  if (auto weight = in.lookupSymbol<spark::WeightOp>(linearName(name)))
    return weight;
  return in.lookupSymbol<spark::WeightOp>(name);
}

//===----------------------------------------------------------------------===//
// Before the first layer
//===----------------------------------------------------------------------===//

/// The file's key is the digest of the tokens and of every weight: its grid,
/// its source, and the size and date of the file it lies in.
llvm::Error Calibration::openFile() {
  std::string all;
  llvm::raw_string_ostream os(all);
  os << "2 " << tokens.length << " ";
  for (auto weight : module.getOps<spark::WeightOp>()) {
    llvm::sys::fs::file_status status;
    llvm::sys::fs::status(weight.getSource().getFile().getValue(), status);
    os << weight << status.getSize() << " "
       << status.getLastModificationTime().time_since_epoch().count() << "\n";
  }
  all.append(reinterpret_cast<const char *>(tokens.tokens.data()),
             tokens.tokens.size() * sizeof(int32_t));
  auto opened = CodeFile::open(options.codes, digestOf(all));
  if (!opened)
    return opened.takeError();
  result.file = std::move(*opened);
  if (result.file->size() && !options.quiet)
    llvm::errs() << "sparkc: note: goes on from " << result.file->path()
                 << ", which has " << result.file->size() << " matrices\n";
  return llvm::Error::success();
}

/// The embedding's rows become the residual streams of all windows.
llvm::Error Calibration::startWindows() {
  std::vector<std::vector<Window> *> copies{&quantized};
  if (corrects())
    copies.push_back(&reference);
  for (int64_t w = 0; w < tokens.count(); ++w)
    for (std::vector<Window> *windows : copies) {
      Window &window = windows->emplace_back(model->makeWindow(tokens.length));
      if (llvm::Error error = model->embed(tokens.window(w), [&](int64_t t) {
            return model->residual(window, t);
          }))
        return error;
    }
  // The rope tables are the same for all layers.
  const StagedModel::Stage &rope = model->layers().back().stages->front();
  PackedLayer none;
  model->run(rope, none, reference);
  model->run(rope, none, quantized);
  return llvm::Error::success();
}

llvm::Error Calibration::run() {
  dense = denseKernels();
  if (!dense)
    return llvm::createStringError("calibration runs the model, and this "
                                   "machine has no AVX2");
  // Two copies of each.
  const int64_t fit = kWindowMemory / (2 * model->windowBytes());
  auto read = readWindows(module, options.text, model->vocab(),
                          model->windowLength(),
                          options.windows
                              ? options.windows
                              : std::clamp<int64_t>(fit, 1, kWindows));
  if (!read)
    return read.takeError();
  tokens = std::move(*read);
  result.windows = tokens.count();
  result.length = tokens.length;
  if (llvm::Error error = openFile())
    return error;
  uint64_t total = 0;
  for (auto weight : module.getOps<spark::WeightOp>())
    if (weight.getGrid())
      total += weight.getSource().getBytes();
  progress =
      std::make_unique<Progress>("calibrating", total, options.quiet);
  if (llvm::Error error = startWindows())
    return error;
  for (size_t i = 0; i < model->layers().size(); ++i)
    if (llvm::Error error = runLayer(i))
      return error;
  progress->finish();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// A layer
//===----------------------------------------------------------------------===//

llvm::Error Calibration::runLayer(size_t index) {
  const StagedModel::Layer &layer = model->layers()[index];
  const bool head = index + 1 == model->layers().size();
  std::optional<PackedLayer> floats;
  if (!reference.empty()) {
    auto exact = packFloats(layer, head);
    if (!exact)
      return exact.takeError();
    floats = std::move(*exact);
  }
  auto packed = packFloats(layer, head);
  if (!packed)
    return packed.takeError();
  for (std::vector<Window> *windows : {&reference, &quantized})
    for (Window &window : *windows)
      model->clearCache(window);
  for (const StagedModel::Stage &stage : *layer.stages) {
    // Of the head the rope tables have been made, and nobody wants logits.
    if (head && !stage.tap)
      continue;
    if (floats)
      model->run(stage, *floats, reference);
    model->run(stage, *packed, quantized);
    if (!stage.tap)
      continue;
    if (llvm::Error error = quantize(index, stage, *packed))
      return error;
    if (interrupt.interrupted())
      return importError(
          options.codes, "interrupted; the same command goes on from this "
                         "file, which holds " +
                             Twine(result.file->size()) + " matrices");
  }
  return llvm::Error::success();
}

llvm::Expected<Moments>
Calibration::collect(const StagedModel::Stage &stage, StringRef reader,
                     HeadMoments *head) {
  const int64_t cols = stage.tap->cols;
  const bool corrected = shareOf(cols) > 0;
  const int64_t residuals =
      corrected && stage.addsToResidual ? model->hidden() : 0;
  const bool other = corrected || (head && !reference.empty());
  Moments moments(cols, residuals);
  const int64_t each = tokens.length;
  const int64_t atOnce = std::max<int64_t>(1, kGatheredFloats / (each * cols));
  std::vector<float> x, y, r;
  for (int64_t w = 0; w < tokens.count(); w += atOnce) {
    const int64_t n = std::min(atOnce, tokens.count() - w);
    x.resize(n * each * cols);
    y.resize(other ? n * each * cols : 0);
    r.resize(n * each * residuals);
    llvm::parallelFor(0, n, [&](size_t i) {
      Window &own = quantized[w + i];
      model->read(*stage.tap, own, &x[i * each * cols]);
      if (!other)
        return;
      Window &exact = reference[w + i];
      model->read(*stage.tap, exact, &y[i * each * cols]);
      for (int64_t t = 0; residuals && t < each; ++t)
        for (int64_t c = 0; c < residuals; ++c)
          r[(i * each + t) * residuals + c] =
              model->residual(exact, t)[c] - model->residual(own, t)[c];
    });
    moments.add(*dense, x.data(), corrected ? y.data() : nullptr,
                residuals ? r.data() : nullptr, n * each);
    if (head)
      head->add(x.data(), other ? y.data() : x.data(), n * each);
  }
  moments.finish();
  if (!moments.isFinite())
    return hopeless(options.text,
                    "gives activations that are no finite numbers, at the "
                    "input of " +
                        reader);
  return moments;
}

llvm::Error Calibration::quantize(size_t index,
                                  const StagedModel::Stage &stage,
                                  PackedLayer &packed) {
  const bool head = index + 1 == model->layers().size();
  std::vector<std::string> readers;
  for (const std::string &name : stage.readers)
    readers.push_back(
        head ? name : ("layers." + Twine(index) + "." + name).str());
  if (llvm::any_of(readers,
                   [&](const std::string &name) { return !isDone(name); })) {
    WeightSources files;
    SourceMatrix matrix;
    std::optional<HeadMoments> rows;
    if (head) {
      auto source =
          files.open(model->weight(readers.front()), /*asRow=*/false);
      if (!source)
        return source.takeError();
      matrix = *source;
      rows.emplace(*dense, matrix, tokens.tokens);
    }
    auto moments = collect(stage, readers.front(), rows ? &*rows : nullptr);
    if (!moments)
      return moments.takeError();
    if (rows)
      rows->finish();
    ErrorFactor factor;
    bool regular = ErrorFactor::of(*dense, moments->second, moments->cols,
                                   kCalibrationDamp, factor);
    for (const std::string &name : readers)
      if (!isDone(name))
        if (llvm::Error error = quantizeMatrix(name, *moments,
                                               regular ? &factor : nullptr,
                                               rows ? &*rows : nullptr))
          return error;
  }
  for (const std::string &name : readers) {
    if (spark::WeightOp weight = target(name); weight && weight.getGrid())
      progress->advance(weight.getSource().getBytes());
    adopt(name);
  }
  // The head's matrix is not packed: nothing comes after it.
  if (head)
    return llvm::Error::success();
  return model->repack(model->layers()[index], packed, readers);
}

llvm::Error Calibration::note(StringRef name, const Twine &why) {
  result.notes.push_back(
      (name + ": " + why + "; it is rounded to nearest").str());
  return result.file->append({name.str(), "", 0, 0, 0}, {});
}

llvm::Error Calibration::quantizeMatrix(StringRef name, const Moments &moments,
                                        const ErrorFactor *factor,
                                        const HeadMoments *head) {
  spark::WeightOp weight = target(name);
  progress->setItem(weight.getSymName());
  const GridSpec grid = gridOf(weight.getGrid());
  if (grid.form != ScaleForm::Zero)
    return note(weight.getSymName(), "grids of GGUF are not calibrated");
  if (moments.cols % grid.group)
    return note(weight.getSymName(),
                "rows of " + Twine(moments.cols) +
                    " weights are no whole groups of " + Twine(grid.group));
  if (!factor)
    return note(weight.getSymName(),
                "the inputs' second moments are singular");
  WeightSources files;
  auto source = files.open(model->weight(name), /*asRow=*/false);
  if (!source)
    return source.takeError();
  const int64_t cols = moments.cols;
  const int64_t atOnce = rowsAtOnce(cols);
  const int64_t rowBytes =
      cols / grid.group * codeFormatOf(grid).bytes;
  std::vector<uint8_t> bytes(source->rows * rowBytes);
  std::vector<QuantizeStats> statsOf(head ? head->size() : 1);
  auto roundSet = [&](size_t set, llvm::ArrayRef<int64_t> rows,
                      const ErrorFactor &own) -> llvm::Error {
    QuantizeStats &stats = statsOf[set];
    std::vector<float> weights;
    for (; !rows.empty(); rows = rows.drop_front(
                              std::min<size_t>(atOnce, rows.size()))) {
      const int64_t n = std::min<int64_t>(atOnce, rows.size());
      weights.resize(n * cols);
      llvm::parallelFor(0, n, [&](size_t i) {
        readRow(*source, rows[i], &weights[i * cols]);
      });
      if (llvm::any_of(weights, [](float w) { return !std::isfinite(w); }))
        return hopeless(source->file, "tensor '" + source->name +
                                          "': holds weights that are no "
                                          "finite numbers");
      std::vector<float> aim =
          aimOf(*dense, weights.data(), rows.front(), n, moments, *factor,
                shareOf(cols));
      Rounded rounded = roundRows(*dense, aim.data(), n, grid, own,
                                  RoundingOptions::forCodes(cols));
      for (int64_t r = 0; r < n; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          double w = weights[r * cols + c], e = rounded.value(r, c) - w;
          stats.signal += w * w;
          stats.noise += e * e;
        }
      std::vector<uint8_t> blocks = rounded.blocks();
      for (int64_t r = 0; r < n; ++r)
        std::copy_n(&blocks[r * rowBytes], rowBytes,
                    &bytes[rows[r] * rowBytes]);
    }
    return llvm::Error::success();
  };
  if (head) {
    auto regular = head->forSets(moments, kCalibrationDamp, roundSet);
    if (!regular)
      return regular.takeError();
    if (!*regular)
      return note(weight.getSymName(),
                  "the inputs' second moments are singular");
  } else {
    std::vector<int64_t> all(source->rows);
    std::iota(all.begin(), all.end(), int64_t(0));
    if (llvm::Error error = roundSet(0, all, *factor))
      return error;
  }
  QuantizeStats stats;
  for (const QuantizeStats &some : statsOf)
    stats += some;
  return result.file->append({weight.getSymName().str(),
                              codeFormatOf(grid).name, stats.sqnr(), 0, 0},
                             bytes);
}

void Calibration::adopt(StringRef name) {
  spark::WeightOp weight = target(name);
  if (!weight)
    return;
  const CodeFile::Record *record = result.file->find(weight.getSymName());
  if (!record || record->dtype.empty())
    return;
  auto source = spark::SourceAttr::get(
      module.getContext(),
      StringAttr::get(module.getContext(), result.file->path()), record->dtype,
      record->offset, record->bytes, /*group=*/0, /*parts=*/nullptr);
  weight.replaceSource(source);
  if (name != "embedding")
    model->setSource(name, source);
}

llvm::Expected<Calibrated>
sparkc::calibrate(ModuleOp module, StagedModel &model,
                  const CalibrationOptions &options) {
  Calibration calibration(module, model, options);
  if (llvm::Error error = calibration.run())
    return error;
  return std::move(calibration.result);
}
