//===- SpellingTable.h - From strings to token ids --------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_SPELLINGTABLE_H
#define SPARKC_RUNTIME_TEXT_SPELLINGTABLE_H

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sparkc {

/// A hash table from strings, which it does not own, to token ids. One flat
/// array: a tokenizer asks half a million times while it is built, and each
/// question should miss the cache once.
class SpellingTable {
public:
  /// Makes room for `count` strings; drops what was there.
  void reserve(size_t count) {
    unsigned bits = 4;
    while ((size_t(1) << bits) < count * 2)
      ++bits;
    slots.assign(size_t(1) << bits, Slot());
  }

  /// Adds a string; false if it is there already. At most as many as were
  /// reserved.
  bool insert(std::string_view text, uint32_t id) {
    Slot &slot = slots[slotOf(text)];
    if (slot.text.data())
      return false;
    slot = {text, hashOf(text), id};
    return true;
  }

  /// The id of a string, or null.
  const uint32_t *find(std::string_view text) const {
    const Slot &slot = slots[slotOf(text)];
    return slot.text.data() ? &slot.id : nullptr;
  }

private:
  struct Slot {
    std::string_view text; ///< no data: free
    uint32_t hash = 0;
    uint32_t id = 0;
  };

  /// FNV-1a.
  static uint32_t hashOf(std::string_view text) {
    uint32_t hash = 2166136261u;
    for (char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
  }

  size_t slotOf(std::string_view text) const {
    const uint32_t hash = hashOf(text);
    const size_t mask = slots.size() - 1;
    size_t at = (hash ^ hash >> 15) & mask;
    while (slots[at].text.data() &&
           (slots[at].hash != hash || slots[at].text != text))
      at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot> slots;
};

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_SPELLINGTABLE_H
