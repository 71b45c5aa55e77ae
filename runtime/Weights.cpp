//===- Weights.cpp - A mapped weights file --------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Weights.h"
#include "runtime/Hash.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sparkc;

std::string sparkc::digestHex(const uint8_t digest[16]) {
  std::string hex;
  for (int i = 0; i < 16; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

WeightsFile::~WeightsFile() {
  if (reserved)
    munmap(reserved, reservedBytes);
}

Failure WeightsFile::checkHeader(uint64_t fileBytes) const {
  const char *name = file.c_str();
  if (memcmp(head.magic, SPARKC_WEIGHTS_MAGIC, sizeof head.magic))
    return fail(SPARKC_FORMAT, "%s: not a weights file of sparkc", name);
  if (head.version > SPARKC_WEIGHTS_VERSION)
    return fail(SPARKC_NEWER_VERSION,
                "%s: weights file version %u; this runtime reads up to %u",
                name, head.version, SPARKC_WEIGHTS_VERSION);
  if (head.version != SPARKC_WEIGHTS_VERSION ||
      head.header_bytes != sizeof(sparkc_weights_header))
    return fail(SPARKC_FORMAT,
                "%s: weights file version %u with a header of %u bytes; "
                "expected version %u with %zu",
                name, head.version, head.header_bytes, SPARKC_WEIGHTS_VERSION,
                sizeof(sparkc_weights_header));
  if (hash64(&head, offsetof(sparkc_weights_header, hash)) != head.hash)
    return fail(SPARKC_CORRUPT, "%s: the header does not match its checksum",
                name);
  if (head.file_bytes != fileBytes)
    return fail(SPARKC_FORMAT, "%s: %s: %llu bytes of %llu", name,
                fileBytes < head.file_bytes ? "truncated" : "too long",
                (unsigned long long)fileBytes,
                (unsigned long long)head.file_bytes);
  if (head.n_sections > SPARKC_WEIGHTS_MAX_SECTIONS ||
      head.n_layouts > SPARKC_WEIGHTS_MAX_LAYOUTS)
    return fail(SPARKC_FORMAT, "%s: %u sections and %u layouts in the header",
                name, head.n_sections, head.n_layouts);
  unsigned payloads = 0;
  for (uint32_t i = 0; i < head.n_sections; ++i) {
    const sparkc_section &s = head.sections[i];
    payloads += s.kind == SPARKC_SECTION_PAYLOAD;
    if (s.offset < sizeof head || s.offset % 64 || s.offset > fileBytes ||
        s.bytes > fileBytes - s.offset)
      return fail(SPARKC_FORMAT,
                  "%s: section %u (offset %llu, %llu bytes) is not inside "
                  "the file",
                  name, i, (unsigned long long)s.offset,
                  (unsigned long long)s.bytes);
    if (s.kind == SPARKC_SECTION_PAYLOAD && (s.offset % 4096 || !s.bytes))
      return fail(SPARKC_FORMAT, "%s: the payload is empty or not aligned",
                  name);
  }
  if (payloads != 1)
    return fail(SPARKC_FORMAT, "%s: %u payload sections", name, payloads);
  return success();
}

Failure WeightsFile::open(const std::string &path) {
  file = path;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return failErrno("%s: cannot open", path.c_str());
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } closer{fd};
  struct stat info;
  if (fstat(fd, &info))
    return failErrno("%s: cannot read", path.c_str());
  if (!S_ISREG(info.st_mode))
    return fail(SPARKC_IO, "%s: not a regular file", path.c_str());
  size_t have = 0;
  while (have < sizeof head) {
    ssize_t got = pread(fd, reinterpret_cast<char *>(&head) + have,
                        sizeof head - have, have);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return failErrno("%s: cannot read", path.c_str());
    if (got == 0)
      break;
    have += got;
  }
  if (have < sizeof head) {
    bool ours = have >= sizeof head.magic &&
                !memcmp(head.magic, SPARKC_WEIGHTS_MAGIC, sizeof head.magic);
    if (ours)
      return fail(SPARKC_FORMAT, "%s: truncated: %zu bytes, the header is %zu",
                  path.c_str(), have, sizeof head);
    return fail(SPARKC_FORMAT, "%s: not a weights file of sparkc",
                path.c_str());
  }
  if (Failure failure = checkHeader(info.st_size))
    return failure;
  return map(fd, info.st_size);
}

Failure WeightsFile::map(int fd, uint64_t bytes) {
  // The mapping starts on a huge-page boundary, so that file systems with huge
  // pages in the page cache can map them.
  constexpr size_t huge = size_t(2) << 20;
  reservedBytes = bytes + huge;
  void *range = mmap(nullptr, reservedBytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return failErrno("%s: cannot map", file.c_str());
  reserved = range;
  uintptr_t start = (reinterpret_cast<uintptr_t>(range) + huge - 1) & -huge;
  void *mapped = mmap(reinterpret_cast<void *>(start), bytes, PROT_READ,
                      MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED)
    return failErrno("%s: cannot map", file.c_str());
  base = static_cast<uint8_t *>(mapped);
  if (bytes >= huge)
    madvise(base, bytes, MADV_HUGEPAGE); // best effort
  return success();
}

const sparkc_section *WeightsFile::find(uint32_t kind) const {
  for (uint32_t i = 0; i < head.n_sections; ++i)
    if (head.sections[i].kind == kind)
      return &head.sections[i];
  return nullptr;
}

const uint8_t *WeightsFile::payload() const {
  return base + find(SPARKC_SECTION_PAYLOAD)->offset;
}

uint64_t WeightsFile::payloadBytes() const {
  return find(SPARKC_SECTION_PAYLOAD)->bytes;
}

Failure WeightsFile::checkSection(const sparkc_section &s) const {
  if (hash64(base + s.offset, s.bytes) != s.hash)
    return fail(SPARKC_CORRUPT,
                "%s: section of kind %u does not match its checksum",
                file.c_str(), s.kind);
  return success();
}

Failure WeightsFile::section(uint32_t kind, std::string_view &bytes) const {
  bytes = {};
  const sparkc_section *s = find(kind);
  if (!s)
    return success();
  if (Failure failure = checkSection(*s))
    return failure;
  bytes = {reinterpret_cast<const char *>(base + s->offset), s->bytes};
  return success();
}

Failure WeightsFile::verify() const {
  for (uint32_t i = 0; i < head.n_sections; ++i)
    if (head.sections[i].kind != SPARKC_SECTION_PAYLOAD)
      if (Failure failure = checkSection(head.sections[i]))
        return failure;
  uint8_t digest[16];
  hash128(payload(), payloadBytes(), digest);
  if (memcmp(digest, head.digest, sizeof digest))
    return fail(SPARKC_CORRUPT,
                "%s: the weights do not match their digest (%s, should be %s)",
                file.c_str(), digestHex(digest).c_str(),
                digestHex(head.digest).c_str());
  return success();
}
