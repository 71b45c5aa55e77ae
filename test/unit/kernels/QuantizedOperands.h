//===- QuantizedOperands.h - What integer kernels are tested on -*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes, and random and extreme tiles and activations for each.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_KERNELS_QUANTIZEDOPERANDS_H
#define SPARKC_TEST_UNIT_KERNELS_QUANTIZEDOPERANDS_H

#include "codegen/weights/QuantizedTile.h"
#include "test/unit/kernels/KernelObject.h"

#include <algorithm>

namespace sparkc::test {

/// CPUs to compile a kernel for so that all it is meant for are covered. The
/// AVX2 bodies also serve AVX-512 machines without VNNI, whose compiler has
/// other registers at hand.
std::vector<std::string> cpusFor(unsigned isa);

/// A kernel of a table and a CPU that runs it.
template <typename Kernel> struct KernelCase {
  const Kernel *kernel;
  std::string cpu;

  std::string name() const {
    std::string text = std::string(kernel->name) + "_on_" + cpu;
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
  }
};

/// Each kernel of the table that reads an integer layout, on each of its CPUs.
template <typename Kernel>
std::vector<KernelCase<Kernel>> quantizedCases(llvm::ArrayRef<Kernel> table) {
  std::vector<KernelCase<Kernel>> cases;
  for (const Kernel &kernel : table)
    if (isQuantized(*layoutFromName(kernel.layout)))
      for (const std::string &cpu : cpusFor(kernel.isa))
        cases.push_back({&kernel, cpu});
  return cases;
}

/// K and groups of one function.
struct Shape {
  int64_t cols, group, xGroup;
  std::string name() const {
    return "k" + std::to_string(cols) + "_g" + std::to_string(group) + "_x" +
           std::to_string(xGroup);
  }
};

/// Batches that are whole, short and absent; K that is no multiple of the
/// group; activations in groups as large as the weights' and smaller.
std::vector<Shape> allShapes(Layout layout);
/// The group that has most of them.
int64_t usualGroup(Layout layout);

/// A tile and the activation it meets.
struct Operands {
  Operands(const PackedMatrix &matrix, const Shape &shape)
      : layout(shape.cols, shape.xGroup), codes(matrix),
        tile(matrix.tileBytes()), x(layout.bytes) {
    std::memset(x.data(), 0, x.size());
  }
  int8_t *activations() const { return x.as<int8_t>(); }
  float *scales() const { return x.as<float>(layout.scales); }
  int32_t *sums() const { return x.as<int32_t>(layout.sums); }

  QVecLayout layout;
  TileCodes codes;
  GuardedBytes tile, x;
};

enum class Fill { Random, Lowest, Highest };

/// What a block is filled with.
struct Block {
  const char *name;
  Fill codes, zeros;
  /// float16 bits; random ones where there are none.
  std::vector<uint16_t> scales;
  /// Activations; random ones where there are none.
  std::vector<int> x;
  std::vector<float> xScales;
};

const std::vector<Block> &blocks();

/// Fills the operands; rows past `rows` are padding.
void fill(const Block &block, const PackedMatrix &m, const Shape &shape,
          unsigned rows, std::mt19937 &rng, Operands &o);

/// The same bits, or both no numbers.
bool sameFloat(float a, float b);

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_KERNELS_QUANTIZEDOPERANDS_H
