//===- Hash.cpp - The two checksums of our files --------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Hash.h"

#include <cstring>
#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace sparkc;

uint64_t sparkc::hash64(const void *data, size_t bytes) {
  return XXH3_64bits(data, bytes);
}

void sparkc::hash128(const void *data, size_t bytes, uint8_t digest[16]) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
  memcpy(digest, canonical.digest, 16);
}

Hash64Stream::Hash64Stream() : state(XXH3_createState()) {
  if (!state)
    throw std::bad_alloc();
  XXH3_64bits_reset(static_cast<XXH3_state_t *>(state));
}

Hash64Stream::~Hash64Stream() {
  XXH3_freeState(static_cast<XXH3_state_t *>(state));
}

void Hash64Stream::update(const void *data, size_t bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t *>(state), data, bytes);
}

uint64_t Hash64Stream::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t *>(state));
}
