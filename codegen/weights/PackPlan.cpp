//===- PackPlan.cpp - From step.pack ops to a weights file ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/PackPlan.h"
#include "codegen/weights/Pack.h"
#include "codegen/weights/Progress.h"
#include "codegen/weights/QuantizedTile.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/MappedFile.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace sparkc;

PackedMatrix sparkc::packedMatrix(step::PackOp pack) {
  PackedMatrix matrix;
  matrix.layout = *layoutFromName(pack.getLayout());
  matrix.cols = pack.getCols();
  matrix.group = pack.getGroup();
  for (auto run : pack.getRuns().getAsRange<step::RunAttr>()) {
    RowRun row;
    row.heads = run.getHeads(), row.width = run.getWidth();
    row.stride = run.getStride();
    row.weightA = run.getWeightA(), row.baseA = run.getBaseA();
    row.weightB = run.getWeightB(), row.baseB = run.getBaseB();
    matrix.runs.push_back(row);
  }
  return matrix;
}

namespace {

/// The files that weights lie in, each mapped once.
class Sources {
public:
  llvm::Expected<SourceMatrix> open(spark::WeightOp weight, bool asRow);

private:
  llvm::StringMap<std::shared_ptr<MappedFile>> files;
};

} // namespace

llvm::Expected<SourceMatrix> Sources::open(spark::WeightOp weight, bool asRow) {
  spark::SourceAttr source = weight.getSource();
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
  SourceMatrix matrix;
  matrix.data = file->data() + source.getOffset();
  matrix.type = StringSwitch<SourceType>(source.getDtype())
                    .Case("F32", SourceType::F32)
                    .Case("BF16", SourceType::BF16)
                    .Default(SourceType::F16);
  ArrayRef<int64_t> shape = weight.getTensorType().getShape();
  matrix.rows = asRow ? 1 : shape[0];
  matrix.cols = shape.back();
  matrix.name = weight.getSymName().str();
  matrix.release = [file](const uint8_t *begin, int64_t bytes) {
    file->drop(begin - file->data(), bytes);
  };
  return matrix;
}

/// Adds the text files as sections.
static llvm::Error addAssets(ModuleOp module, WeightFileWriter &writer) {
  for (auto asset : module.getOps<spark::AssetOp>()) {
    auto file = MappedFile::open(asset.getFile());
    if (!file)
      return file.takeError();
    auto kind = StringSwitch<sparkc_section_kind>(asset.getKind())
                    .Case("tokenizer", SPARKC_SECTION_TOKENIZER)
                    .Case("tokenizer_config", SPARKC_SECTION_TOKENIZER_CONFIG)
                    .Case("generation_config", SPARKC_SECTION_GENERATION_CONFIG)
                    .Default(SPARKC_SECTION_CHAT_TEMPLATE);
    StringRef text(reinterpret_cast<const char *>((*file)->data()),
                   (*file)->size());
    if (llvm::Error error = writer.addSection(kind, text))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<PackedTensor>>
sparkc::packWeights(ModuleOp module, WeightFileWriter &writer, bool quiet) {
  SymbolTable symbols(module);
  Sources files;
  std::vector<PackedTensor> packed;
  uint64_t total = 0;
  for (auto pack : module.getOps<step::PackOp>())
    total += packedMatrix(pack).bytes();
  Progress progress("packing", total, quiet);

  for (auto pack : module.getOps<step::PackOp>()) {
    DirectoryEntry entry;
    entry.name = pack.getSymName().str();
    entry.matrix = packedMatrix(pack);
    entry.offset = pack.getOffset();
    progress.setItem(entry.name);
    PackedTensor tensor;
    tensor.name = entry.name;
    tensor.layout = pack.getLayout().str();
    tensor.bytes = entry.matrix.bytes();
    std::vector<SourceMatrix> sources;
    spark::GridAttr grid;
    for (auto name : pack.getWeights().getAsRange<FlatSymbolRefAttr>()) {
      auto weight = symbols.lookup<spark::WeightOp>(name.getAttr());
      if (!weight)
        return llvm::createStringError("pack '" + entry.name + "' refers to '" +
                                       name.getValue() +
                                       "', which is no spark.weight");
      grid = weight.getGrid();
      auto source =
          files.open(weight, entry.matrix.layout == Layout::VectorF32);
      if (!source)
        return source.takeError();
      sources.push_back(*source);
      entry.sources.push_back(name.getValue().str());
      tensor.weights += weight.getTensorType().getNumElements();
    }
    tensor.sources = entry.sources;
    PackedMatrix matrix = entry.matrix;
    if (llvm::Error error = writer.beginTensor(std::move(entry)))
      return error;
    auto sink = [&](ArrayRef<uint8_t> bytes) -> llvm::Error {
      progress.advance(bytes.size());
      return writer.append(bytes);
    };
    if (isQuantized(matrix.layout)) {
      QuantizeStats stats;
      GridSpec spec{int(bitsPerWeight(matrix.layout)), int(matrix.group),
                    grid && grid.getSymmetric()};
      if (llvm::Error error =
              packQuantizedMatrix(matrix, spec, sources, sink, stats))
        return error;
      tensor.sqnr = stats.sqnr();
    } else if (llvm::Error error = packFloatMatrix(matrix, sources, sink)) {
      return error;
    }
    packed.push_back(std::move(tensor));
  }
  if (llvm::Error error = addAssets(module, writer))
    return error;
  return packed;
}
