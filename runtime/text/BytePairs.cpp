//===- BytePairs.cpp - Byte-pair merging ----------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/BytePairs.h"

#include <algorithm>

using namespace sparkc;

void MergeTable::reserve(size_t count) {
  unsigned bits = 4;
  while ((size_t(1) << bits) < count * 2)
    ++bits;
  slots.assign(size_t(1) << bits, Merge{0, 0, UINT32_MAX, 0});
  shift = 64 - bits;
}

size_t MergeTable::slotOf(uint32_t left, uint32_t right) const {
  uint64_t key = uint64_t(left) << 32 | right;
  key ^= key >> 29;
  size_t slot = static_cast<size_t>(key * 0x9e3779b97f4a7c15u >> shift);
  while (slots[slot].rank != UINT32_MAX &&
         (slots[slot].left != left || slots[slot].right != right))
    slot = (slot + 1) & (slots.size() - 1);
  return slot;
}

void MergeTable::insert(const Merge &merge) {
  slots[slotOf(merge.left, merge.right)] = merge;
}

const MergeTable::Merge *MergeTable::find(uint32_t left, uint32_t right) const {
  const Merge &merge = slots[slotOf(left, right)];
  return merge.rank == UINT32_MAX ? nullptr : &merge;
}

namespace {
struct ComesLater {
  bool operator()(const MergeScratch::Candidate &a,
                  const MergeScratch::Candidate &b) const {
    return a.order > b.order;
  }
};
} // namespace

void sparkc::mergeBytes(std::string_view piece,
                        const std::array<uint32_t, 256> &byteTokens,
                        const MergeTable &merges, MergeScratch &scratch,
                        std::vector<int32_t> &ids) {
  auto &symbols = scratch.symbols;
  auto &queue = scratch.queue;
  const auto size = static_cast<int32_t>(piece.size());
  symbols.resize(piece.size());
  for (int32_t i = 0; i < size; ++i)
    symbols[i] = {byteTokens[static_cast<unsigned char>(piece[i])], i - 1,
                  i + 1 < size ? i + 1 : -1};

  auto candidate = [&](int32_t at, MergeScratch::Candidate &out) {
    int32_t next = symbols[at].next;
    if (next < 0)
      return false;
    const MergeTable::Merge *merge =
        merges.find(symbols[at].token, symbols[next].token);
    if (!merge)
      return false;
    out = {uint64_t(merge->rank) << 32 | uint32_t(at), merge->left,
           merge->right, merge->result};
    return true;
  };
  auto push = [&](int32_t at) {
    MergeScratch::Candidate c;
    if (at < 0 || !candidate(at, c))
      return;
    queue.push_back(c);
    std::push_heap(queue.begin(), queue.end(), ComesLater());
  };

  queue.clear();
  MergeScratch::Candidate c;
  for (int32_t i = 0; i + 1 < size; ++i)
    if (candidate(i, c))
      queue.push_back(c);
  std::make_heap(queue.begin(), queue.end(), ComesLater());

  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), ComesLater());
    c = queue.back();
    queue.pop_back();
    const auto at = static_cast<int32_t>(c.order & 0xffffffffu);
    // A candidate is stale if either of its tokens was merged since. A symbol
    // that was taken into the one before it keeps its token, but loses its
    // next neighbour.
    const int32_t next = symbols[at].next;
    if (next < 0 || symbols[at].token != c.left ||
        symbols[next].token != c.right)
      continue;
    const int32_t after = symbols[next].next;
    symbols[at].token = c.result;
    symbols[at].next = after;
    symbols[next].next = -1;
    if (after >= 0)
      symbols[after].previous = at;
    push(symbols[at].previous);
    push(at);
  }
  for (int32_t at = size ? 0 : -1; at >= 0; at = symbols[at].next)
    ids.push_back(static_cast<int32_t>(symbols[at].token));
}
