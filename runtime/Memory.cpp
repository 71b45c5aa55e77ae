//===- Memory.cpp - Zeroed memory of a session ----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Memory.h"

#include <algorithm>
#include <sys/mman.h>

using namespace sparkc;

Memory::~Memory() {
  if (start)
    munmap(start, std::max<size_t>(length, 1));
}

Failure Memory::allocate(uint64_t bytes, const char *what) {
  constexpr size_t huge = size_t(2) << 20;
  const size_t size = std::max<uint64_t>(bytes, 1);
  const size_t slack = size >= huge ? huge : 0;
  void *range = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED)
    return fail(SPARKC_OUT_OF_MEMORY, "no memory for %s of %llu bytes", what,
                (unsigned long long)bytes);
  uint8_t *base = static_cast<uint8_t *>(range);
  if (slack) {
    // Cut the mapping to its 2 MiB aligned part.
    constexpr size_t page = 4096;
    uintptr_t address = reinterpret_cast<uintptr_t>(base);
    size_t before = (huge - address % huge) % huge;
    size_t kept = (size + page - 1) / page * page;
    size_t whole = (size + slack + page - 1) / page * page;
    if (before)
      munmap(base, before);
    if (whole > before + kept)
      munmap(base + before + kept, whole - before - kept);
    base += before;
    madvise(base, size, MADV_HUGEPAGE); // best effort
  }
  start = base;
  length = bytes;
  return success();
}
