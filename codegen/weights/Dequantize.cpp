//===- Dequantize.cpp - Packed weights as a checkpoint --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Dequantize.h"
#include "codegen/weights/EachTile.h"
#include "codegen/weights/QuantizedTile.h"
#include "dialect/import/GgufModel.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <unistd.h>

using namespace sparkc;
namespace fs = llvm::sys::fs;

static llvm::Error systemError(llvm::StringRef path, int errnum) {
  return importError(path, llvm::sys::StrError(errnum));
}

/// The name that a logical weight has in a checkpoint.
static std::string storedName(llvm::StringRef logical) {
  if (logical == "lm_head")
    return "lm_head.weight";
  if (!logical.consume_front("layers."))
    return ("model." + logical + ".weight").str();
  auto [layer, part] = logical.split('.');
  llvm::StringRef group =
      part.ends_with("layernorm") ? ""
      : llvm::StringSwitch<bool>(part)
              .Cases({"q_k_v_proj", "g_proj", "out_proj"}, true)
              .Default(false)
          ? "self_attn."
          : "mlp.";
  return ("model.layers." + layer + "." + group + part + ".weight").str();
}

uint64_t CheckpointExport::Tensor::bytes() const {
  uint64_t bytes = sizeof(float);
  for (int64_t n : shape)
    bytes *= n;
  return bytes;
}

std::string CheckpointExport::pathOf(llvm::StringRef name) const {
  llvm::SmallString<256> path(directory);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

std::string CheckpointExport::created(llvm::StringRef name) {
  files.push_back(pathOf(name));
  llvm::sys::RemoveFileOnSignal(files.back());
  return files.back();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

void CheckpointExport::plan(const Checkpoint &checkpoint, uint64_t shardBytes) {
  auto add = [&](llvm::StringRef logical, std::vector<int64_t> shape) {
    tensors.push_back(std::make_unique<Tensor>());
    Tensor &tensor = *tensors.back();
    tensor.name = storedName(logical);
    tensor.shape = std::move(shape);
    byLogicalName[logical.str()] = &tensor;
    if (shards.empty() || shards.back().bytes + tensor.bytes() > shardBytes)
      shards.emplace_back();
    tensor.shard = shards.size() - 1;
    shards.back().tensors.push_back(&tensor);
    shards.back().bytes += tensor.bytes();
  };
  for (const LogicalWeight &weight : checkpoint.weights()) {
    bool vector = llvm::StringRef(weight.name).ends_with("norm");
    add(weight.name, vector ? std::vector{weight.rows}
                            : std::vector{weight.rows, weight.cols});
  }
  if (const LogicalWeight *embedding = checkpoint.find("embedding");
      !checkpoint.find("lm_head"))
    add("lm_head", {embedding->rows, embedding->cols});
  for (auto [i, shard] : llvm::enumerate(shards))
    shard.name = shards.size() == 1
                     ? "model.safetensors"
                     : llvm::formatv("model-{0,0+5}-of-{1,0+5}.safetensors",
                                     i + 1, shards.size())
                           .str();
}

/// The header of a safetensors file, its length included.
static std::string headerText(llvm::StringRef json) {
  std::string text(8, '\0');
  uint64_t length = llvm::alignTo(json.size(), 8);
  for (int i = 0; i < 8; ++i)
    text[i] = static_cast<char>(length >> (8 * i));
  text += json;
  text.resize(8 + length, ' ');
  return text;
}

llvm::Error CheckpointExport::openShards() {
  for (Shard &shard : shards) {
    std::string json;
    llvm::raw_string_ostream os(json);
    llvm::json::OStream out(os);
    out.objectBegin();
    out.attributeObject("__metadata__",
                        [&] { out.attribute("format", "pt"); });
    uint64_t at = 0;
    for (Tensor *tensor : shard.tensors) {
      tensor->offset = at;
      at += tensor->bytes();
      out.attributeObject(tensor->name, [&] {
        out.attribute("dtype", "F32");
        out.attribute("shape", llvm::json::Array(tensor->shape));
        out.attribute("data_offsets",
                      llvm::json::Array{tensor->offset, at});
      });
    }
    out.objectEnd();
    std::string header = headerText(json);
    for (Tensor *tensor : shard.tensors)
      tensor->offset += header.size();
    std::string path = created(shard.name + ".part");
    shard.fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (shard.fd < 0)
      return systemError(path, errno);
    if (ftruncate(shard.fd, header.size() + at) != 0 ||
        pwrite(shard.fd, header.data(), header.size(), 0) !=
            ssize_t(header.size()))
      return systemError(path, errno);
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<CheckpointExport>>
CheckpointExport::create(const Checkpoint &checkpoint, llvm::StringRef source,
                         llvm::StringRef directory, bool headIsEmbedding,
                         uint64_t shardBytes) {
  std::unique_ptr<CheckpointExport> self(new CheckpointExport);
  self->source = source.str();
  self->directory = directory.str();
  self->configText = checkpoint.configText();
  self->isGguf = checkpoint.isGguf();
  self->headIsEmbedding = headIsEmbedding;
  if (fs::exists(directory)) {
    std::error_code error;
    if (!fs::is_directory(directory))
      return importError(directory, "is no directory");
    if (fs::directory_iterator(directory, error) != fs::directory_iterator())
      return importError(directory, "is not empty; a checkpoint is written to "
                                    "a new directory");
  } else {
    if (std::error_code error = fs::create_directory(
            directory, /*IgnoreExisting=*/false, fs::perms::all_all))
      return importError(directory, error.message());
    self->madeDirectory = true;
  }
  self->plan(checkpoint, shardBytes);
  if (llvm::Error error = self->openShards())
    return error;
  return self;
}

CheckpointExport::~CheckpointExport() {
  for (Shard &shard : shards)
    if (shard.fd >= 0)
      close(shard.fd);
  for (const std::string &path : files) {
    if (!finished)
      fs::remove(path);
    llvm::sys::DontRemoveFileOnSignal(path);
  }
  if (finished)
    return;
  if (madeDirectory)
    fs::remove(directory);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

llvm::Error CheckpointExport::put(Tensor &tensor, uint64_t at,
                                  llvm::ArrayRef<float> values) {
  const Shard &shard = shards[tensor.shard];
  const uint64_t bytes = values.size() * sizeof(float);
  if (at + bytes > tensor.bytes())
    return importError(directory, tensor.name + ": a row past its end");
  const char *data = reinterpret_cast<const char *>(values.data());
  for (uint64_t done = 0; done < bytes;) {
    ssize_t n = pwrite(shard.fd, data + done, bytes - done,
                       tensor.offset + at + done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return systemError(pathOf(shard.name), n < 0 ? errno : ENOSPC);
    done += n;
  }
  tensor.written += bytes;
  return llvm::Error::success();
}

/// A row of a row-major layout as float32.
static void readPackedRow(const PackedMatrix &matrix, const uint8_t *row,
                          std::vector<float> &out) {
  SourceMatrix stored;
  stored.data = row;
  stored.type = bitsPerWeight(matrix.layout) == 16 ? SourceType::BF16
                                                   : SourceType::F32;
  stored.rows = 1;
  stored.cols = matrix.cols;
  readRow(stored, 0, out.data());
}

llvm::Error CheckpointExport::addTile(const DirectoryEntry &entry, int64_t tile,
                                      const uint8_t *bytes) {
  const PackedMatrix &matrix = entry.matrix;
  const int64_t lanes = isTiled(matrix.layout) ? kTileRows : 1;
  std::vector<float> values(lanes * matrix.cols);
  if (isTiled(matrix.layout))
    dequantizeTile(matrix, bytes, values.data());
  else
    readPackedRow(matrix, bytes, values);
  for (int64_t lane = 0, next; lane < lanes; lane = next) {
    SourceRow at = matrix.rowOf(tile, lane);
    next = lane + 1;
    if (at.isPadding())
      continue;
    // Rows that follow each other in the source go out in one piece.
    for (; next < lanes; ++next) {
      SourceRow row = matrix.rowOf(tile, next);
      if (row.weight != at.weight || row.row != at.row + next - lane)
        break;
    }
    const std::string &name = entry.sources[at.weight];
    auto rows = llvm::ArrayRef(values).slice(lane * matrix.cols,
                                             (next - lane) * matrix.cols);
    const uint64_t offset = at.row * matrix.cols * sizeof(float);
    auto tensor = byLogicalName.find(name);
    if (tensor == byLogicalName.end())
      return importError(directory, name + ": is no weight of the checkpoint");
    if (llvm::Error error = put(*tensor->second, offset, rows))
      return error;
    if (name == "embedding" && headIsEmbedding)
      if (llvm::Error error = put(*byLogicalName["lm_head"], offset, rows))
        return error;
  }
  return llvm::Error::success();
}

llvm::Error CheckpointExport::add(const DirectoryEntry &entry,
                                  int64_t firstTile,
                                  llvm::ArrayRef<uint8_t> tiles) {
  const int64_t tileBytes = entry.matrix.tileBytes();
  return forEachTile(tiles.size() / tileBytes, [&](size_t i) {
    return addTile(entry, firstTile + i, tiles.data() + i * tileBytes);
  });
}

//===----------------------------------------------------------------------===//
// What is not weights
//===----------------------------------------------------------------------===//

static llvm::Error writeJson(const std::string &path, llvm::json::Value value) {
  llvm::Error error =
      llvm::writeToOutput(path, [&](llvm::raw_ostream &os) -> llvm::Error {
        os << llvm::formatv("{0:2}", value) << "\n";
        return llvm::Error::success();
      });
  if (error)
    return importError(path, llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Error CheckpointExport::writeConfig() {
  auto config = parseJsonObject(configText, source);
  if (!config)
    return config.takeError();
  (*config)["tie_word_embeddings"] = false;
  config->erase("quantization_config"); // no longer
  for (llvm::StringRef key : {"torch_dtype", "dtype"})
    if (config->get(key))
      (*config)[key] = "float32";
  return writeJson(created("config.json"), std::move(*config));
}

/// The files that stand for what a GGUF file says of text.
llvm::Error CheckpointExport::writeGgufTexts() {
  auto file = GgufFile::open(source);
  if (!file)
    return file.takeError();
  for (auto [kind, name] :
       {std::pair{"tokenizer", "tokenizer.json"},
        std::pair{"tokenizer_config", "tokenizer_config.json"},
        std::pair{"generation_config", "generation_config.json"},
        std::pair{"chat_template", "chat_template.jinja"}}) {
    auto text = ggufText(*file, kind);
    if (!text)
      return text.takeError();
    if (text->empty())
      continue;
    std::string path = created(name);
    llvm::Error error =
        llvm::writeToOutput(path, [&](llvm::raw_ostream &os) -> llvm::Error {
          os << *text;
          return llvm::Error::success();
        });
    if (error)
      return importError(path, llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

llvm::Error CheckpointExport::copyTexts() {
  if (isGguf)
    return writeGgufTexts();
  std::error_code error;
  for (fs::directory_iterator it(source, error), end; !error && it != end;
       it.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    bool text = llvm::StringSwitch<bool>(name)
                    .Cases({"tokenizer.json", "tokenizer_config.json",
                            "generation_config.json", "chat_template.jinja",
                            "special_tokens_map.json", "added_tokens.json",
                            "vocab.json", "merges.txt", "tokenizer.model"},
                           true)
                    .Default(name.ends_with(".py")); // the model's own code
    if (!text || fs::is_directory(it->path()))
      continue;
    std::string copy = created(name);
    if (std::error_code failed = fs::copy_file(it->path(), copy))
      return importError(copy, failed.message());
  }
  return error ? importError(source, error.message()) : llvm::Error::success();
}

llvm::Error CheckpointExport::finish() {
  for (const auto &tensor : tensors)
    if (tensor->written != tensor->bytes())
      return importError(directory,
                         tensor->name + ": " + llvm::Twine(tensor->written) +
                             " of " + llvm::Twine(tensor->bytes()) +
                             " bytes were written");
  llvm::json::Object places;
  uint64_t total = 0;
  for (Shard &shard : shards) {
    std::string part = pathOf(shard.name + ".part");
    if (close(std::exchange(shard.fd, -1)) != 0)
      return systemError(part, errno);
    if (std::error_code error = fs::rename(part, created(shard.name)))
      return importError(part, error.message());
    for (Tensor *tensor : shard.tensors)
      places[tensor->name] = shard.name;
    total += shard.bytes;
  }
  if (shards.size() > 1)
    if (llvm::Error error = writeJson(
            created("model.safetensors.index.json"),
            llvm::json::Object{
                {"metadata", llvm::json::Object{{"total_size", total}}},
                {"weight_map", std::move(places)}}))
      return error;
  if (llvm::Error error = copyTexts())
    return error;
  if (llvm::Error error = writeConfig())
    return error;
  finished = true;
  return llvm::Error::success();
}
