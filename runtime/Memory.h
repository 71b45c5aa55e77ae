//===- Memory.h - Zeroed memory of a session --------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_MEMORY_H
#define SPARKC_RUNTIME_MEMORY_H

#include "runtime/Failure.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace sparkc {

/// Anonymous zeroed memory, aligned to a page, from 2 MiB on to 2 MiB and
/// advised to be huge pages. Pages become resident when first written.
class Memory {
public:
  Memory() = default;
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory();

  /// `what` names the memory in the message.
  Failure allocate(uint64_t bytes, const char *what);
  void swap(Memory &other) {
    std::swap(start, other.start);
    std::swap(length, other.length);
  }

  uint8_t *data() const { return start; }
  size_t bytes() const { return length; } ///< as asked for

private:
  uint8_t *start = nullptr;
  size_t length = 0;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_MEMORY_H
