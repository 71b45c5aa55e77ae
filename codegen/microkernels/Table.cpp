//===- Table.cpp - All kernels --------------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/Kernels.h"
#include "sparkc_abi.h"

using namespace mlir;
using namespace sparkc;

static constexpr std::pair<StringLiteral, unsigned> isas[] = {
    {"avx2", SPARKC_ISA_AVX2},     {"avxvnni", SPARKC_ISA_AVXVNNI},
    {"avx512", SPARKC_ISA_AVX512}, {"avx512vnni", SPARKC_ISA_AVX512VNNI},
    {"amx", SPARKC_ISA_AMX},
};

std::optional<unsigned> sparkc::isaFromName(StringRef name) {
  for (auto &[known, isa] : isas)
    if (name == known)
      return isa;
  return std::nullopt;
}

StringRef sparkc::isaName(unsigned isa) {
  for (auto &[name, known] : isas)
    if (isa == known)
      return name;
  return "unknown";
}

ArrayRef<TileKernel> sparkc::tileKernels() {
  static const SmallVector<TileKernel> table = [] {
    SmallVector<TileKernel> all(floatTileKernels());
    llvm::append_range(all, quantizedTileKernels());
    return all;
  }();
  return table;
}

ArrayRef<BlockKernel> sparkc::blockKernels() {
  static const SmallVector<BlockKernel> table = [] {
    SmallVector<BlockKernel> all(floatBlockKernels());
    llvm::append_range(all, quantizedBlockKernels());
    llvm::append_range(all, amxBlockKernels());
    return all;
  }();
  return table;
}

template <typename Kernel>
static const Kernel *find(ArrayRef<Kernel> table, StringRef name) {
  for (const Kernel &kernel : table)
    if (name == kernel.name)
      return &kernel;
  return nullptr;
}

/// AVX-512 machines without VNNI have no AVX-VNNI either.
static bool runsOn(unsigned kernel, unsigned machine) {
  return machine >= kernel &&
         !(machine == SPARKC_ISA_AVX512 && kernel == SPARKC_ISA_AVXVNNI);
}

template <typename Kernel>
static const Kernel *select(ArrayRef<Kernel> table, StringRef layout,
                            unsigned isa, unsigned features = 0) {
  const Kernel *best = nullptr;
  for (const Kernel &kernel : table)
    if (layout == kernel.layout && runsOn(kernel.isa, isa) &&
        !(kernel.features & ~features))
      best = &kernel;
  return best;
}

const TileKernel *sparkc::findTileKernel(StringRef name) {
  if (const TileKernel *kernel = find(tileKernels(), name))
    return kernel;
  return find(pairTileKernels(), name);
}
const TileKernel *sparkc::selectTileKernel(StringRef layout, unsigned isa) {
  return select(tileKernels(), layout, isa);
}
const TileKernel *sparkc::selectPairTileKernel(StringRef layout, unsigned isa,
                                               unsigned features) {
  return select(pairTileKernels(), layout, isa, features);
}
const BlockKernel *sparkc::findBlockKernel(StringRef name) {
  for (ArrayRef<BlockKernel> table : {blockKernels(), pairBlockKernels()})
    if (const BlockKernel *kernel = find(table, name))
      return kernel;
  return find(hostBlockKernels(), name);
}
const BlockKernel *sparkc::selectBlockKernel(StringRef layout, unsigned isa) {
  return select(blockKernels(), layout, isa);
}
const BlockKernel *sparkc::selectPairBlockKernel(StringRef layout, unsigned isa,
                                                 unsigned features) {
  return select(pairBlockKernels(), layout, isa, features);
}
const BlockKernel *sparkc::selectHostBlockKernel(StringRef layout) {
  return select(hostBlockKernels(), layout, SPARKC_ISA_AVX2);
}
