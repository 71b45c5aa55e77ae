//===- WeightFile.cpp - Writing weights files -----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/WeightFile.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sparkc {

static_assert(sizeof(sparkc_weights_header) < kPayloadOffset, "header grew");

constexpr size_t kBufferBytes = 4 << 20;

struct WeightFileWriter::Hash {
  Hash() : state(XXH3_createState()) { XXH3_128bits_reset(state); }
  ~Hash() { XXH3_freeState(state); }
  XXH3_state_t *state; // on the heap: it wants 64-byte alignment
};

WeightFileWriter::WeightFileWriter() : hash(std::make_unique<Hash>()) {}

std::unique_ptr<WeightFileWriter> WeightFileWriter::createDigestOnly() {
  auto writer = std::unique_ptr<WeightFileWriter>(new WeightFileWriter());
  writer->filePosition = kPayloadOffset;
  return writer;
}

llvm::Expected<std::unique_ptr<WeightFileWriter>>
WeightFileWriter::create(llvm::StringRef path) {
  auto writer = std::unique_ptr<WeightFileWriter>(new WeightFileWriter());
  writer->path = path.str();
  llvm::Expected<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  writer->file.emplace(std::move(*file));
  writer->file->removeOnSignal();
  writer->buffer.reserve(kBufferBytes);
  // The header comes last; until then the file starts with zeros, and no
  // reader takes it for a weights file.
  std::vector<uint8_t> zeros(kPayloadOffset);
  if (llvm::Error e = writer->put(zeros.data(), zeros.size()))
    return e;
  return writer;
}

WeightFileWriter::~WeightFileWriter() = default;

llvm::Error WeightFileWriter::failure(const llvm::Twine &what) const {
  return llvm::createStringError((path.empty() ? "weights" : path) + ": " +
                                 what);
}

llvm::Error WeightFileWriter::flush() {
  if (llvm::Error error = file->write(filePosition - buffer.size(), buffer))
    return error;
  buffer.clear();
  return llvm::Error::success();
}

llvm::Error WeightFileWriter::put(const void *data, uint64_t size) {
  if (!file) {
    filePosition += size;
    return llvm::Error::success();
  }
  const uint8_t *p = static_cast<const uint8_t *>(data);
  while (size) {
    uint64_t n = std::min<uint64_t>(size, kBufferBytes - buffer.size());
    buffer.insert(buffer.end(), p, p + n);
    filePosition += n;
    p += n;
    size -= n;
    if (buffer.size() == kBufferBytes)
      if (llvm::Error e = flush())
        return e;
  }
  return llvm::Error::success();
}

llvm::Error WeightFileWriter::appendRaw(llvm::ArrayRef<uint8_t> bytes) {
  XXH3_128bits_update(hash->state, bytes.data(), bytes.size());
  position += bytes.size();
  return put(bytes.data(), bytes.size());
}

llvm::Error WeightFileWriter::endTensor() {
  if (position != tensorEnd)
    return failure("tensor '" + entries.back().name + "' is " +
                   llvm::Twine(tensorEnd - position) + " bytes short");
  static const uint8_t zeros[kLineBytes] = {};
  return appendRaw({zeros, size_t(-position % kLineBytes)});
}

llvm::Error WeightFileWriter::beginTensor(DirectoryEntry entry) {
  if (payloadDone)
    return failure("the payload has been finished");
  if (llvm::Error e = endTensor())
    return e;
  if (entry.offset != position)
    return failure("tensor '" + entry.name + "' is planned at " +
                   llvm::Twine(entry.offset) + ", but the payload is at " +
                   llvm::Twine(position));
  tensorEnd = position + entry.bytes();
  entries.push_back(std::move(entry));
  return llvm::Error::success();
}

llvm::Error WeightFileWriter::append(llvm::ArrayRef<uint8_t> bytes) {
  if (payloadDone || bytes.size() > tensorEnd - position)
    return failure("more bytes than planned for tensor '" +
                   (entries.empty() ? "" : entries.back().name) + "'");
  return appendRaw(bytes);
}

llvm::Error WeightFileWriter::addSection(sparkc_section_kind kind,
                                         llvm::StringRef bytes) {
  if (kind == SPARKC_SECTION_PAYLOAD || kind == SPARKC_SECTION_DIRECTORY)
    return failure("the writer itself adds section " + llvm::Twine(kind));
  for (auto &section : sections)
    if (section.first == kind)
      return failure("section " + llvm::Twine(kind) + " is there twice");
  if (sections.size() + 2 >= SPARKC_WEIGHTS_MAX_SECTIONS)
    return failure("too many sections");
  sections.emplace_back(kind, bytes.str());
  return llvm::Error::success();
}

llvm::Expected<WeightDigest> WeightFileWriter::finishPayload() {
  if (!payloadDone) {
    if (llvm::Error e = endTensor())
      return e;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(hash->state));
    static_assert(sizeof(canonical.digest) == 16, "");
    std::memcpy(digest.data(), canonical.digest, 16);
    payloadDone = true;
  }
  return digest;
}

llvm::Error WeightFileWriter::finish(bool sync) {
  if (llvm::Expected<WeightDigest> done = finishPayload(); !done)
    return done.takeError();
  if (!file)
    return llvm::Error::success();

  sparkc_weights_header header = {};
  std::memcpy(header.magic, SPARKC_WEIGHTS_MAGIC, sizeof(header.magic));
  header.version = SPARKC_WEIGHTS_VERSION;
  header.header_bytes = sizeof(header);
  std::memcpy(header.digest, digest.data(), digest.size());
  for (const DirectoryEntry &entry : entries) {
    uint32_t id = static_cast<uint32_t>(entry.matrix.layout);
    uint32_t *end = header.layouts + header.n_layouts;
    if (std::find(header.layouts, end, id) == end)
      header.layouts[header.n_layouts++] = id; // fewer layouts exist than fit
  }
  std::sort(header.layouts, header.layouts + header.n_layouts);
  header.sections[header.n_sections++] = {SPARKC_SECTION_PAYLOAD, 0,
                                          kPayloadOffset, position, 0};

  std::string directory;
  llvm::raw_string_ostream(directory) << directoryToJSON(entries);
  sections.insert(sections.begin(), {SPARKC_SECTION_DIRECTORY, directory});
  for (const auto &[kind, bytes] : sections) {
    static const uint8_t zeros[kLineBytes] = {};
    if (llvm::Error e = put(zeros, -filePosition % kLineBytes))
      return e;
    header.sections[header.n_sections++] = {
        static_cast<uint32_t>(kind), 0, filePosition, bytes.size(),
        XXH3_64bits(bytes.data(), bytes.size())};
    if (llvm::Error e = put(bytes.data(), bytes.size()))
      return e;
  }
  header.file_bytes = filePosition;
  header.hash = XXH3_64bits(&header, offsetof(sparkc_weights_header, hash));
  if (llvm::Error e = flush())
    return e;
  const auto *headerBytes = reinterpret_cast<const uint8_t *>(&header);
  if (llvm::Error e = file->write(0, {headerBytes, sizeof(header)}))
    return e;
  if (sync)
    if (llvm::Error e = file->sync())
      return e;
  return file->commit();
}

llvm::Error addSectionToFile(llvm::StringRef path, sparkc_section_kind kind,
                             llvm::StringRef bytes) {
  sparkc_weights_header header;
  {
    auto reader = WeightFileReader::open(path);
    if (!reader)
      return reader.takeError();
    header = (*reader)->header();
  }
  auto failure = [&](const llvm::Twine &what) {
    return llvm::createStringError(path + ": " + what);
  };
  for (uint32_t i = 0; i < header.n_sections; ++i)
    if (header.sections[i].kind == static_cast<uint32_t>(kind))
      return failure("has a section " + llvm::Twine(kind) + " already");
  if (header.n_sections == SPARKC_WEIGHTS_MAX_SECTIONS)
    return failure("has no room for another section");
  uint64_t at = header.file_bytes + -header.file_bytes % kLineBytes;
  header.sections[header.n_sections++] = {
      static_cast<uint32_t>(kind), 0, at, bytes.size(),
      XXH3_64bits(bytes.data(), bytes.size())};
  header.file_bytes = at + bytes.size();
  header.hash = XXH3_64bits(&header, offsetof(sparkc_weights_header, hash));
  int fd = ::open(path.str().c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return failure(std::strerror(errno));
  bool written =
      ::pwrite(fd, bytes.data(), bytes.size(), at) == ssize_t(bytes.size()) &&
      ::pwrite(fd, &header, sizeof(header), 0) == ssize_t(sizeof(header));
  int error = written ? 0 : errno ? errno : ENOSPC;
  if (::close(fd) != 0 && !error)
    error = errno;
  return error ? failure(std::strerror(error)) : llvm::Error::success();
}

} // namespace sparkc
