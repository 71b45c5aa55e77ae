//===- Hash.h - The two checksums of our files ------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_HASH_H
#define SPARKC_RUNTIME_HASH_H

#include <cstddef>
#include <cstdint>

namespace sparkc {

/// XXH3-64, seed 0.
uint64_t hash64(const void *data, size_t bytes);

/// XXH3-128, seed 0, in its canonical (big-endian) form.
void hash128(const void *data, size_t bytes, uint8_t digest[16]);

/// XXH3-64 of a stream of parts: the same value as of their concatenation.
class Hash64Stream {
public:
  Hash64Stream();
  ~Hash64Stream();
  Hash64Stream(const Hash64Stream &) = delete;
  Hash64Stream &operator=(const Hash64Stream &) = delete;
  void update(const void *data, size_t bytes);
  uint64_t value() const;

private:
  void *state;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_HASH_H
