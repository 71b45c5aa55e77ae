//===- CodeFile.cpp - What calibration has chosen so far ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/CodeFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace sparkc;

namespace {

constexpr char kMagic[8] = {'S', 'P', 'K', 'C', 'C', 'O', 'D', '\n'};
constexpr uint64_t kAlign = 64;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint8_t key[16];
  uint8_t zeros[32];
};
static_assert(sizeof(FileHeader) == kAlign, "records start aligned");

struct RecordHeader {
  uint64_t name;  ///< bytes
  uint64_t bytes; ///< of the blocks
  uint64_t hash;  ///< XXH3-64 of the blocks, seeded with that of the rest
  double sqnr;
  char dtype[16];
};

uint64_t hashOf(const RecordHeader &header, llvm::StringRef name,
                llvm::ArrayRef<uint8_t> bytes) {
  RecordHeader copy = header;
  copy.hash = 0;
  uint64_t seed = XXH3_64bits(&copy, sizeof(copy));
  seed = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

} // namespace

CodeFile::Key sparkc::digestOf(llvm::StringRef bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  CodeFile::Key key;
  std::memcpy(key.data(), canonical.digest, key.size());
  return key;
}

llvm::Error CodeFile::failure(const char *what) const {
  return llvm::createStringError(file + ": " + what);
}

llvm::Expected<std::unique_ptr<CodeFile>> CodeFile::open(llvm::StringRef path,
                                                         const Key &key) {
  auto opened = std::unique_ptr<CodeFile>(new CodeFile());
  opened->file = path.str();
  opened->fd = ::open(opened->file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (opened->fd < 0)
    return opened->failure(std::strerror(errno));
  FileHeader header = {};
  ssize_t there = ::pread(opened->fd, &header, sizeof(header), 0);
  if (there < 0)
    return opened->failure(std::strerror(errno));
  bool ours = std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0;
  if (there > 0 && !ours)
    return opened->failure("is in the way of calibration: a file of another "
                           "kind that would be overwritten");
  opened->end = sizeof(FileHeader);
  if (there == sizeof(header) && header.version == 1 &&
      std::memcmp(header.key, key.data(), key.size()) == 0) {
    if (llvm::Error error = opened->readRecords())
      return error;
  } else {
    header = {};
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.version = 1;
    std::memcpy(header.key, key.data(), key.size());
    opened->end = 0;
    if (llvm::Error error = opened->write(&header, sizeof(header)))
      return error;
  }
  if (::ftruncate(opened->fd, opened->end) != 0)
    return opened->failure(std::strerror(errno));
  return opened;
}

CodeFile::~CodeFile() {
  if (fd >= 0)
    ::close(fd);
}

llvm::Error CodeFile::readRecords() {
  auto mapped = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!mapped)
    return failure(mapped.getError().message().c_str());
  llvm::StringRef all = (*mapped)->getBuffer();
  RecordHeader header;
  while (all.size() - end >= sizeof(header)) {
    std::memcpy(&header, all.data() + end, sizeof(header));
    uint64_t room = all.size() - end - sizeof(header);
    if (header.name > room || header.bytes > room)
      break;
    uint64_t at = end + sizeof(header);
    llvm::StringRef name = all.substr(at, header.name);
    at = (at + header.name + kAlign - 1) / kAlign * kAlign;
    if (at > all.size() || header.bytes > all.size() - at)
      break;
    llvm::ArrayRef<uint8_t> bytes(
        reinterpret_cast<const uint8_t *>(all.data()) + at, header.bytes);
    if (hashOf(header, name, bytes) != header.hash)
      break;
    header.dtype[sizeof(header.dtype) - 1] = 0;
    records[name] = {name.str(), header.dtype, header.sqnr, at, header.bytes};
    end = (at + header.bytes + kAlign - 1) / kAlign * kAlign;
    end = std::min<uint64_t>(end, all.size());
  }
  return llvm::Error::success();
}

const CodeFile::Record *CodeFile::find(llvm::StringRef name) const {
  auto it = records.find(name);
  return it == records.end() ? nullptr : &it->second;
}

llvm::Error CodeFile::write(const void *data, uint64_t size) {
  const char *from = static_cast<const char *>(data);
  while (size) {
    ssize_t n = ::pwrite(fd, from, size, end);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return failure(std::strerror(n < 0 ? errno : ENOSPC));
    from += n;
    end += n;
    size -= n;
  }
  return llvm::Error::success();
}

llvm::Error CodeFile::append(Record record, llvm::ArrayRef<uint8_t> bytes) {
  const uint8_t zeros[kAlign] = {};
  RecordHeader header = {};
  header.name = record.name.size();
  header.bytes = bytes.size();
  header.sqnr = record.sqnr;
  std::memcpy(header.dtype, record.dtype.data(),
              std::min(record.dtype.size(), sizeof(header.dtype) - 1));
  header.hash = hashOf(header, record.name, bytes);
  if (llvm::Error error = write(zeros, -end % kAlign))
    return error;
  if (llvm::Error error = write(&header, sizeof(header)))
    return error;
  if (llvm::Error error = write(record.name.data(), record.name.size()))
    return error;
  if (llvm::Error error = write(zeros, -end % kAlign))
    return error;
  record.offset = end;
  record.bytes = bytes.size();
  if (llvm::Error error = write(bytes.data(), bytes.size()))
    return error;
  // Whole lines, so that a reader finds the next record.
  if (llvm::Error error = write(zeros, -end % kAlign))
    return error;
  records[record.name] = record;
  return llvm::Error::success();
}

void CodeFile::remove() { llvm::sys::fs::remove(file); }
