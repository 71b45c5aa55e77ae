//===- Ceiling.h - How fast this machine reads memory -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_BENCH_CEILING_H
#define SPARKC_TOOLS_BENCH_CEILING_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sparkc::bench {

/// Anonymous memory, written once, for measuring where the weights are too
/// small to, or sit in other pages. `hugePages` asks for 2 MiB pages.
class ReadBuffer {
public:
  ReadBuffer() = default;
  ReadBuffer(const ReadBuffer &) = delete;
  ReadBuffer &operator=(const ReadBuffer &) = delete;
  ~ReadBuffer();

  /// False if the system has no memory.
  bool allocate(size_t bytes, bool hugePages);
  const uint8_t *data() const { return start; }
  size_t bytes() const { return length; }

private:
  uint8_t *start = nullptr;
  size_t length = 0;
};

/// A way of reading a share of memory once.
struct ReadPattern {
  unsigned streams;  ///< places read from in turn: 1, 2, 4 or 8
  unsigned prefetch; ///< bytes ahead of each stream; 0: left to the processor
  unsigned block;    ///< threads take turns in blocks of bytes; 0: halves
  std::string name() const;
};

struct ReadRate {
  double gbps = 0; ///< 1e9 bytes a second, of the fastest pass
  ReadPattern pattern = {};
  /// Seconds for 1e9 bytes, the mean of the passes of each of readPatterns().
  std::vector<double> meanSeconds;
};

/// Reads [data, data + bytes) by n threads and says how fast the best of
/// several patterns was. Each reads the first GiB at most, `passes` times: give
/// it memory much larger than the caches. 0 (and infinite seconds) if there are
/// fewer than 16 KiB a thread. Loads are of 64 bytes with AVX-512, of 32 with
/// AVX2, else of 16.
ReadRate readCeiling(const uint8_t *data, size_t bytes, uint32_t threads,
                     unsigned passes = 2);

/// One pass by one pattern: 1e9 bytes a second.
double readPass(const uint8_t *data, size_t bytes, uint32_t threads,
                const ReadPattern &pattern);

/// The patterns that readCeiling tries.
const std::vector<ReadPattern> &readPatterns();

/// Exclusive or of all bytes' 64-bit words, read by one thread by a pattern:
/// what shows that a pattern reads everything once. For tests.
uint64_t readOnce(const uint8_t *data, size_t bytes,
                  const ReadPattern &pattern);

} // namespace sparkc::bench

#endif // SPARKC_TOOLS_BENCH_CEILING_H
