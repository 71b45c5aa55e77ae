//===- GgufExport.cpp - Packed weights as a GGUF file ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/GgufExport.h"
#include "codegen/weights/EachTile.h"
#include "codegen/weights/GridOf.h"
#include "codegen/weights/Half.h"
#include "codegen/weights/QuantizedTile.h"
#include "dialect/import/GgufModel.h"
#include "dialect/import/ImportError.h"

using namespace sparkc;

/// What llama.cpp calls a file of mostly one type.
static uint32_t fileType(DType type) {
  switch (type) {
  case DType::Q4_0:
    return 2;
  case DType::Q4_1:
    return 3;
  case DType::Q8_0:
    return 7;
  case DType::Q5_0:
    return 8;
  case DType::Q5_1:
    return 9;
  case DType::Q4_K:
    return 15;
  case DType::Q5_K:
    return 17;
  case DType::Q6_K:
    return 18;
  case DType::BF16:
    return 32;
  default:
    return 0;
  }
}

static DType dtypeOf(const BlockFormat &format) {
  return *dtypeFromName(format.name);
}

llvm::Error GgufExport::addTensor(mlir::Operation *op) {
  auto weight = llvm::cast<spark::WeightOp>(op);
  llvm::StringRef name = weight.getSymName();
  mlir::RankedTensorType type = weight.getTensorType();
  DType dtype = type.getElementType().isBF16() ? DType::BF16 : DType::F32;
  if (spark::GridAttr attr = weight.getGrid()) {
    WeightScheme scheme;
    scheme.grid = gridOf(attr);
    const BlockFormat *format = blockFormatOf(scheme.grid);
    if (!format)
      return importError(path, "weight '" + name + "' is stored as " +
                                   scheme.str() +
                                   ", which no type of GGUF is; of the grids "
                                   "only q4_0, q4_1, q5_0, q5_1, q8_0, q4k, "
                                   "q5k and q6k are");
    if (type.getDimSize(1) % format->block)
      return importError(path, "weight '" + name + "' has rows of " +
                                   llvm::Twine(type.getDimSize(1)) +
                                   " elements, which are not whole blocks of " +
                                   format->name + " (" +
                                   llvm::Twine(format->block) + ")");
    dtype = dtypeOf(*format);
  }
  auto tensor = std::make_unique<Tensor>();
  tensor->index =
      writer.addTensor(ggufTensorName(name), dtype, type.getShape());
  tensor->type = dtype;
  tensors[name.str()] = std::move(tensor);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<GgufExport>>
GgufExport::create(mlir::ModuleOp module, const Checkpoint &checkpoint,
                   llvm::StringRef source, llvm::StringRef path) {
  std::unique_ptr<GgufExport> self(new GgufExport);
  self->path = path.str();
  if (llvm::Error error = addModelKeys(self->writer, checkpoint, source))
    return error;
  std::map<DType, int64_t> counts;
  for (auto weight : module.getOps<spark::WeightOp>()) {
    if (llvm::Error error = self->addTensor(weight))
      return error;
    if (weight.getTensorType().getRank() == 2)
      ++counts[self->tensors[weight.getSymName().str()]->type];
  }
  auto most = std::max_element(
      counts.begin(), counts.end(),
      [](auto &a, auto &b) { return a.second < b.second; });
  self->writer.add("general.file_type", fileType(most->first));
  if (!checkpoint.isGguf())
    self->writer.add("general.quantization_version", uint32_t(2));

  llvm::Expected<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  self->file.emplace(std::move(*file));
  self->file->removeOnSignal();
  if (llvm::Error error = self->file->resize(self->writer.fileBytes()))
    return error;
  if (llvm::Error error = self->file->write(0, self->writer.header()))
    return error;
  return self;
}

llvm::Error GgufExport::put(Tensor &tensor, int64_t row,
                            llvm::ArrayRef<uint8_t> bytes) {
  uint64_t at = row * bytes.size();
  if (at + bytes.size() > writer.bytes(tensor.index))
    return importError(path, "a row past the end of its tensor");
  if (llvm::Error error =
          file->write(writer.offset(tensor.index) + at, bytes))
    return error;
  tensor.written += bytes.size();
  return llvm::Error::success();
}

/// The bytes of floats as a float type of GGUF.
static std::vector<uint8_t> floatBytes(DType type,
                                       llvm::ArrayRef<float> values) {
  std::vector<uint8_t> bytes;
  for (float value : values) {
    uint32_t bits = bitsFromFloat(value);
    if (type == DType::BF16)
      bits >>= 16; // exact: what was packed is bfloat16
    for (uint64_t i = 0; i < dtypeBytes(type); ++i)
      bytes.push_back(bits >> (8 * i));
  }
  return bytes;
}

llvm::Error GgufExport::addTile(const DirectoryEntry &entry, int64_t tile,
                                const uint8_t *bytes) {
  const PackedMatrix &m = entry.matrix;
  const bool quantized = isQuantized(m.layout), tiled = isTiled(m.layout);
  std::optional<TileCodes> codes;
  std::vector<float> values;
  if (quantized) {
    codes.emplace(m);
    unpackCodes(m, bytes, *codes);
  } else {
    values.resize((tiled ? kTileRows : 1) * m.cols);
    if (tiled)
      dequantizeTile(m, bytes, values.data());
    else
      readRow({bytes,
               bitsPerWeight(m.layout) == 16 ? SourceType::BF16
                                             : SourceType::F32,
               1, m.cols},
              0, values.data());
  }
  for (int64_t lane = 0; lane < (tiled ? kTileRows : 1); ++lane) {
    SourceRow at = m.rowOf(tile, lane);
    if (at.isPadding())
      continue;
    auto found = tensors.find(entry.sources[at.weight]);
    if (found == tensors.end())
      return importError(path, entry.sources[at.weight] +
                                   ": is no weight of the model");
    Tensor &tensor = *found->second;
    std::vector<uint8_t> row;
    if (quantized) {
      const BlockFormat &format = *blockFormat(dtypeName(tensor.type));
      row.resize(m.cols / format.block * format.bytes);
      BlockCodes block = {};
      for (int64_t i = 0; i < m.cols / format.block; ++i) {
        takeBlock(format, m, *codes, i, lane, block);
        format.write(block, &row[i * format.bytes]);
      }
    } else {
      row = floatBytes(tensor.type,
                       llvm::ArrayRef(values).slice(lane * m.cols, m.cols));
    }
    if (llvm::Error error = put(tensor, at.row, row))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error GgufExport::add(const DirectoryEntry &entry, int64_t firstTile,
                            llvm::ArrayRef<uint8_t> tiles) {
  const int64_t tileBytes = entry.matrix.tileBytes();
  return forEachTile(tiles.size() / tileBytes, [&](size_t i) {
    return addTile(entry, firstTile + i, tiles.data() + i * tileBytes);
  });
}

llvm::Error GgufExport::finish() {
  for (const auto &[name, tensor] : tensors)
    if (tensor->written != writer.bytes(tensor->index))
      return importError(path, name + ": " + llvm::Twine(tensor->written) +
                                   " of " +
                                   llvm::Twine(writer.bytes(tensor->index)) +
                                   " bytes were written");
  return file->commit();
}
