//===- Sensitivity.cpp - What each matrix costs at each grid --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/Sensitivity.h"
#include "codegen/weights/Progress.h"
#include "codegen/weights/QuantizedTile.h"
#include "dialect/import/ImportError.h"
#include "tools/sparkc-eval/Scores.h"
#include "tools/sparkc/Interrupt.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace sparkc;

static constexpr const char *kGrids[] = {"q4:g128", "q4:g64", "q4:g32",
                                         "q5:g64",  "q6:g64", "q8:g64"};
/// What is measured.
static constexpr const char *kProbe = "q4:g64";

llvm::ArrayRef<const char *> sparkc::candidateGrids() { return kGrids; }

namespace {

/// Residual streams of all windows, [window][token][hidden].
using Streams = std::vector<float>;

class Measurement {
public:
  Measurement(const StagedModel &model, const TokenWindows &tokens, bool quiet)
      : model(model), tokens(tokens),
        progress("measuring", bytesOf(model.layers()), quiet) {}
  llvm::Expected<Sensitivities>
  run(llvm::function_ref<std::string(StringRef)> pinned);

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
  };

  llvm::Error addUnits(const StagedModel::Layer &layer,
                       llvm::function_ref<std::string(StringRef)> pinned);
  llvm::Error roundUnit(step::PackOp pack, const WeightScheme &scheme,
                        QuantizeStats &stats, std::vector<float> *values);
  llvm::Error runLayer(const StagedModel::Layer &layer);
  llvm::Error runHead(const StagedModel::Layer &head);
  llvm::Error probe(const Unit &unit, PackedLayer &packed);
  /// Takes streams through a layer.
  void pass(const StagedModel::Layer &layer, const PackedLayer &packed,
            Streams &streams);
  /// Mean KL of the second halves of the windows; the first call is what the
  /// others are compared with.
  double klOf(const StagedModel::Layer &head, const PackedLayer &packed,
              const Streams &streams);
  void load(Window &window, const Streams &streams, int64_t w);

  const StagedModel &model;
  const TokenWindows &tokens;
  Progress progress;
  InterruptGuard interrupt;
  std::vector<Window> pool;
  std::vector<std::vector<float>> logits; ///< of each of the pool
  std::vector<float> expected;            ///< logits, [window][half][vocab]
  Streams reference;
  std::vector<Streams> probes; ///< of the units so far
  std::vector<Unit> units;
  Sensitivities result;
};

} // namespace

static std::string ruleName(const StagedModel &model, StringRef weight) {
  return weight == "embedding" ? "lm_head" : weight.str();
}

/// Rounds each weight of a pack to nearest; `values`, one a weight, get what
/// the codes stand for.
llvm::Error Measurement::roundUnit(step::PackOp pack,
                                   const WeightScheme &scheme,
                                   QuantizeStats &stats,
                                   std::vector<float> *values) {
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
      stats += each[n];
    }
  }
  return llvm::Error::success();
}

llvm::Error
Measurement::addUnits(const StagedModel::Layer &layer,
                      llvm::function_ref<std::string(StringRef)> pinned) {
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
      unit.weights.push_back(ruleName(model, name.getValue()));
      result.weights += model.weight(name.getValue())
                            .getTensorType()
                            .getNumElements();
      if (fixed.empty())
        fixed = pinned(unit.weights.back());
    }
    double probeNoise = 0;
    for (const char *name : kGrids) {
      WeightScheme scheme = llvm::cantFail(WeightScheme::parse(name));
      QuantizeStats stats;
      if (llvm::Error error = roundUnit(pack, scheme, stats, nullptr))
        return error;
      PackedMatrix packed = PackedMatrix::tiled(
          scheme.tileLayout(), matrix.cols, scheme.group(), matrix.runs);
      unit.choices.push_back({name, uint64_t(packed.bytes()), stats.noise});
      if (StringRef(name) == kProbe)
        probeNoise = stats.noise;
    }
    for (GridChoice &choice : unit.choices)
      choice.kl = probeNoise > 0 ? choice.kl / probeNoise : 0;
    if (!fixed.empty()) {
      WeightScheme scheme = llvm::cantFail(WeightScheme::parse(fixed));
      PackedMatrix packed = PackedMatrix::tiled(
          scheme.tileLayout(), matrix.cols, scheme.group(), matrix.runs);
      unit.choices = {{fixed, uint64_t(packed.bytes()), 0}};
    }
    result.units.push_back(std::move(unit));
    units.push_back({pack, &layer});
  }
  return llvm::Error::success();
}

void Measurement::load(Window &window, const Streams &streams, int64_t w) {
  const int64_t hidden = model.hidden();
  for (int64_t t = 0; t < tokens.length; ++t)
    std::copy_n(&streams[(w * tokens.length + t) * hidden], hidden,
                model.residual(window, t));
}

void Measurement::pass(const StagedModel::Layer &layer,
                       const PackedLayer &packed, Streams &streams) {
  const int64_t hidden = model.hidden();
  for (int64_t w = 0; w < tokens.count(); w += int64_t(pool.size())) {
    auto batch = llvm::MutableArrayRef(pool).take_front(
        std::min<int64_t>(pool.size(), tokens.count() - w));
    for (auto [i, window] : llvm::enumerate(batch)) {
      model.clearCache(window);
      load(window, streams, w + int64_t(i));
    }
    for (const StagedModel::Stage &stage : *layer.stages)
      model.run(stage, packed, batch);
    for (auto [i, window] : llvm::enumerate(batch))
      for (int64_t t = 0; t < tokens.length; ++t)
        std::copy_n(model.residual(window, t), hidden,
                    &streams[((w + int64_t(i)) * tokens.length + t) * hidden]);
  }
}

double Measurement::klOf(const StagedModel::Layer &head,
                         const PackedLayer &packed, const Streams &streams) {
  const int64_t vocab = model.vocab(), half = tokens.length / 2;
  const bool first = expected.empty();
  if (first)
    expected.resize(tokens.count() * half * vocab);
  double sum = 0;
  for (int64_t w = 0; w < tokens.count(); w += int64_t(pool.size())) {
    auto batch = llvm::MutableArrayRef(pool).take_front(
        std::min<int64_t>(pool.size(), tokens.count() - w));
    for (auto [i, window] : llvm::enumerate(batch)) {
      logits[i].resize(tokens.length * vocab);
      window.ctx.logits = logits[i].data();
      load(window, streams, w + int64_t(i));
    }
    // Not the rope tables.
    for (const StagedModel::Stage &stage :
         llvm::ArrayRef(*head.stages).drop_front())
      model.run(stage, packed, batch);
    std::vector<double> kl(batch.size());
    llvm::parallelFor(0, batch.size(), [&](size_t i) {
      float *own = &logits[i][(tokens.length - half) * vocab];
      float *other = &expected[(w + int64_t(i)) * half * vocab];
      if (first)
        std::copy_n(own, half * vocab, other);
      eval::RowScore score;
      for (int64_t t = 0; t < half; ++t) {
        if (!eval::scoreRow(own + t * vocab, other + t * vocab, vocab, 0,
                            score))
          score.kl = NAN;
        kl[i] += score.kl;
      }
    });
    for (double value : kl)
      sum += value;
  }
  return sum / double(tokens.count() * half);
}

/// Rounds a unit within the layer's packed weights.
llvm::Error Measurement::probe(const Unit &unit, PackedLayer &packed) {
  QuantizeStats stats;
  step::PackOp pack = unit.pack;
  std::vector<std::vector<float>> values(pack.getWeights().size());
  if (llvm::Error error =
          roundUnit(pack, llvm::cantFail(WeightScheme::parse(kProbe)),
                    stats, values.data()))
    return error;
  auto sources = model.sourcesOf(pack);
  if (!sources)
    return sources.takeError();
  for (auto [source, rounded] : llvm::zip_equal(*sources, values)) {
    source.data = reinterpret_cast<const uint8_t *>(rounded.data());
    source.type = SourceType::F32;
    source.release = nullptr;
    source.transform = nullptr;
  }
  return model.packOne(pack, *unit.layer, *sources, packed);
}

llvm::Error Measurement::runLayer(const StagedModel::Layer &layer) {
  auto packed = model.pack(layer);
  if (!packed)
    return packed.takeError();
  for (Streams &streams : probes)
    pass(layer, *packed, streams);
  for (const Unit &unit : units) {
    if (unit.layer != &layer)
      continue;
    if (llvm::Error error = probe(unit, *packed))
      return error;
    probes.push_back(reference);
    pass(layer, *packed, probes.back());
    if (llvm::Error error = model.packOwn(unit.pack, layer, *packed))
      return error;
  }
  pass(layer, *packed, reference);
  return llvm::Error::success();
}

llvm::Error Measurement::runHead(const StagedModel::Layer &head) {
  auto packed = model.pack(head);
  if (!packed)
    return packed.takeError();
  klOf(head, *packed, reference);
  std::vector<double> kl;
  for (const Streams &streams : probes)
    kl.push_back(klOf(head, *packed, streams));
  if (llvm::Error error = probe(units.back(), *packed))
    return error;
  kl.push_back(klOf(head, *packed, reference));
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
Measurement::run(llvm::function_ref<std::string(StringRef)> pinned) {
  for (const StagedModel::Layer &layer : model.layers())
    if (llvm::Error error = addUnits(layer, pinned))
      return error;
  const int64_t threads = llvm::hardware_concurrency().compute_thread_count();
  for (int64_t i = 0; i < std::min(threads, tokens.count()); ++i)
    pool.push_back(model.makeWindow(tokens.length));
  logits.resize(pool.size());
  const StagedModel::Layer &head = model.layers().back();
  model.run(head.stages->front(), PackedLayer(), pool);

  WeightSources files;
  auto embedding = files.open(model.weight("embedding"), /*asRow=*/false);
  if (!embedding)
    return embedding.takeError();
  const int64_t hidden = model.hidden();
  reference.resize(tokens.tokens.size() * hidden);
  for (size_t i = 0; i < tokens.tokens.size(); ++i)
    readRow(*embedding, tokens.tokens[i], &reference[i * hidden]);
  for (const StagedModel::Layer &layer : model.layers().drop_back()) {
    if (llvm::Error error = runLayer(layer))
      return error;
    progress.advance(bytesOf(layer));
    if (interrupt.interrupted())
      return llvm::createStringError("interrupted");
  }
  if (llvm::Error error = runHead(head))
    return error;
  progress.finish();
  return result;
}

llvm::Expected<Sensitivities> sparkc::measureSensitivities(
    const StagedModel &model, const TokenWindows &tokens,
    llvm::function_ref<std::string(StringRef)> pinned, bool quiet) {
  return Measurement(model, tokens, quiet).run(pinned);
}
