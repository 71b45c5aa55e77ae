//===- Safetensors.cpp - Safetensors files, checked before use ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/Safetensors.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"

using namespace sparkc;
namespace json = llvm::json;

/// The format's own limit.
static constexpr uint64_t maxHeaderBytes = 100'000'000;
/// No tensor of a model has more dimensions than a handful.
static constexpr size_t maxRank = 8;

std::string sparkc::shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

namespace {
/// Reads the entries of one header; every error starts with the file.
class HeaderReader {
public:
  HeaderReader(llvm::StringRef path, uint64_t dataStart, uint64_t dataBytes)
      : path(path), dataStart(dataStart), dataBytes(dataBytes) {}

  llvm::Expected<TensorInfo> tensor(llvm::StringRef name,
                                    const json::Value &value);
  llvm::Error metadata(const json::Value &value);
  llvm::Error layout(llvm::MutableArrayRef<TensorInfo> tensors);

private:
  llvm::Error fail(llvm::StringRef name, const llvm::Twine &message) {
    return importError(path, "tensor " + quotedName(name) + ": " + message);
  }
  llvm::Error shape(TensorInfo &info, const json::Object &entry);
  llvm::Error range(TensorInfo &info, const json::Object &entry);

  llvm::StringRef path;
  uint64_t dataStart, dataBytes;
};
} // namespace

/// A number that is an integer, not negative and below 2^63.
static std::optional<uint64_t> count(const json::Value &value) {
  std::optional<int64_t> number = integerOf(value);
  if (!number || *number < 0)
    return std::nullopt;
  return static_cast<uint64_t>(*number);
}

llvm::Error HeaderReader::shape(TensorInfo &info, const json::Object &entry) {
  const json::Array *dims = entry.getArray("shape");
  if (!dims)
    return fail(info.name, "has no shape array");
  if (dims->size() > maxRank)
    return fail(info.name, "has " + llvm::Twine(dims->size()) +
                               " dimensions; at most " + llvm::Twine(maxRank) +
                               " are read");
  info.bytes = dtypeBytes(info.dtype);
  bool overflow = false, empty = false;
  for (const json::Value &dim : *dims) {
    std::optional<uint64_t> n = count(dim);
    if (!n)
      return fail(info.name, "a dimension is not an integer >= 0");
    info.shape.push_back(static_cast<int64_t>(*n));
    empty |= *n == 0;
    if (std::optional<uint64_t> product =
            llvm::checkedMulUnsigned(info.bytes, std::max<uint64_t>(*n, 1)))
      info.bytes = *product;
    else
      overflow = true;
  }
  if (overflow)
    return fail(info.name,
                "the size of shape " + shapeText(info.shape) + " overflows");
  if (empty)
    info.bytes = 0;
  return llvm::Error::success();
}

llvm::Error HeaderReader::range(TensorInfo &info, const json::Object &entry) {
  const json::Array *offsets = entry.getArray("data_offsets");
  std::optional<uint64_t> begin, end;
  if (offsets && offsets->size() == 2) {
    begin = count((*offsets)[0]);
    end = count((*offsets)[1]);
  }
  if (!begin || !end)
    return fail(info.name, "data_offsets is not a pair of integers >= 0");
  std::string span = "data_offsets [" + std::to_string(*begin) + ", " +
                     std::to_string(*end) + "]";
  if (*begin > *end)
    return fail(info.name, span + " are reversed");
  if (*end > dataBytes)
    return fail(info.name, span + " end past the file's " +
                               llvm::Twine(dataBytes) +
                               " bytes of data (truncated?)");
  if (*end - *begin != info.bytes)
    return fail(info.name, span + " hold " + llvm::Twine(*end - *begin) +
                               " bytes; " + dtypeName(info.dtype) + " " +
                               shapeText(info.shape) + " needs " +
                               llvm::Twine(info.bytes));
  info.offset = dataStart + *begin;
  return llvm::Error::success();
}

llvm::Expected<TensorInfo> HeaderReader::tensor(llvm::StringRef name,
                                                const json::Value &value) {
  const json::Object *entry = value.getAsObject();
  if (!entry)
    return fail(name, "the entry is " + kindOf(value) + ", not an object");
  std::optional<llvm::StringRef> dtype = entry->getString("dtype");
  if (!dtype)
    return fail(name, "has no dtype string");
  std::optional<DType> known = dtypeFromName(*dtype);
  if (!known || dtypeBlock(*known) != 1)
    return fail(name, "unknown dtype " + quotedName(*dtype));
  TensorInfo info{name.str(), *known, {}, 0, 0};
  if (llvm::Error error = shape(info, *entry))
    return error;
  if (llvm::Error error = range(info, *entry))
    return error;
  return info;
}

llvm::Error HeaderReader::metadata(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return importError(path,
                       "__metadata__ is " + kindOf(value) + ", not an object");
  for (llvm::StringRef key : sortedKeys(*object))
    if (!object->getString(key))
      return importError(path, "__metadata__: " + quotedName(key) +
                                   " is not a string");
  return llvm::Error::success();
}

/// Sorts by place; then each tensor must begin where the last one ended.
llvm::Error HeaderReader::layout(llvm::MutableArrayRef<TensorInfo> tensors) {
  llvm::sort(tensors, [](const TensorInfo &a, const TensorInfo &b) {
    return std::tie(a.offset, a.bytes, a.name) <
           std::tie(b.offset, b.bytes, b.name);
  });
  uint64_t end = dataStart;
  const TensorInfo *last = nullptr;
  for (const TensorInfo &info : tensors) {
    if (info.offset < end)
      return fail(info.name,
                  "its bytes overlap those of " + quotedName(last->name));
    if (info.offset > end)
      return fail(info.name, llvm::Twine(info.offset - end) +
                                 " bytes before it belong to no tensor");
    end += info.bytes;
    last = &info;
  }
  if (uint64_t rest = dataStart + dataBytes - end)
    return importError(path, llvm::Twine(rest) +
                                 " bytes at its end belong to no tensor");
  return llvm::Error::success();
}

llvm::Expected<std::vector<TensorInfo>>
sparkc::parseSafetensorsHeader(llvm::ArrayRef<uint8_t> file,
                               llvm::StringRef path) {
  if (file.size() < 8)
    return importError(path,
                       "not a safetensors file: " + llvm::Twine(file.size()) +
                           " bytes have no room for a header length");
  uint64_t headerBytes = llvm::support::endian::read64le(file.data());
  if (headerBytes == 0)
    return importError(path, "header length is 0");
  if (headerBytes > maxHeaderBytes)
    return importError(path, "header length " + llvm::Twine(headerBytes) +
                                 " is more than the format's limit of " +
                                 llvm::Twine(maxHeaderBytes));
  if (headerBytes > file.size() - 8)
    return importError(path, "header length " + llvm::Twine(headerBytes) +
                                 " reaches past the end of the file (" +
                                 llvm::Twine(file.size()) +
                                 " bytes; truncated?)");

  llvm::StringRef text(reinterpret_cast<const char *>(file.data()) + 8,
                       static_cast<size_t>(headerBytes));
  llvm::Expected<json::Object> header = parseJsonObject(text, path);
  if (!header)
    return header.takeError();

  HeaderReader reader(path, 8 + headerBytes, file.size() - 8 - headerBytes);
  std::vector<TensorInfo> tensors;
  for (llvm::StringRef name : sortedKeys(*header)) {
    const json::Value &value = *header->get(name);
    if (name == "__metadata__") {
      if (llvm::Error error = reader.metadata(value))
        return error;
      continue;
    }
    llvm::Expected<TensorInfo> info = reader.tensor(name, value);
    if (!info)
      return info.takeError();
    tensors.push_back(std::move(*info));
  }
  if (llvm::Error error = reader.layout(tensors))
    return error;
  return tensors;
}

llvm::Expected<SafetensorsFile> SafetensorsFile::open(llvm::StringRef path) {
  llvm::Expected<std::shared_ptr<MappedFile>> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeError();
  llvm::Expected<std::vector<TensorInfo>> tensors =
      parseSafetensorsHeader((*mapped)->bytes(), path);
  if (!tensors)
    return tensors.takeError();
  SafetensorsFile file;
  file.mapped = std::move(*mapped);
  file.list = std::move(*tensors);
  for (size_t i = 0; i < file.list.size(); ++i)
    file.byName[file.list[i].name] = i;
  return file;
}

const TensorInfo *SafetensorsFile::find(llvm::StringRef name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &list[it->second];
}
