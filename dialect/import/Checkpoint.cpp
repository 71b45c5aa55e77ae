//===- Checkpoint.cpp - A model's config and its weights' places ----------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/Checkpoint.h"
#include "dialect/import/GgufModel.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/StoredCodes.h"
#include "dialect/import/TensorSet.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace sparkc;
namespace fs = llvm::sys::fs;

namespace {
/// A weight that the config asks for and the names it may be stored under.
struct Wanted {
  std::string name;
  std::vector<std::string> stored;
  std::vector<int64_t> shape;
};
} // namespace

/// All weights of a model in model order.
static std::vector<Wanted> wantedWeights(const ModelConfig &c) {
  std::vector<Wanted> all;
  all.push_back({"embedding",
                 {"model.embedding.weight", "model.embed_tokens.weight"},
                 {c.vocab, c.hidden}});
  for (int64_t n = 0; n < c.layers; ++n) {
    std::string layer = "layers." + std::to_string(n) + ".";
    auto add = [&](const char *part, const char *name,
                   std::vector<int64_t> shape) {
      all.push_back({layer + name,
                     {"model." + layer + part + name + ".weight"},
                     std::move(shape)});
    };
    add("", "input_layernorm", {c.hidden});
    add("self_attn.", "q_k_v_proj", {c.qkvRows(), c.hidden});
    add("self_attn.", "g_proj", {c.heads, c.hidden});
    add("self_attn.", "out_proj", {c.hidden, c.qRows()});
    add("", "post_attention_layernorm", {c.hidden});
    add("mlp.", "gate_proj", {c.intermediate, c.hidden});
    add("mlp.", "up_proj", {c.intermediate, c.hidden});
    add("mlp.", "down_proj", {c.hidden, c.intermediate});
  }
  all.push_back({"norm", {"model.norm.weight"}, {c.hidden}});
  if (!c.tied)
    all.push_back({"lm_head", {"lm_head.weight"}, {c.vocab, c.hidden}});
  return all;
}

/// A wanted weight where a file has it.
static LogicalWeight weightAt(const Wanted &wanted, llvm::StringRef path,
                              const TensorInfo &info) {
  return {wanted.name,
          path.str(),
          info.dtype,
          wanted.shape[0],
          wanted.shape.size() > 1 ? wanted.shape[1] : 1,
          info.offset,
          info.bytes};
}

/// Finds a weight among the tensors and checks it.
static llvm::Expected<LogicalWeight> resolve(const Wanted &wanted,
                                             const TensorSet &tensors) {
  const TensorSet::Entry *found = nullptr;
  for (const std::string &name : wanted.stored) {
    const TensorSet::Entry *entry = tensors.find(name);
    if (entry && found)
      return importError(tensors.origin(),
                         "tensor " + quotedName(name) + " and " +
                             quotedName(found->info->name) +
                             " are both there; only one can be the " +
                             wanted.name);
    if (entry)
      found = entry;
  }
  if (!found)
    return importError(tensors.origin(), "tensor " +
                                             quotedName(wanted.stored.front()) +
                                             " is missing; expected shape " +
                                             shapeText(wanted.shape));
  const TensorInfo &info = *found->info;
  auto fail = [&](const llvm::Twine &message) {
    return importError(found->file->path(),
                       "tensor " + quotedName(info.name) + ": " + message);
  };
  if (info.shape != wanted.shape)
    return fail("expected shape " + shapeText(wanted.shape) +
                " from config.json, found " + shapeText(info.shape));
  if (info.dtype != DType::F32 && info.dtype != DType::BF16 &&
      info.dtype != DType::F16)
    return fail("expected dtype F32, BF16 or F16, found " +
                dtypeName(info.dtype));
  return weightAt(wanted, found->file->path(), info);
}

/// What stands before ".weight" of a wanted matrix that the tensors have as
/// codes; empty where they have none.
static std::string stemOfCodes(const Wanted &wanted, const TensorSet &tensors) {
  if (wanted.shape.size() == 1 || wanted.name == "embedding")
    return "";
  llvm::StringRef stem = wanted.stored.front();
  stem.consume_back(".weight");
  std::string name = stem.str();
  return tensors.find(name + ".qweight") ? name : "";
}

/// The same for a GGUF file, whose matrices may be quantized and whose vectors
/// are floats.
static llvm::Expected<LogicalWeight> resolve(const Wanted &wanted,
                                             const GgufFile &file) {
  std::string name = ggufTensorName(wanted.name);
  const GgufFile::Tensor *found = file.findTensor(name);
  if (!found)
    return importError(file.path(), "tensor " + quotedName(name) +
                                        " is missing; expected shape " +
                                        shapeText(wanted.shape));
  const TensorInfo &info = *found->info;
  auto fail = [&](const llvm::Twine &message) {
    return importError(found->file->path(),
                       "tensor " + quotedName(name) + ": " + message);
  };
  if (info.shape != wanted.shape)
    return fail("expected shape " + shapeText(wanted.shape) +
                " from the file's keys, found " + shapeText(info.shape));
  if (wanted.shape.size() == 1 && dtypeBlock(info.dtype) != 1)
    return fail("expected type F32, BF16 or F16, found " +
                dtypeName(info.dtype));
  return weightAt(wanted, found->file->path(), info);
}

/// Judges a tensor that no weight uses. See the class comment.
static llvm::Error judgeExtra(llvm::StringRef name,
                              const TensorSet::Entry &entry,
                              const ModelConfig &config,
                              std::vector<std::string> &notes) {
  const std::string &path = entry.file->path();
  if (name.ends_with("rotary_emb.inv_freq") ||
      (config.tied && name == "lm_head.weight"))
    return llvm::Error::success();
  if (name.ends_with(".bias"))
    return importError(path, "tensor " + quotedName(name) +
                                 " is a bias; biases are not supported");
  if (name.starts_with("model.layers."))
    return importError(path, "tensor " + quotedName(name) +
                                 " is not part of a Spark-X2.5 model of " +
                                 llvm::Twine(config.layers) + " layers");
  notes.push_back(path + ": tensor " + quotedName(name) +
                  " is not part of the model and is ignored");
  return llvm::Error::success();
}

llvm::Error Checkpoint::openDirectory(llvm::StringRef directory) {
  auto inside = [&](llvm::StringRef name) {
    llvm::SmallString<256> path(directory);
    llvm::sys::path::append(path, name);
    return path.str().str();
  };
  llvm::Expected<ModelConfig> config = readModelConfig(inside("config.json"));
  if (!config)
    return config.takeError();
  model = std::move(*config);
  auto configFile = MappedFile::open(inside("config.json"));
  if (!configFile)
    return configFile.takeError();
  configJson = llvm::toStringRef((*configFile)->bytes()).str();

  llvm::Expected<TensorSet> tensors = TensorSet::open(directory);
  if (!tensors)
    return tensors.takeError();
  std::vector<Wanted> all = wantedWeights(model);
  std::set<std::string, std::less<>> used;
  for (const Wanted &wanted : all) {
    std::string stem = model.codes ? stemOfCodes(wanted, *tensors) : "";
    if (stem.empty())
      used.insert(wanted.stored.begin(), wanted.stored.end());
    for (llvm::StringRef suffix : codeTensors)
      if (!stem.empty())
        used.insert(stem + "." + suffix.str());
    llvm::Expected<LogicalWeight> weight =
        stem.empty() ? resolve(wanted, *tensors)
                     : resolveCodes(wanted.name, stem, wanted.shape,
                                    *model.codes, *tensors);
    if (!weight)
      return weight.takeError();
    add(std::move(*weight));
  }
  for (const auto &[name, entry] : tensors->entries())
    if (!used.count(name))
      if (llvm::Error error = judgeExtra(name, entry, model, notes))
        return error;
  for (const SafetensorsFile &file : tensors->files())
    maps[file.file()->path()] = file.file();

  auto optional = [&](llvm::StringRef name) {
    std::string path = inside(name);
    return fs::exists(path) ? path : std::string();
  };
  text = {optional("tokenizer.json"), optional("tokenizer_config.json"),
          optional("generation_config.json"), optional("chat_template.jinja")};
  return llvm::Error::success();
}

void Checkpoint::add(LogicalWeight weight) {
  byName[weight.name] = list.size();
  list.push_back(std::move(weight));
}

llvm::Error Checkpoint::openGguf(llvm::StringRef path) {
  gguf = true;
  auto file = GgufFile::open(path);
  if (!file)
    return file.takeError();
  auto config = ggufConfig(*file);
  if (!config)
    return config.takeError();
  llvm::raw_string_ostream(configJson)
      << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*config)));
  auto parsed = parseModelConfig(configJson, path);
  if (!parsed)
    return parsed.takeError();
  model = std::move(*parsed);
  std::set<std::string> used;
  for (const Wanted &wanted : wantedWeights(model)) {
    llvm::Expected<LogicalWeight> weight = resolve(wanted, *file);
    if (!weight)
      return weight.takeError();
    used.insert(ggufTensorName(wanted.name));
    add(std::move(*weight));
  }
  for (const GgufFile::Tensor &tensor : file->tensors()) {
    const std::string &name = tensor.info->name;
    maps[tensor.file->path()] = tensor.file;
    if (used.count(name))
      continue;
    if (llvm::StringRef(name).starts_with("blk.") ||
        llvm::StringRef(name).ends_with(".bias") || name == "rope_freqs.weight")
      return importError(tensor.file->path(),
                         "tensor " + quotedName(name) +
                             " is not part of a Spark-X2.5 model of " +
                             llvm::Twine(model.layers) + " layers");
    notes.push_back(tensor.file->path() + ": tensor " + quotedName(name) +
                    " is not part of the model and is ignored");
  }
  if (!ggufHasTokenizer(*file))
    return llvm::Error::success();
  text.tokenizer = text.tokenizerConfig = text.generationConfig = path.str();
  if (file->find("tokenizer.chat_template"))
    text.chatTemplate = path.str();
  return llvm::Error::success();
}

llvm::Expected<Checkpoint> Checkpoint::open(llvm::StringRef path) {
  if (!fs::exists(path))
    return importError(path, "no such directory");
  Checkpoint checkpoint;
  if (!fs::is_directory(path)) {
    if (!path.ends_with(".gguf"))
      return importError(path, "is not a directory with a checkpoint");
    if (llvm::Error error = checkpoint.openGguf(path))
      return error;
    return checkpoint;
  }
  if (llvm::Error error = checkpoint.openDirectory(path))
    return error;
  return checkpoint;
}

const LogicalWeight *Checkpoint::find(llvm::StringRef name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &list[it->second];
}

std::shared_ptr<MappedFile> Checkpoint::map(llvm::StringRef file) const {
  return maps.lookup(file);
}

llvm::ArrayRef<uint8_t> Checkpoint::data(const LogicalWeight &weight) const {
  return map(weight.file)->bytes().slice(weight.offset, weight.bytes);
}
