//===- SessionFile.cpp - Saving a session to a file and back --------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A saved session is a header, then the tokens, the ring's record, and from
// the next multiple of 4096 on the KV cache as it lies in memory, its zero
// blocks left as holes. It is read into new memory and checked before the
// session changes.
//===----------------------------------------------------------------------===//

#include "runtime/Hash.h"
#include "runtime/Session.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sparkc;

namespace {

constexpr char savedMagic[9] = "SPKCSES\n";
constexpr uint32_t savedVersion = 1;
constexpr size_t blockBytes = size_t(1) << 16;

struct SavedHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint8_t digest[16]; ///< of the model's weights
  uint64_t identity;  ///< Session::identity()
  uint64_t capacity;
  uint64_t kv_bytes;
  uint64_t n_tokens;
  uint64_t n_slots;
  uint64_t body_hash; ///< XXH3-64 of tokens, slots and KV cache
  uint64_t hash;      ///< XXH3-64 of the bytes before this field
};

uint64_t kvOffset(const SavedHeader &h) {
  uint64_t end = sizeof h + h.n_tokens * 4 + h.n_slots * 8;
  return (end + 4095) / 4096 * 4096;
}

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0)
      close(fd);
  }
};

bool writeAt(int fd, const void *data, size_t bytes, uint64_t offset) {
  const char *from = static_cast<const char *>(data);
  while (bytes) {
    ssize_t n = pwrite(fd, from, bytes, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    from += n, offset += n, bytes -= n;
  }
  return true;
}

bool readAt(int fd, void *data, size_t bytes, uint64_t offset) {
  char *to = static_cast<char *>(data);
  while (bytes) {
    ssize_t n = pread(fd, to, bytes, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n == 0)
      errno = EIO; // shorter than it was a moment ago
    if (n <= 0)
      return false;
    to += n, offset += n, bytes -= n;
  }
  return true;
}

bool isZero(const uint8_t *data, size_t bytes) {
  return bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0);
}

} // namespace

/// What decides how a KV cache's bytes are to be read, beyond the weights.
uint64_t Session::identity() const {
  const sparkc_descriptor &d = model->descriptor();
  Hash64Stream hash;
  hash.update(d.compiler, strlen(d.compiler) + 1);
  hash.update(d.scheme, strlen(d.scheme) + 1);
  const uint64_t numbers[] = {d.kv_type,     d.vocab,      d.layers,
                              d.full_layers, d.heads,      d.kv_heads,
                              d.head_dim,    d.window,     d.ring_positions,
                              d.kv_bytes.a,  d.kv_bytes.b, d.capacity_multiple};
  hash.update(numbers, sizeof numbers);
  return hash.value();
}

Failure Session::save(const char *path) const {
  if (Failure failure = checkIdle())
    return failure;
  SavedHeader head = {};
  memcpy(head.magic, savedMagic, sizeof head.magic);
  head.version = savedVersion;
  head.header_bytes = sizeof head;
  memcpy(head.digest, model->payloadDigest(), sizeof head.digest);
  head.identity = identity();
  head.capacity = ctx.capacity;
  head.kv_bytes = kv.bytes();
  head.n_tokens = history.size();
  head.n_slots = ring.contents().size();

  std::string temporary = std::string(path) + ".XXXXXX";
  File file;
  file.fd = mkostemp(&temporary[0], O_CLOEXEC);
  if (file.fd < 0)
    return failErrno("%s: cannot create", path);
  auto fallen = [&] {
    Failure failure = failErrno("%s: cannot write", path);
    unlink(temporary.c_str());
    return failure;
  };

  Hash64Stream hash;
  const uint64_t slotsAt = sizeof head + head.n_tokens * 4;
  const uint64_t kvAt = kvOffset(head);
  hash.update(history.data(), head.n_tokens * 4);
  hash.update(ring.contents().data(), head.n_slots * 8);
  if (!writeAt(file.fd, history.data(), head.n_tokens * 4, sizeof head) ||
      !writeAt(file.fd, ring.contents().data(), head.n_slots * 8, slotsAt))
    return fallen();
  for (uint64_t at = 0; at < head.kv_bytes; at += blockBytes) {
    size_t n = std::min<uint64_t>(blockBytes, head.kv_bytes - at);
    hash.update(kv.data() + at, n);
    if (!isZero(kv.data() + at, n) &&
        !writeAt(file.fd, kv.data() + at, n, kvAt + at))
      return fallen();
  }
  head.body_hash = hash.value();
  head.hash = hash64(&head, offsetof(SavedHeader, hash));
  mode_t mask = umask(0);
  umask(mask);
  if (ftruncate(file.fd, kvAt + head.kv_bytes) ||
      !writeAt(file.fd, &head, sizeof head, 0) ||
      fchmod(file.fd, 0666 & ~mask) || fsync(file.fd) ||
      rename(temporary.c_str(), path))
    return fallen();
  return success();
}

Failure Session::restore(const char *path) {
  if (Failure failure = checkIdle())
    return failure;
  File file;
  file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info))
    return failErrno("%s: cannot open", path);
  SavedHeader head;
  if (!S_ISREG(info.st_mode) || size_t(info.st_size) < sizeof head)
    return fail(SPARKC_FORMAT, "%s: not a saved session", path);
  if (!readAt(file.fd, &head, sizeof head, 0))
    return failErrno("%s: cannot read", path);
  if (memcmp(head.magic, savedMagic, sizeof head.magic))
    return fail(SPARKC_FORMAT, "%s: not a saved session", path);
  if (head.version > savedVersion)
    return fail(SPARKC_NEWER_VERSION,
                "%s: saved session of version %u; this runtime reads up to %u",
                path, head.version, savedVersion);
  if (head.version != savedVersion || head.header_bytes != sizeof head)
    return fail(SPARKC_FORMAT, "%s: broken header of a saved session", path);
  if (hash64(&head, offsetof(SavedHeader, hash)) != head.hash)
    return fail(SPARKC_CORRUPT, "%s: the header does not match its checksum",
                path);
  if (memcmp(head.digest, model->payloadDigest(), sizeof head.digest))
    return fail(SPARKC_MISMATCH, "%s: saved from another model (digest %s)",
                path, digestHex(head.digest).c_str());
  if (head.identity != identity())
    return fail(SPARKC_MISMATCH, "%s: saved by another compile of the model",
                path);
  if (head.capacity != ctx.capacity || head.kv_bytes != kv.bytes() ||
      head.n_slots != ring.contents().size() || head.n_tokens > limit)
    return fail(SPARKC_MISMATCH,
                "%s: saved with %llu tokens in a capacity of %llu; this "
                "session has room for %zu in %llu",
                path, (unsigned long long)head.n_tokens,
                (unsigned long long)head.capacity, limit,
                (unsigned long long)ctx.capacity);
  if (uint64_t(info.st_size) != kvOffset(head) + head.kv_bytes)
    return fail(SPARKC_FORMAT, "%s: truncated: %llu bytes of %llu", path,
                (unsigned long long)info.st_size,
                (unsigned long long)(kvOffset(head) + head.kv_bytes));

  std::vector<int32_t> tokens(head.n_tokens);
  std::vector<uint64_t> slots(head.n_slots);
  std::vector<uint8_t> block(blockBytes);
  Memory cache;
  if (Failure failure = cache.allocate(head.kv_bytes, "a KV cache"))
    return failure;
  if (!readAt(file.fd, tokens.data(), tokens.size() * 4, sizeof head) ||
      !readAt(file.fd, slots.data(), slots.size() * 8,
              sizeof head + tokens.size() * 4))
    return failErrno("%s: cannot read", path);
  Hash64Stream hash;
  hash.update(tokens.data(), tokens.size() * 4);
  hash.update(slots.data(), slots.size() * 8);
  for (uint64_t at = 0; at < head.kv_bytes; at += blockBytes) {
    size_t n = std::min<uint64_t>(blockBytes, head.kv_bytes - at);
    if (!readAt(file.fd, block.data(), n, kvOffset(head) + at))
      return failErrno("%s: cannot read", path);
    hash.update(block.data(), n);
    if (!isZero(block.data(), n))
      memcpy(cache.data() + at, block.data(), n);
  }
  if (hash.value() != head.body_hash)
    return fail(SPARKC_CORRUPT, "%s: contents do not match their checksum",
                path);
  const uint32_t vocab = model->descriptor().vocab;
  for (int32_t token : tokens)
    if (token < 0 || uint32_t(token) >= vocab)
      return fail(SPARKC_FORMAT, "%s: token %d is outside the vocabulary", path,
                  token);
  history.swap(tokens);
  ring.swap(slots);
  kv.swap(cache);
  ctx.kv = kv.data();
  return success();
}
