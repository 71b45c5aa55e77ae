//===- RingMap.h - Which positions a sliding layer's ring still holds *- C++
//-*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_RINGMAP_H
#define SPARKC_RUNTIME_RINGMAP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparkc {

/// Mirrors the ring of a sliding layer: slot q % R holds position q until a
/// later position of the same slot is written. After a rewind, slots that the
/// forgotten positions took stay taken: those older positions are gone, even
/// though the ring is long enough for the window. One record serves all
/// sliding layers, since they are written together.
class RingMap {
public:
  /// `positions` R >= window, or R == 0 if the model has no sliding layer.
  void init(uint32_t positions, uint32_t window) {
    slots.assign(positions, 0);
    keys = window;
  }

  void clear() { slots.assign(slots.size(), 0); }

  /// Positions [begin, begin + n) were written, in order.
  void wrote(uint64_t begin, uint64_t n) {
    if (!slots.empty())
      for (uint64_t q = begin; q < begin + n; ++q)
        slots[q % slots.size()] = q + 1;
  }

  /// True if a step at `position` finds the keys of its window before it:
  /// [max(0, position - window + 1), position - 1].
  bool serves(uint64_t position) const {
    if (slots.empty())
      return true;
    uint64_t first = position >= keys ? position - keys + 1 : 0;
    for (uint64_t q = first; q < position; ++q)
      if (slots[q % slots.size()] != q + 1)
        return false;
    return true;
  }

  /// Position + 1 that each slot holds, 0 if none: for a saved session.
  const std::vector<uint64_t> &contents() const { return slots; }
  void swap(std::vector<uint64_t> &contents) { slots.swap(contents); }

private:
  std::vector<uint64_t> slots;
  uint32_t keys = 0;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_RINGMAP_H
