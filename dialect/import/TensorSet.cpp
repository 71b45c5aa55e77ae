//===- TensorSet.cpp - The tensors of a Hugging Face directory ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/TensorSet.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace sparkc;
namespace json = llvm::json;
namespace fs = llvm::sys::fs;

static std::string inside(llvm::StringRef directory, llvm::StringRef name) {
  llvm::SmallString<256> path(directory);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Expected<std::map<std::string, std::string>>
sparkc::parseShardIndex(llvm::StringRef text, llvm::StringRef path) {
  llvm::Expected<json::Object> object = parseJsonObject(text, path);
  if (!object)
    return object.takeError();
  const json::Object *map = object->getObject("weight_map");
  if (!map)
    return importError(path, "has no weight_map object");
  if (map->empty())
    return importError(path, "weight_map is empty");
  std::map<std::string, std::string> shards;
  for (llvm::StringRef name : sortedKeys(*map)) {
    std::optional<llvm::StringRef> shard = map->getString(name);
    if (!shard)
      return importError(path, "weight_map: the shard of " + quotedName(name) +
                                   " is not a string");
    if (shard->empty() || *shard == "." || *shard == ".." ||
        shard->contains('/') || shard->contains('\\') || shard->contains('\0'))
      return importError(path, "weight_map: " + quotedName(*shard) +
                                   " is not a plain file name");
    shards[name.str()] = shard->str();
  }
  return shards;
}

void TensorSet::addTensors(const SafetensorsFile &file) {
  for (const TensorInfo &info : file.tensors())
    byName[info.name] = {&info, file.file().get()};
}

llvm::Error TensorSet::openShards(llvm::StringRef directory) {
  llvm::Expected<std::shared_ptr<MappedFile>> text = MappedFile::open(source);
  if (!text)
    return text.takeError();
  auto index = parseShardIndex(llvm::toStringRef((*text)->bytes()), source);
  if (!index)
    return index.takeError();

  std::set<std::string> names;
  for (const auto &[tensor, shard] : *index)
    names.insert(shard);
  opened.reserve(names.size());
  for (const std::string &name : names) {
    llvm::Expected<SafetensorsFile> shard =
        SafetensorsFile::open(inside(directory, name));
    if (!shard)
      return shard.takeError();
    const std::string &path = shard->file()->path();
    for (const TensorInfo &info : shard->tensors()) {
      auto it = index->find(info.name);
      if (it == index->end())
        return importError(path, "tensor " + quotedName(info.name) +
                                     " is not in model.safetensors.index.json");
      if (it->second != name)
        return importError(path, "tensor " + quotedName(info.name) +
                                     " belongs in " + quotedName(it->second) +
                                     " by the index");
    }
    opened.push_back(std::move(*shard));
    addTensors(opened.back());
  }
  for (const auto &[tensor, shard] : *index)
    if (!byName.count(tensor))
      return importError(inside(directory, shard),
                         "tensor " + quotedName(tensor) +
                             " is missing, though the index puts it here");
  return llvm::Error::success();
}

llvm::Expected<TensorSet> TensorSet::open(llvm::StringRef directory) {
  TensorSet set;
  set.source = inside(directory, "model.safetensors");
  if (fs::exists(set.source)) {
    llvm::Expected<SafetensorsFile> file = SafetensorsFile::open(set.source);
    if (!file)
      return file.takeError();
    set.opened.push_back(std::move(*file));
    set.addTensors(set.opened.back());
    return set;
  }
  set.source = inside(directory, "model.safetensors.index.json");
  if (!fs::exists(set.source))
    return importError(directory, "has neither model.safetensors nor "
                                  "model.safetensors.index.json");
  if (llvm::Error error = set.openShards(directory))
    return error;
  return set;
}
