//===- BytePairs.h - Byte-pair merging --------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Merging the bytes of a piece into tokens: again and again the pair of
/// neighbours with the lowest rank, the leftmost of equals, becomes one token.
/// A queue of candidates makes that O(n log n) for a piece of n bytes.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_BYTEPAIRS_H
#define SPARKC_RUNTIME_TEXT_BYTEPAIRS_H

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sparkc {

/// Which pairs of tokens merge: a hash table with open addressing.
class MergeTable {
public:
  struct Merge {
    uint32_t left, right;
    uint32_t rank;
    uint32_t result;
  };

  /// Makes room for `count` merges; drops what was there.
  void reserve(size_t count);

  /// Adds a merge, or replaces the one of the same pair. At most as many
  /// distinct pairs as were reserved.
  void insert(const Merge &merge);

  /// The merge of a pair, or null.
  const Merge *find(uint32_t left, uint32_t right) const;

private:
  size_t slotOf(uint32_t left, uint32_t right) const;

  std::vector<Merge> slots; ///< a power of two; rank UINT32_MAX: free
  unsigned shift = 0;
};

/// Memory that merging needs, kept from piece to piece.
struct MergeScratch {
  struct Symbol {
    uint32_t token;
    int32_t previous, next; ///< index of the neighbour, or -1
  };
  struct Candidate {
    uint64_t order; ///< rank, then position
    uint32_t left, right, result;
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> queue;
};

/// Appends to `ids` the tokens of `piece` (shorter than 2^31 bytes), given the
/// token of each byte.
void mergeBytes(std::string_view piece,
                const std::array<uint32_t, 256> &byteTokens,
                const MergeTable &merges, MergeScratch &scratch,
                std::vector<int32_t> &ids);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_BYTEPAIRS_H
