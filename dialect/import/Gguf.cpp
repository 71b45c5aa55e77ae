//===- Gguf.cpp - GGUF files, checked before use --------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/Gguf.h"
#include "dialect/import/ImportError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace sparkc;
using llvm::StringRef;
using llvm::Twine;
namespace endian = llvm::support::endian;

static constexpr uint64_t maxRank = 4;
static constexpr uint32_t lastType = uint32_t(GgufType::F64);

bool sparkc::isGguf(llvm::ArrayRef<uint8_t> file) {
  return llvm::toStringRef(file).starts_with("GGUF");
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

StringRef sparkc::ggufTypeName(GgufType type) {
  static constexpr llvm::StringLiteral names[] = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  return names[uint32_t(type)];
}

/// Bytes of a value; 0 for strings and arrays.
static uint64_t sizeOf(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::Bool:
    return 1;
  case GgufType::U16:
  case GgufType::I16:
    return 2;
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::F32:
    return 4;
  case GgufType::U64:
  case GgufType::I64:
  case GgufType::F64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    return 0;
  }
  llvm_unreachable("checked by the reader");
}

namespace {
/// Types of tensors, by their numbers in files.
struct TensorType {
  uint32_t number;
  const char *name;
  std::optional<DType> dtype; ///< none: known but not read
};
} // namespace

static constexpr TensorType tensorTypes[] = {
    {0, "F32", DType::F32},   {1, "F16", DType::F16},
    {2, "Q4_0", DType::Q4_0}, {3, "Q4_1", DType::Q4_1},
    {6, "Q5_0", DType::Q5_0}, {7, "Q5_1", DType::Q5_1},
    {8, "Q8_0", DType::Q8_0}, {9, "Q8_1", {}},
    {10, "Q2_K", {}},         {11, "Q3_K", {}},
    {12, "Q4_K", DType::Q4_K}, {13, "Q5_K", DType::Q5_K},
    {14, "Q6_K", DType::Q6_K}, {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},      {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},      {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}},       {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},        {23, "IQ4_XS", {}},
    {24, "I8", {}},           {25, "I16", {}},
    {26, "I32", {}},          {27, "I64", {}},
    {28, "F64", {}},          {29, "IQ1_M", {}},
    {30, "BF16", DType::BF16}, {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},        {39, "MXFP4", {}}};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::string GgufValue::typeText() const {
  return isArray() ? ("array of " + ggufTypeName(element)).str()
                   : ggufTypeName(type).str();
}

std::optional<int64_t> GgufValue::integerAt(uint64_t index) const {
  GgufType of = isArray() ? element : type;
  const uint8_t *p = bytes.data() + index * sizeOf(of);
  switch (of) {
  case GgufType::U8:
    return *p;
  case GgufType::I8:
    return static_cast<int8_t>(*p);
  case GgufType::U16:
    return endian::read16le(p);
  case GgufType::I16:
    return static_cast<int16_t>(endian::read16le(p));
  case GgufType::U32:
    return endian::read32le(p);
  case GgufType::I32:
    return static_cast<int32_t>(endian::read32le(p));
  case GgufType::I64:
    return static_cast<int64_t>(endian::read64le(p));
  case GgufType::U64:
    if (uint64_t value = endian::read64le(p); value <= INT64_MAX)
      return static_cast<int64_t>(value);
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

std::optional<int64_t> GgufValue::integer() const {
  return isArray() ? std::nullopt : integerAt(0);
}

std::optional<double> GgufValue::number() const {
  if (type == GgufType::F32)
    return llvm::bit_cast<float>(endian::read32le(bytes.data()));
  if (type == GgufType::F64)
    return llvm::bit_cast<double>(endian::read64le(bytes.data()));
  if (std::optional<int64_t> value = integer())
    return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<bool> GgufValue::boolean() const {
  if (type != GgufType::Bool)
    return std::nullopt;
  return bytes[0] != 0;
}

std::optional<StringRef> GgufValue::string() const {
  if (type != GgufType::String)
    return std::nullopt;
  return llvm::toStringRef(bytes).drop_front(8);
}

std::optional<std::vector<int64_t>> GgufValue::integers() const {
  if (!isArray())
    return std::nullopt;
  std::vector<int64_t> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    std::optional<int64_t> value = integerAt(i);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<std::vector<float>> GgufValue::floats() const {
  if (!isArray() || element != GgufType::F32)
    return std::nullopt;
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = llvm::bit_cast<float>(endian::read32le(bytes.data() + 4 * i));
  return values;
}

std::optional<std::vector<bool>> GgufValue::booleans() const {
  if (!isArray() || element != GgufType::Bool)
    return std::nullopt;
  std::vector<bool> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = bytes[i] != 0;
  return values;
}

std::optional<std::vector<StringRef>> GgufValue::strings() const {
  if (!isArray() || element != GgufType::String)
    return std::nullopt;
  std::vector<StringRef> values;
  values.reserve(count);
  StringRef rest = llvm::toStringRef(bytes);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length = endian::read64le(rest.data());
    values.push_back(rest.substr(8, length));
    rest = rest.drop_front(8 + length);
  }
  return values;
}

bool GgufValue::isOff() const {
  if (isArray())
    return count == 0;
  if (type == GgufType::String)
    return bytes.size() == 8;
  return llvm::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

void GgufValue::write(std::string &out) const {
  char word[8];
  endian::write32le(word, static_cast<uint32_t>(type));
  out.append(word, 4);
  if (isArray()) {
    endian::write32le(word, static_cast<uint32_t>(element));
    out.append(word, 4);
    endian::write64le(word, count);
    out.append(word, 8);
  }
  out += llvm::toStringRef(bytes);
}

uint32_t sparkc::ggufTypeNumber(DType dtype) {
  for (const TensorType &type : tensorTypes)
    if (type.dtype == dtype)
      return type.number;
  llvm_unreachable("no type of GGUF");
}

const GgufValue *GgufHeader::find(StringRef key) const {
  for (const auto &[name, value] : keys)
    if (name == key)
      return &value;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

namespace {
/// Reads forward through a file. Keeps the first fault; after it, everything
/// reads as zero, so that callers check once a step.
class Reader {
public:
  Reader(llvm::ArrayRef<uint8_t> file, StringRef path)
      : file(file), path(path) {}
  llvm::Expected<GgufHeader> run();

private:
  bool ok() const { return fault.empty(); }
  void fail(const Twine &message) {
    if (ok())
      fault = message.str();
  }
  /// The next bytes, or none after a fault.
  llvm::ArrayRef<uint8_t> take(uint64_t bytes, const Twine &what) {
    if (ok() && bytes > file.size() - at)
      fail(what + " reaches past the end of the file (" + Twine(file.size()) +
           " bytes; truncated?)");
    if (!ok())
      return {};
    at += bytes;
    return file.slice(at - bytes, bytes);
  }
  uint64_t u64(const Twine &what) {
    auto bytes = take(8, what);
    return bytes.empty() ? 0 : endian::read64le(bytes.data());
  }
  uint32_t u32(const Twine &what) {
    auto bytes = take(4, what);
    return bytes.empty() ? 0 : endian::read32le(bytes.data());
  }
  StringRef string(const Twine &what) {
    return llvm::toStringRef(take(u64(what), what));
  }
  /// Something of at least `least` bytes each cannot be there more often.
  bool fits(uint64_t count, uint64_t least, const Twine &what) {
    if (ok() && count > (file.size() - at) / least)
      fail(what + " of " + Twine(count) + " entries reaches past the end of "
           "the file (" + Twine(file.size()) + " bytes; truncated?)");
    return ok();
  }
  GgufType type(const Twine &what);
  GgufValue value(const Twine &what);
  TensorInfo tensor(uint64_t index);
  uint64_t alignment(const GgufHeader &header);
  void place(GgufHeader &header);

  llvm::ArrayRef<uint8_t> file;
  StringRef path;
  uint64_t at = 0;
  std::string fault;
};
} // namespace

GgufType Reader::type(const Twine &what) {
  uint32_t number = u32(what);
  if (number > lastType) {
    fail(what + " has unknown type " + Twine(number));
    return GgufType::U8;
  }
  return static_cast<GgufType>(number);
}

GgufValue Reader::value(const Twine &what) {
  GgufType kind = type(what);
  uint64_t start = at, count = 1;
  GgufType of = kind;
  if (kind == GgufType::Array) {
    of = type(what);
    count = u64(what);
    start = at;
    if (of == GgufType::Array)
      fail(what + " is an array of arrays");
  }
  if (!ok() || !fits(count, of == GgufType::String ? 8 : sizeOf(of), what))
    return {};
  if (of == GgufType::String)
    for (uint64_t i = 0; i < count && ok(); ++i)
      string(what);
  else
    take(count * sizeOf(of), what);
  if (!ok())
    return {};
  auto bytes = file.slice(start, at - start);
  if (of == GgufType::Bool)
    for (uint8_t byte : bytes)
      if (byte > 1)
        fail(what + " is a bool of " + Twine(unsigned(byte)));
  return GgufValue(kind, of, count, bytes);
}

/// Name, shape and type; `offset` is still what the file says.
TensorInfo Reader::tensor(uint64_t index) {
  StringRef name = string("tensor " + Twine(index));
  TensorInfo info{name.str(), DType::F32, {}, 0, 0};
  std::string what = "tensor " + quotedName(name);
  uint32_t rank = u32(what);
  if (ok() && (rank == 0 || rank > maxRank))
    fail(what + " has " + Twine(rank) + " dimensions; 1 to " + Twine(maxRank) +
         " are expected");
  for (uint32_t i = 0; ok() && i < rank; ++i) {
    uint64_t n = u64(what);
    if (ok() && (n == 0 || n > INT64_MAX))
      fail(what + ": a dimension is " + Twine(n));
    info.shape.push_back(static_cast<int64_t>(n));
  }
  uint32_t number = u32(what);
  info.offset = u64(what);
  if (!ok())
    return info;
  auto known = llvm::find_if(
      tensorTypes, [&](const TensorType &t) { return t.number == number; });
  if (known == std::end(tensorTypes)) {
    fail(what + " has unknown type " + Twine(number));
    return info;
  }
  if (!known->dtype) {
    fail(what + " has type " + known->name + ", which is not supported");
    return info;
  }
  info.dtype = *known->dtype;
  uint64_t block = dtypeBlock(info.dtype);
  if (static_cast<uint64_t>(info.shape[0]) % block)
    fail(what + ": rows of " + Twine(info.shape[0]) +
         " elements are not whole blocks of " + known->name + " (" +
         Twine(block) + ")");
  std::optional<uint64_t> bytes = info.shape[0] / block;
  for (int64_t n : llvm::ArrayRef(info.shape).drop_front())
    bytes = bytes ? llvm::checkedMulUnsigned<uint64_t>(*bytes, n) : bytes;
  if (bytes)
    bytes = llvm::checkedMulUnsigned<uint64_t>(*bytes, dtypeBytes(info.dtype));
  std::reverse(info.shape.begin(), info.shape.end());
  if (!bytes)
    fail(what + ": the size of shape " + shapeText(info.shape) + " overflows");
  info.bytes = bytes.value_or(0);
  return info;
}

uint64_t Reader::alignment(const GgufHeader &header) {
  const GgufValue *value = header.find("general.alignment");
  if (!value)
    return 32;
  std::optional<int64_t> n = value->integer();
  if (value->typeText() != "u32" || !n)
    fail("general.alignment is of type " + value->typeText() + ", not u32");
  else if (!llvm::isPowerOf2_64(*n))
    fail("general.alignment is " + Twine(*n) + ", not a power of two");
  else
    return *n;
  return 32;
}

/// Turns offsets into those from the file's start and checks the spans.
void Reader::place(GgufHeader &header) {
  uint64_t align = alignment(header);
  if (!ok() || header.tensors.empty())
    return;
  uint64_t start = llvm::alignTo(at, align);
  for (TensorInfo &info : header.tensors) {
    std::string what = "tensor " + quotedName(info.name);
    if (info.offset % align)
      return fail(what + ": offset " + Twine(info.offset) +
                  " is not a multiple of the alignment, " + Twine(align));
    if (start > file.size() || info.offset > file.size() - start ||
        info.bytes > file.size() - start - info.offset)
      return fail(what + ": " + Twine(info.bytes) + " bytes at offset " +
                  Twine(info.offset) + " reach past the end of the file (" +
                  Twine(file.size()) + " bytes; truncated?)");
    info.offset += start;
  }
  llvm::sort(header.tensors, [](const TensorInfo &a, const TensorInfo &b) {
    return std::tie(a.offset, a.name) < std::tie(b.offset, b.name);
  });
  for (size_t i = 1; i < header.tensors.size(); ++i) {
    const TensorInfo &last = header.tensors[i - 1], &info = header.tensors[i];
    if (info.offset < last.offset + last.bytes)
      return fail("tensor " + quotedName(info.name) +
                  ": its bytes overlap those of " + quotedName(last.name));
  }
}

llvm::Expected<GgufHeader> Reader::run() {
  GgufHeader header;
  if (!isGguf(file))
    return importError(path, "not a GGUF file");
  at = 4;
  uint32_t version = u32("the version");
  if (ok() && version != 2 && version != 3)
    fail(version >= 1 << 24
             ? Twine("is a big-endian GGUF file; only little-endian ones are "
                     "supported")
             : "GGUF version " + Twine(version) + "; 2 or 3 is supported");
  uint64_t tensors = u64("the number of tensors");
  uint64_t keys = u64("the number of keys");
  // The least that a key and a tensor take: empty names, one byte, one dim.
  fits(keys, 13, "the list of keys");
  llvm::StringMap<char> names;
  for (uint64_t i = 0; i < keys && ok(); ++i) {
    StringRef key = string("key " + Twine(i));
    if (ok() && !names.try_emplace(key).second)
      fail("key " + quotedName(key) + " is there twice");
    header.keys.push_back({key, value("key " + quotedName(key))});
  }
  fits(tensors, 32, "the list of tensors");
  names.clear();
  for (uint64_t i = 0; i < tensors && ok(); ++i) {
    header.tensors.push_back(tensor(i));
    const std::string &name = header.tensors.back().name;
    if (ok() && !names.try_emplace(name).second)
      fail("tensor " + quotedName(name) + " is there twice");
  }
  if (ok())
    place(header);
  if (!ok())
    return importError(path, fault);
  return header;
}

llvm::Expected<GgufHeader>
sparkc::parseGgufHeader(llvm::ArrayRef<uint8_t> file, StringRef path) {
  return Reader(file, path).run();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

llvm::Expected<GgufFile::Part> GgufFile::openPart(StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto header = parseGgufHeader((*file)->bytes(), path);
  if (!header)
    return header.takeError();
  return Part{std::move(*file), std::move(*header)};
}

/// An integer key of a part, -1 where it is missing or nonsense.
static int64_t splitKey(const GgufHeader &header, StringRef key) {
  const GgufValue *value = header.find(key);
  return value ? value->integer().value_or(-1) : -1;
}

llvm::Error GgufFile::openSplit() {
  if (!find("split.count"))
    return llvm::Error::success();
  const std::string first = path();
  int64_t count = splitKey(parts[0].header, "split.count");
  int64_t number = splitKey(parts[0].header, "split.no");
  if (count < 1 || count > 9999 || number < 0 || number >= count)
    return importError(first, "split.no " + Twine(number) + " of split.count " +
                                  Twine(count) + " makes no sense");
  if (number != 0)
    return importError(first, "is part " + Twine(number + 1) + " of " +
                                  Twine(count) + " of a split file; name the "
                                  "first one");
  StringRef stem(first);
  std::string suffix = llvm::formatv("-00001-of-{0,0+5}.gguf", count);
  if (count > 1 && !stem.consume_back(suffix))
    return importError(first, "is the first of " + Twine(count) +
                                  " parts, but its name does not end in " +
                                  suffix);
  for (int64_t i = 1; i < count; ++i) {
    std::string name =
        (stem + llvm::formatv("-{0,0+5}-of-{1,0+5}.gguf", i + 1, count).str())
            .str();
    auto part = openPart(name);
    if (!part)
      return part.takeError();
    if (splitKey(part->header, "split.no") != i ||
        splitKey(part->header, "split.count") != count)
      return importError(name, "is not part " + Twine(i + 1) + " of " +
                                   Twine(count) + " of a split file");
    parts.push_back(std::move(*part));
  }
  int64_t total = 0;
  for (const Part &part : parts)
    total += part.header.tensors.size();
  if (find("split.tensors.count") &&
      splitKey(parts[0].header, "split.tensors.count") != total)
    return importError(first, "its parts hold " + Twine(total) +
                                  " tensors, not the " +
                                  Twine(splitKey(parts[0].header,
                                                 "split.tensors.count")) +
                                  " of split.tensors.count");
  return llvm::Error::success();
}

llvm::Expected<GgufFile> GgufFile::open(StringRef path) {
  auto first = openPart(path);
  if (!first)
    return first.takeError();
  GgufFile file;
  file.parts.push_back(std::move(*first));
  if (llvm::Error error = file.openSplit())
    return error;
  for (const Part &part : file.parts)
    for (const TensorInfo &info : part.header.tensors) {
      if (!file.byName.try_emplace(info.name, file.list.size()).second)
        return importError(part.file->path(), "tensor " + quotedName(info.name) +
                                                  " is in another part too");
      file.list.push_back({&info, part.file});
    }
  return file;
}

const GgufFile::Tensor *GgufFile::findTensor(StringRef name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &list[it->second];
}
