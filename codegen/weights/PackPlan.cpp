//===- PackPlan.cpp - From step.pack ops to a weights file ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/PackPlan.h"
#include "codegen/weights/GridOf.h"
#include "codegen/weights/BlockFormat.h"
#include "codegen/weights/Progress.h"
#include "codegen/weights/QuantizedTile.h"
#include "dialect/import/GgufModel.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/MappedFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace sparkc;

llvm::Expected<std::shared_ptr<MappedFile>>
WeightSources::map(spark::WeightOp weight, spark::SourceAttr source) {
  StringRef path = source.getFile();
  std::shared_ptr<MappedFile> &file = files[path];
  if (!file) {
    auto opened = MappedFile::open(path);
    if (!opened)
      return opened.takeError();
    file = *opened;
  }
  if (source.getOffset() + source.getBytes() > file->size())
    return importError(path, "ends before weight '" + weight.getSymName() + "'");
  return file;
}

llvm::Expected<SourceMatrix> WeightSources::open(spark::WeightOp weight,
                                                 bool asRow) {
  auto matrix = openStored(weight, asRow);
  if (matrix && weight.getTransforms())
    if (llvm::Error error = transform(weight, *matrix))
      return error;
  return matrix;
}

llvm::Expected<SourceMatrix> WeightSources::openStored(spark::WeightOp weight,
                                                       bool asRow) {
  spark::SourceAttr source = weight.getSource();
  auto mapped = map(weight, source);
  if (!mapped)
    return mapped.takeError();
  std::shared_ptr<MappedFile> file = *mapped;
  SourceMatrix matrix;
  matrix.data = file->data() + source.getOffset();
  if (const BlockFormat *format = blockFormat(source.getDtype()))
    matrix.type = format->type;
  else
    matrix.type = StringSwitch<SourceType>(source.getDtype())
                      .Case("F32", SourceType::F32)
                      .Case("BF16", SourceType::BF16)
                      .Case("AWQ4", SourceType::AWQ4)
                      .Case("GPTQ4", SourceType::GPTQ4)
                      .Case("GPTQ4_V2", SourceType::GPTQ4_V2)
                      .Default(SourceType::F16);
  ArrayRef<int64_t> shape = weight.getTensorType().getShape();
  matrix.rows = asRow ? 1 : shape[0];
  matrix.cols = shape.back();
  matrix.name = weight.getSymName().str();
  matrix.file = source.getFile().str();
  if (isTransposed(matrix.type)) {
    auto scales = map(weight, source.getScales());
    if (!scales)
      return scales.takeError();
    auto zeros = map(weight, source.getZeros());
    if (!zeros)
      return zeros.takeError();
    matrix.group = source.getGroup();
    matrix.scales = (*scales)->data() + source.getScales().getOffset();
    matrix.zeros = (*zeros)->data() + source.getZeros().getOffset();
    return matrix;
  }
  matrix.release = [file](const uint8_t *begin, int64_t bytes) {
    file->drop(begin - file->data(), bytes);
  };
  return matrix;
}

/// The text of an asset: a file's, or what a GGUF file says of its kind.
static llvm::Expected<std::string> textOf(spark::AssetOp asset,
                                          std::optional<GgufFile> &opened) {
  StringRef path = asset.getFile();
  if (!path.ends_with(".gguf")) {
    auto file = MappedFile::open(path);
    if (!file)
      return file.takeError();
    return llvm::toStringRef((*file)->bytes()).str();
  }
  if (!opened || opened->path() != path) {
    auto file = GgufFile::open(path);
    if (!file)
      return file.takeError();
    opened = std::move(*file);
  }
  return ggufText(*opened, asset.getKind());
}

llvm::Expected<std::string> sparkc::assetText(spark::AssetOp asset) {
  std::optional<GgufFile> gguf;
  return textOf(asset, gguf);
}

/// Adds the texts that travel with the model as sections.
static llvm::Error addAssets(ModuleOp module, WeightFileWriter &writer) {
  std::optional<GgufFile> gguf;
  for (auto asset : module.getOps<spark::AssetOp>()) {
    auto kind = StringSwitch<sparkc_section_kind>(asset.getKind())
                    .Case("tokenizer", SPARKC_SECTION_TOKENIZER)
                    .Case("tokenizer_config", SPARKC_SECTION_TOKENIZER_CONFIG)
                    .Case("generation_config", SPARKC_SECTION_GENERATION_CONFIG)
                    .Default(SPARKC_SECTION_CHAT_TEMPLATE);
    auto text = textOf(asset, gguf);
    if (!text)
      return text.takeError();
    if (llvm::Error error = writer.addSection(kind, *text))
      return error;
  }
  return llvm::Error::success();
}

/// How the weights of a pack are stored.
static WeightScheme schemeOf(const PackedMatrix &matrix) {
  WeightScheme scheme;
  if (isQuantized(matrix.layout))
    scheme.grid = GridSpec::of(matrix.layout, matrix.group);
  else
    scheme.kind = bitsPerWeight(matrix.layout) == 16 ? WeightScheme::BF16
                                                     : WeightScheme::F32;
  return scheme;
}

/// Gives each source of a pack the bytes of its tiles.
static void countBytes(const PackedMatrix &matrix,
                       MutableArrayRef<PackedSource> sources) {
  if (!isTiled(matrix.layout)) {
    sources.front().bytes = matrix.bytes();
    return;
  }
  for (const RowRun &run : matrix.runs) {
    uint64_t bytes = run.tiles() * matrix.tileBytes();
    if (!run.paired()) {
      sources[run.weightA].bytes += bytes;
      continue;
    }
    sources[run.weightA].bytes += bytes / 2;
    sources[run.weightB].bytes += bytes / 2;
  }
}

namespace {

/// Packs one op after the other.
class Packer {
public:
  Packer(ModuleOp module, WeightFileWriter &writer, const PackOptions &options)
      : symbols(module), writer(writer), options(options),
        progress("packing", totalBytes(module), options.quiet) {}
  llvm::Expected<PackedTensor> pack(step::PackOp op);

private:
  static uint64_t totalBytes(ModuleOp module) {
    uint64_t total = 0;
    for (auto pack : module.getOps<step::PackOp>())
      total += packedMatrix(pack).bytes();
    return total;
  }

  SymbolTable symbols;
  WeightFileWriter &writer;
  const PackOptions &options;
  WeightSources files;
  Progress progress;
};

} // namespace

llvm::Expected<PackedTensor> Packer::pack(step::PackOp op) {
  DirectoryEntry entry;
  entry.name = op.getSymName().str();
  entry.matrix = packedMatrix(op);
  entry.offset = op.getOffset();
  const PackedMatrix &matrix = entry.matrix;
  progress.setItem(entry.name);
  PackedTensor tensor;
  tensor.name = entry.name;
  tensor.layout = matrix.layout;
  tensor.bytes = matrix.bytes();
  std::vector<SourceMatrix> sources;
  for (auto name : op.getWeights().getAsRange<FlatSymbolRefAttr>()) {
    auto weight = symbols.lookup<spark::WeightOp>(name.getAttr());
    if (!weight)
      return llvm::createStringError("pack '" + entry.name + "' refers to '" +
                                     name.getValue() +
                                     "', which is no spark.weight");
    // Text of a stage may be of a compiler that laid this grid otherwise.
    if (spark::GridAttr grid = weight.getGrid();
        grid && isQuantized(matrix.layout) &&
        gridOf(grid).layout() != matrix.layout)
      return llvm::createStringError(
          "pack '" + entry.name + "' has layout '" + layoutName(matrix.layout) +
          "', the grid of '" + name.getValue() + "' is of '" +
          layoutName(gridOf(grid).layout()) + "'");
    auto source = files.open(weight, matrix.layout == Layout::VectorF32);
    if (!source)
      return source.takeError();
    sources.push_back(*source);
    entry.sources.push_back(name.getValue().str());
  }
  WeightScheme scheme = schemeOf(matrix);
  for (const SourceMatrix &source : sources)
    tensor.sources.push_back({source.name, scheme.str(), source.rows,
                              source.cols, 0, std::nullopt,
                              isTiled(matrix.layout)});
  countBytes(matrix, tensor.sources);
  if (llvm::Error error = writer.beginTensor(entry))
    return error;
  int64_t tile = 0;
  auto sink = [&](ArrayRef<uint8_t> bytes) -> llvm::Error {
    progress.advance(bytes.size());
    if (options.tap)
      if (llvm::Error error = options.tap(entry, tile, bytes))
        return error;
    tile += bytes.size() / matrix.tileBytes();
    return writer.append(bytes);
  };
  if (!isQuantized(matrix.layout)) {
    if (llvm::Error error = packFloatMatrix(matrix, sources, sink))
      return error;
    return tensor;
  }
  std::vector<QuantizeStats> stats(sources.size());
  if (llvm::Error error =
          packQuantizedMatrix(matrix, scheme.grid, sources, sink, stats))
    return error;
  for (auto [into, from, stat] :
       llvm::zip_equal(tensor.sources, sources, stats))
    if (const BlockFormat *format = blockFormat(from.type);
        !format || !format->hasZero())
      into.sqnr = stat.sqnr();
  return tensor;
}

llvm::Expected<std::vector<PackedTensor>>
sparkc::packWeights(ModuleOp module, WeightFileWriter &writer,
                    const PackOptions &options) {
  // Text at the llvm stage has passed no check of layouts.
  for (auto op : module.getOps<step::PackOp>())
    if (!layoutFromName(op.getLayout()))
      return llvm::createStringError("pack '" + op.getSymName() +
                                     "' has an unknown layout '" +
                                     op.getLayout() + "'");
  std::vector<PackedTensor> packed;
  Packer packer(module, writer, options);
  for (auto op : module.getOps<step::PackOp>()) {
    auto tensor = packer.pack(op);
    if (!tensor)
      return tensor.takeError();
    packed.push_back(std::move(*tensor));
  }
  if (llvm::Error error = addAssets(module, writer))
    return error;
  return packed;
}
