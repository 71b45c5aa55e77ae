//===- Sensitivity.cpp - What each matrix costs at each grid --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/Sensitivity.h"
#include "codegen/calibrate/HeadMoments.h"
#include "codegen/calibrate/Rounding.h"
#include "codegen/weights/Progress.h"
#include "codegen/weights/QuantizedTile.h"
#include "dialect/import/ImportError.h"
#include "tools/sparkc-eval/Scores.h"
#include "tools/sparkc/Calibration.h"
#include "tools/sparkc/Interrupt.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/Threading.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace sparkc;

/// Zero points cost half of what scales do and mostly buy less
/// (docs/calibration.md), so grids with them are few.
static constexpr const char *kGrids[] = {
    "q4:g128:sym", "q4:g64:sym", "q4:g64", "q4:g32:sym",
    "q5:g128:sym", "q5:g64:sym", "q5:g64", "q5:g32:sym",
    "q6:g128:sym", "q6:g64:sym", "q6:g64", "q8:g64:sym"};
/// What is measured.
static WeightScheme probeFor(int64_t cols) {
  return llvm::cantFail(WeightScheme::parse(
      cols % 64 == 0 || cols % 32 ? "q4:g64" : "q4:g32"));
}
static constexpr int64_t kNarrowest = 32;
/// Rows of a matrix that other grids are compared on; fewer where they are long,
/// so many of a set of the head's.
static int64_t comparedRows(int64_t cols) {
  return cols > RoundingOptions::kManyColumns ? 96 : 512;
}
static constexpr int64_t kComparedOfSet = 16;
/// Tokens of which the head's rows get moments of their own, about.
static constexpr int64_t kHeadTokens = 16384;

llvm::ArrayRef<const char *> sparkc::candidateGrids() { return kGrids; }

namespace {

/// Residual streams of all windows, [window][token][hidden].
using Streams = std::vector<float>;

class Measurement {
public:
  Measurement(const StagedModel &model, const TokenWindows &tokens, bool quiet)
      : model(model), tokens(tokens), dense(denseKernels()),
        progress("measuring", bytesOf(model.layers()), quiet) {}
  llvm::Expected<Sensitivities>
  run(llvm::function_ref<std::string(StringRef)> pinned,
      llvm::function_ref<StringRef(StringRef)> standard,
      llvm::function_ref<llvm::Error(const Sensitivities &)> accept);

private:
  /// Of the packs of some layers.
  static uint64_t bytesOf(llvm::ArrayRef<StagedModel::Layer> layers) {
    uint64_t bytes = 0;
    for (const StagedModel::Layer &layer : layers)
      for (step::PackOp pack : layer.packs)
        bytes += packedMatrix(pack).bytes();
    return bytes;
  }
  struct Unit {
    step::PackOp pack;
    const StagedModel::Layer *layer;
    std::vector<std::vector<float>> values; ///< of the probe's weights
  };

  llvm::Error addUnits(const StagedModel::Layer &layer,
                       llvm::function_ref<std::string(StringRef)> pinned,
                       llvm::function_ref<StringRef(StringRef)> standard);
  /// Rounds the layer's units; `others` go through it.
  llvm::Error roundUnits(const StagedModel::Layer &layer,
                         const PackedLayer &packed);
  /// Rounds the units that read what a stage prepares.
  llvm::Error roundReaders(const StagedModel::Layer &layer,
                           const StagedModel::Stage &stage, Moments &moments,
                           const HeadMoments *head);
  llvm::Error roundUnit(size_t unit, const Moments &moments,
                        const ErrorFactor *factor, const HeadMoments *head);
  llvm::Error roundSet(llvm::ArrayRef<GridChoice> choices,
                       const SourceMatrix &source,
                       llvm::ArrayRef<int64_t> rows, const ErrorFactor &factor,
                       int64_t compared, std::vector<float> &values,
                       std::vector<double> &losses);
  llvm::Expected<double> roundSome(const SourceMatrix &source,
                                   llvm::ArrayRef<int64_t> rows,
                                   const GridSpec &grid,
                                   const ErrorFactor &factor,
                                   std::vector<float> *out);
  llvm::Error roundPlain(step::PackOp pack, const WeightScheme &scheme,
                         double &noise, std::vector<float> *values);
  llvm::Error runLayer(const StagedModel::Layer &layer);
  llvm::Error runHead(const StagedModel::Layer &head);
  llvm::Error probe(Unit &unit, PackedLayer &packed);
  /// Takes all windows of some streams through a layer's first `count` stages,
  /// as many at once as there are threads. Calls `after(stage, window, the
  /// number of its streams, its own)` behind each stage.
  void pass(const StagedModel::Layer &layer, const PackedLayer &packed,
            llvm::ArrayRef<Streams *> streams, size_t count,
            llvm::function_ref<void(size_t, Window &, size_t, int64_t)> after);
  /// Takes them through all.
  void pass(const StagedModel::Layer &layer, const PackedLayer &packed,
            llvm::ArrayRef<Streams *> streams);
  /// Mean KL of the second halves of the windows of each streams; the first call
  /// is what the others are compared with.
  std::vector<double> klOf(const StagedModel::Layer &head,
                           const PackedLayer &packed,
                           llvm::ArrayRef<Streams *> streams);
  void load(Window &window, const Streams &streams, int64_t w);
  void store(Window &window, Streams &streams, int64_t w);
  std::vector<Streams *> allProbes() {
    std::vector<Streams *> all;
    for (Streams &streams : probes)
      all.push_back(&streams);
    return all;
  }
  int64_t windowsOf(const Streams &streams) const {
    return int64_t(streams.size()) / (tokens.length * model.hidden());
  }

  const StagedModel &model;
  const TokenWindows &tokens;
  const DenseKernels *dense;
  Progress progress;
  InterruptGuard interrupt;
  std::vector<Window> pool;
  std::vector<std::vector<float>> logits; ///< of each of the pool
  std::vector<float> expected;            ///< logits, [window][half][vocab]
  Streams reference; ///< of the windows to measure on
  Streams others;    ///< of those that give moments
  std::vector<Streams> probes; ///< of the units so far
  std::vector<Unit> units;
  Sensitivities result;
};

} // namespace

/// Rounds each weight of a pack to nearest; `values`, one a weight, get what
/// the codes stand for.
llvm::Error Measurement::roundPlain(step::PackOp pack,
                                    const WeightScheme &scheme, double &noise,
                                    std::vector<float> *values) {
  noise = 0;
  auto sources = model.sourcesOf(pack);
  if (!sources)
    return sources.takeError();
  for (auto [i, source] : llvm::enumerate(*sources)) {
    RowRun rows;
    rows.heads = 1;
    rows.width = rows.stride = source.rows;
    rows.weightA = rows.baseA = 0;
    PackedMatrix matrix = PackedMatrix::tiled(
        scheme.tileLayout(), source.cols, scheme.group(), {rows});
    float *out = nullptr;
    if (values) {
      values[i].resize(source.rows * source.cols);
      out = values[i].data();
    }
    // Of a large matrix that is only compared some tiles are enough.
    const int64_t stride =
        out ? 1 : std::max<int64_t>(1, matrix.tiles() / 64);
    const int64_t count = (matrix.tiles() + stride - 1) / stride;
    std::vector<QuantizeStats> each(count);
    std::vector<std::string> errors(count);
    llvm::parallelFor(0, count, [&](size_t n) {
      const int64_t tile = int64_t(n) * stride;
      TileCodes codes(matrix);
      errors[n] = quantizeTile(matrix, scheme.grid, tile, {source}, {}, codes,
                               each[n]);
      for (int64_t l = 0; out && l < kTileRows; ++l) {
        SourceRow at = matrix.rowOf(tile, l);
        for (int64_t c = 0; !at.isPadding() && c < source.cols; ++c)
          out[at.row * source.cols + c] = codes.value(matrix, l, c);
      }
    });
    for (int64_t n = 0; n < count; ++n) {
      if (!errors[n].empty())
        return llvm::createStringError(errors[n]);
      noise += each[n].noise;
    }
  }
  return llvm::Error::success();
}

/// Rounds rows of a matrix; what they lose. Their values go to their places in
/// `out`, if there is one.
llvm::Expected<double> Measurement::roundSome(const SourceMatrix &source,
                                              llvm::ArrayRef<int64_t> rows,
                                              const GridSpec &grid,
                                              const ErrorFactor &factor,
                                              std::vector<float> *out) {
  const int64_t cols = source.cols;
  const int64_t atOnce = rowsAtOnce(cols);
  double loss = 0;
  std::vector<float> weights;
  for (; !rows.empty();
       rows = rows.drop_front(std::min<size_t>(atOnce, rows.size()))) {
    const int64_t n = std::min<int64_t>(atOnce, rows.size());
    weights.resize(n * cols);
    llvm::parallelFor(0, n, [&](size_t i) {
      readRow(source, rows[i], &weights[i * cols]);
    });
    if (llvm::any_of(weights, [](float w) { return !std::isfinite(w); }))
      return importError(source.file, "tensor '" + source.name +
                                          "': holds weights that are no "
                                          "finite numbers");
    Rounded rounded = roundRows(*dense, weights.data(), n, grid, factor,
                                RoundingOptions::forMeasuring(cols));
    loss += rounded.loss;
    for (int64_t r = 0; out && r < n; ++r)
      for (int64_t c = 0; c < cols; ++c)
        (*out)[rows[r] * cols + c] = rounded.value(r, c);
  }
  return loss;
}

/// What a set of rows loses at each choice of the unit and, last, by the probe:
/// added to `losses`. Choices are compared on some of the rows.
llvm::Error Measurement::roundSet(llvm::ArrayRef<GridChoice> choices,
                                  const SourceMatrix &source,
                                  llvm::ArrayRef<int64_t> rows,
                                  const ErrorFactor &factor, int64_t compared,
                                  std::vector<float> &values,
                                  std::vector<double> &losses) {
  std::vector<int64_t> some;
  const size_t stride = std::max<size_t>(1, rows.size() / compared);
  for (size_t i = 0; i < rows.size(); i += stride)
    some.push_back(rows[i]);
  const double scale = double(rows.size()) / double(some.size());
  const WeightScheme probe = probeFor(source.cols);
  for (size_t i = 0; i <= choices.size(); ++i) {
    WeightScheme scheme = probe;
    if (i < choices.size())
      scheme = llvm::cantFail(WeightScheme::parse(choices[i].scheme));
    // Floats lose nothing, and GGUF's grids are not known to.
    if (scheme.kind != WeightScheme::Grid ||
        scheme.grid.form != ScaleForm::Zero || source.cols % scheme.grid.group)
      continue;
    auto loss = roundSome(source, some, scheme.grid, factor, nullptr);
    if (!loss)
      return loss.takeError();
    losses[i] += *loss * scale;
  }
  return roundSome(source, rows, probe.grid, factor, &values).takeError();
}

/// What a unit loses at each of its choices, as a multiple of what it loses
/// by the probe, whose values are kept to be measured.
llvm::Error Measurement::roundUnit(size_t number, const Moments &moments,
                                   const ErrorFactor *factor,
                                   const HeadMoments *head) {
  Unit &unit = units[number];
  std::vector<GridChoice> &choices = result.units[number].choices;
  auto sources = model.sourcesOf(unit.pack);
  if (!sources)
    return sources.takeError();
  const int64_t cols = sources->front().cols;
  std::vector<double> losses(choices.size() + 1);
  unit.values.resize(sources->size());
  bool regular = factor && cols % kNarrowest == 0;
  for (size_t i = 0; regular && i < sources->size(); ++i) {
    const SourceMatrix &source = (*sources)[i];
    unit.values[i].resize(source.rows * cols);
    std::vector<std::vector<double>> lost(
        head ? head->size() : 1, std::vector<double>(losses.size()));
    auto each = [&](size_t set, llvm::ArrayRef<int64_t> rows,
                    const ErrorFactor &own) {
      return roundSet(choices, source, rows, own,
                      head ? kComparedOfSet : comparedRows(cols),
                      unit.values[i], lost[set]);
    };
    if (head) {
      auto all = head->forSets(moments, kCalibrationDamp, each);
      if (!all)
        return all.takeError();
      regular = *all;
    } else {
      std::vector<int64_t> all(source.rows);
      std::iota(all.begin(), all.end(), int64_t(0));
      if (llvm::Error error = each(0, all, *factor))
        return error;
    }
    for (const std::vector<double> &some : lost)
      for (size_t n = 0; n < losses.size(); ++n)
        losses[n] += some[n];
  }
  if (!regular) {
    for (size_t i = 0; i < choices.size(); ++i)
      if (WeightScheme scheme =
              llvm::cantFail(WeightScheme::parse(choices[i].scheme));
          scheme.kind == WeightScheme::Grid)
        if (llvm::Error error =
                roundPlain(unit.pack, scheme, losses[i], nullptr))
          return error;
    const WeightScheme probe = probeFor(cols);
    if (llvm::Error error =
            roundPlain(unit.pack, probe, losses.back(), nullptr))
      return error;
    double noise;
    if (llvm::Error error =
            roundPlain(unit.pack, probe, noise, unit.values.data()))
      return error;
  }
  for (auto [i, choice] : llvm::enumerate(choices))
    choice.kl = losses.back() > 0 ? losses[i] / losses.back() : 0;
  return llvm::Error::success();
}

llvm::Error
Measurement::addUnits(const StagedModel::Layer &layer,
                      llvm::function_ref<std::string(StringRef)> pinned,
                      llvm::function_ref<StringRef(StringRef)> standard) {
  for (step::PackOp pack : layer.packs) {
    PackedMatrix matrix = packedMatrix(pack);
    if (!isTiled(matrix.layout)) {
      if (matrix.layout == Layout::VectorF32)
        result.otherBytes += (matrix.bytes() + 63) / 64 * 64;
      continue;
    }
    GridUnit unit;
    std::string fixed;
    for (auto name : pack.getWeights().getAsRange<FlatSymbolRefAttr>()) {
      unit.weights.push_back(linearName(name.getValue()).str());
      result.weights += model.weight(name.getValue())
                            .getTensorType()
                            .getNumElements();
      if (fixed.empty())
        fixed = pinned(unit.weights.back());
    }
    auto bytesAt = [&](const WeightScheme &scheme) {
      return uint64_t(PackedMatrix::tiled(scheme.tileLayout(), matrix.cols,
                                          scheme.group(), matrix.runs)
                          .bytes());
    };
    for (const char *name : kGrids) {
      WeightScheme scheme = llvm::cantFail(WeightScheme::parse(name));
      // Whole groups, where any grid has such.
      if (matrix.cols % scheme.group() && matrix.cols % kNarrowest == 0)
        continue;
      unit.choices.push_back({name, bytesAt(scheme), 0});
    }
    std::string usual = standard(unit.weights.front()).str();
    if (!fixed.empty()) {
      usual = fixed;
      unit.choices = {
          {fixed, bytesAt(llvm::cantFail(WeightScheme::parse(fixed))), 0}};
    }
    result.defaultBytes += bytesAt(llvm::cantFail(WeightScheme::parse(usual)));
    result.units.push_back(std::move(unit));
    units.push_back({pack, &layer, {}});
  }
  return llvm::Error::success();
}

void Measurement::load(Window &window, const Streams &streams, int64_t w) {
  const int64_t hidden = model.hidden();
  for (int64_t t = 0; t < tokens.length; ++t)
    std::copy_n(&streams[(w * tokens.length + t) * hidden], hidden,
                model.residual(window, t));
}

void Measurement::store(Window &window, Streams &streams, int64_t w) {
  const int64_t hidden = model.hidden();
  for (int64_t t = 0; t < tokens.length; ++t)
    std::copy_n(model.residual(window, t), hidden,
                &streams[(w * tokens.length + t) * hidden]);
}

void Measurement::pass(
    const StagedModel::Layer &layer, const PackedLayer &packed,
    llvm::ArrayRef<Streams *> streams, size_t count,
    llvm::function_ref<void(size_t, Window &, size_t, int64_t)> after) {
  std::vector<std::pair<size_t, int64_t>> all;
  for (auto [n, some] : llvm::enumerate(streams))
    for (int64_t w = 0; w < windowsOf(*some); ++w)
      all.emplace_back(n, w);
  for (auto left = llvm::ArrayRef(all); !left.empty();
       left = left.drop_front(std::min(pool.size(), left.size()))) {
    auto batch = llvm::MutableArrayRef(pool).take_front(left.size());
    for (auto [window, at] : llvm::zip(batch, left)) {
      model.clearCache(window);
      load(window, *streams[at.first], at.second);
    }
    // Not the rope tables, which all have.
    const bool head = &layer == &model.layers().back();
    for (size_t stage = head; stage < count; ++stage) {
      model.run((*layer.stages)[stage], packed, batch);
      for (auto [window, at] : llvm::zip(batch, left))
        after(stage, window, at.first, at.second);
    }
  }
}

void Measurement::pass(const StagedModel::Layer &layer,
                       const PackedLayer &packed,
                       llvm::ArrayRef<Streams *> streams) {
  const size_t count = layer.stages->size();
  pass(layer, packed, streams, count,
       [&](size_t stage, Window &window, size_t n, int64_t w) {
         if (stage + 1 == count)
           store(window, *streams[n], w);
       });
}

llvm::Error Measurement::roundUnits(const StagedModel::Layer &layer,
                                    const PackedLayer &packed) {
  const std::vector<StagedModel::Stage> &stages = *layer.stages;
  // Of the head, nobody wants logits.
  const bool head = &layer == &model.layers().back();
  std::vector<SourceMatrix> matrix;
  std::optional<HeadMoments> rows;
  if (head) {
    auto sources = model.sourcesOf(units.back().pack);
    if (!sources)
      return sources.takeError();
    matrix = std::move(*sources);
    rows.emplace(*dense, matrix.front(), tokens.tokens,
                 HeadMoments::kSetsForMeasuring);
  }
  std::vector<std::optional<Moments>> moments(stages.size());
  size_t count = 0;
  for (auto [i, stage] : llvm::enumerate(stages))
    if (stage.tap) {
      moments[i].emplace(stage.tap->cols, 0);
      count = i + 1;
    }
  if (!head)
    count = stages.size();
  std::vector<float> x;
  const int64_t stride =
      std::max<int64_t>(1, windowsOf(others) * tokens.length / kHeadTokens);
  pass(layer, packed, &others, count,
       [&](size_t i, Window &window, size_t, int64_t w) {
         if (!head && i + 1 == count)
           store(window, others, w);
         if (!moments[i])
           return;
         x.resize(tokens.length * moments[i]->cols);
         model.read(*stages[i].tap, window, x.data());
         moments[i]->add(*dense, x.data(), nullptr, nullptr, tokens.length);
         for (int64_t t = 0; rows && t < tokens.length; t += stride) {
           const float *own = &x[t * moments[i]->cols];
           rows->add(own, own, 1);
         }
       });
  if (rows)
    rows->finish();
  for (auto [i, stage] : llvm::enumerate(stages))
    if (moments[i]) {
      if (llvm::Error error =
              roundReaders(layer, stage, *moments[i], rows ? &*rows : nullptr))
        return error;
      moments[i].reset();
    }
  return llvm::Error::success();
}

llvm::Error Measurement::roundReaders(const StagedModel::Layer &layer,
                                      const StagedModel::Stage &stage,
                                      Moments &moments,
                                      const HeadMoments *head) {
  auto isReader = [&](const Unit &unit) {
    step::PackOp pack = unit.pack;
    StringRef name = cast<FlatSymbolRefAttr>(pack.getWeights()[0]).getValue();
    return unit.layer == &layer &&
           llvm::is_contained(stage.readers, name.substr(name.rfind('.') + 1));
  };
  moments.finish();
  if (!moments.isFinite()) {
    auto reader = llvm::find_if(units, isReader);
    return llvm::createStringError(
        result.units[reader - units.begin()].weights.front() +
        ": the text gives activations that are no finite numbers at its input");
  }
  ErrorFactor factor;
  const bool regular = ErrorFactor::of(*dense, moments.second, moments.cols,
                                       kCalibrationDamp, factor);
  for (auto [number, unit] : llvm::enumerate(units)) {
    if (!isReader(unit))
      continue;
    if (llvm::Error error =
            roundUnit(number, moments, regular ? &factor : nullptr, head))
      return error;
  }
  return llvm::Error::success();
}

std::vector<double> Measurement::klOf(const StagedModel::Layer &head,
                                      const PackedLayer &packed,
                                      llvm::ArrayRef<Streams *> streams) {
  const int64_t vocab = model.vocab(), half = tokens.length / 2;
  const int64_t windows = windowsOf(reference);
  const bool first = expected.empty();
  if (first)
    expected.resize(windows * half * vocab);
  std::vector<double> sums(streams.size());
  for (size_t i = 0; i < pool.size(); ++i) {
    logits[i].resize(tokens.length * vocab);
    pool[i].ctx.logits = logits[i].data();
  }
  const size_t count = head.stages->size();
  pass(head, packed, streams, count,
       [&](size_t stage, Window &window, size_t n, int64_t w) {
         if (stage + 1 != count)
           return;
         float *own = window.ctx.logits + (tokens.length - half) * vocab;
         float *other = &expected[w * half * vocab];
         if (first)
           std::copy_n(own, half * vocab, other);
         std::vector<double> kl(half);
         llvm::parallelFor(0, half, [&](size_t t) {
           eval::RowScore score;
           kl[t] = eval::scoreRow(own + t * vocab, other + t * vocab, vocab, 0,
                                  score)
                       ? score.kl
                       : NAN;
         });
         for (double value : kl)
           sums[n] += value / double(windows * half);
       });
  return sums;
}

/// Puts a unit's rounded values into the layer's packed weights.
llvm::Error Measurement::probe(Unit &unit, PackedLayer &packed) {
  auto sources = model.sourcesOf(unit.pack);
  if (!sources)
    return sources.takeError();
  for (auto [source, rounded] : llvm::zip_equal(*sources, unit.values)) {
    source.data = reinterpret_cast<const uint8_t *>(rounded.data());
    source.type = SourceType::F32;
    source.release = nullptr;
    source.transform = nullptr;
  }
  if (llvm::Error error =
          model.packOne(unit.pack, *unit.layer, *sources, packed))
    return error;
  unit.values = {};
  return llvm::Error::success();
}

llvm::Error Measurement::runLayer(const StagedModel::Layer &layer) {
  auto packed = model.pack(layer);
  if (!packed)
    return packed.takeError();
  pass(layer, *packed, allProbes());
  if (llvm::Error error = roundUnits(layer, *packed))
    return error;
  for (Unit &unit : units) {
    if (unit.layer != &layer)
      continue;
    if (llvm::Error error = probe(unit, *packed))
      return error;
    probes.push_back(reference);
    pass(layer, *packed, &probes.back());
    if (llvm::Error error = model.packOwn(unit.pack, layer, *packed))
      return error;
  }
  pass(layer, *packed, &reference);
  return llvm::Error::success();
}

llvm::Error Measurement::runHead(const StagedModel::Layer &head) {
  auto packed = model.pack(head);
  if (!packed)
    return packed.takeError();
  if (llvm::Error error = roundUnits(head, *packed))
    return error;
  klOf(head, *packed, &reference);
  std::vector<double> kl = klOf(head, *packed, allProbes());
  if (llvm::Error error = probe(units.back(), *packed))
    return error;
  kl.push_back(klOf(head, *packed, &reference).front());
  for (auto [unit, measured] : llvm::zip_equal(result.units, kl)) {
    if (!std::isfinite(measured))
      return llvm::createStringError(
          unit.weights.front() +
          ": the model computes logits that are no finite numbers");
    for (GridChoice &choice : unit.choices)
      choice.kl *= measured;
  }
  return llvm::Error::success();
}

llvm::Expected<Sensitivities>
Measurement::run(
    llvm::function_ref<std::string(StringRef)> pinned,
    llvm::function_ref<StringRef(StringRef)> standard,
    llvm::function_ref<llvm::Error(const Sensitivities &)> accept) {
  for (const StagedModel::Layer &layer : model.layers())
    if (llvm::Error error = addUnits(layer, pinned, standard))
      return error;
  if (llvm::Error error = accept(result))
    return error;
  const int64_t threads = llvm::hardware_concurrency().compute_thread_count();
  for (int64_t i = 0; i < std::min(threads, tokens.count()); ++i)
    pool.push_back(model.makeWindow(tokens.length));
  logits.resize(pool.size());
  const StagedModel::Layer &head = model.layers().back();
  model.run(head.stages->front(), PackedLayer(), pool);

  // Where there are fewer windows than that, each gives both.
  const int64_t hidden = model.hidden(), count = tokens.count();
  for (int64_t w = 0; w < count; ++w)
    for (Streams *to : {&reference, &others}) {
      const bool measures = w % kWindowsPerMeasured == kWindowsPerMeasured / 2;
      if (count >= kWindowsPerMeasured && measures != (to == &reference))
        continue;
      const size_t at = to->size();
      to->resize(at + tokens.length * hidden);
      if (llvm::Error error =
              model.embed(tokens.window(w), [&](int64_t t) {
                return &(*to)[at + t * hidden];
              }))
        return error;
    }
  for (const StagedModel::Layer &layer : model.layers().drop_back()) {
    if (llvm::Error error = runLayer(layer))
      return error;
    progress.advance(bytesOf(layer));
    if (interrupt.interrupted())
      return llvm::createStringError("interrupted");
  }
  if (llvm::Error error = runHead(head))
    return error;
  if (interrupt.interrupted())
    return llvm::createStringError("interrupted");
  progress.finish();
  return result;
}

llvm::Expected<Sensitivities> sparkc::measureSensitivities(
    const StagedModel &model, const TokenWindows &tokens,
    llvm::function_ref<std::string(StringRef)> pinned,
    llvm::function_ref<StringRef(StringRef)> standard,
    llvm::function_ref<llvm::Error(const Sensitivities &)> accept, bool quiet) {
  if (!denseKernels())
    return llvm::createStringError("choosing grids runs the model, and this "
                                   "machine has no AVX2");
  return Measurement(model, tokens, quiet).run(pinned, standard, accept);
}
