//===- QuantizedGemmTest.cpp - Integer block kernels by definition --------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each line of the table of block kernels that reads an integer layout is
// compiled for the CPUs whose instruction sets get it, and run on random and
// extreme tiles, of all counts, by quads of tokens, of many counts. Every lane of
// every token must have the bits of referenceDot. Tiles, activations and results
// end where no memory is: nothing is read or written past them. Tile
// instructions run where the processor, or the emulator that is preloaded, has
// them.
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/Machine.h"
#include "test/unit/kernels/QuantizedOperands.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {

using Case = KernelCase<BlockKernel>;

/// What a generated function is given.
struct Call {
  const void *tiles;
  int64_t count;
  const void *x;
  int64_t quads;
};

/// A K longer than a chunk, and of the others those that differ.
std::vector<Shape> gemmShapes(Layout layout, bool amx) {
  if (!isPlain(scaleForm(layout))) {
    int64_t group = usualGroup(layout);
    return {{712, group, group}, {1064, group, 16}, {1, group, group},
            {96, group, group}};
  }
  std::vector<Shape> shapes = {{712, 64, 64}, {1064, 128, 32}, {1, 32, 32},
                               {50, 64, 64},  {96, 128, 64},   {584, 32, 32}};
  if (amx) // activations by twice what a tile has
    shapes.insert(shapes.end(),
                  {{130, 128, 128}, {96, 128, 128}, {640, 128, 128}});
  else // tiles take activations by 32 at least
    shapes.push_back({1064, 64, 16});
  return shapes;
}

/// A token's activation into its lane of a quad, as !step.block says.
void put(const Operands &o, int64_t token, const QuadLayout &quad,
         uint8_t *quads) {
  uint8_t *to = quads + token / kQuad * quad.bytes + token % kQuad * 4;
  for (int64_t i = 0; i < 4 * quad.words; ++i)
    to[i / 4 * 16 + i % 4] = uint8_t(o.activations()[i] + 128);
  for (int64_t g = 0; g < o.layout.groups; ++g) {
    int32_t sum = -o.sums()[g] & 0xffff;
    std::memcpy(to + quad.scales + 16 * g, &o.scales()[g], 4);
    std::memcpy(to + quad.sums + 16 * g, &sum, 4);
  }
}

class QuantizedGemm : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    const Case &c = GetParam();
    auto target = resolveTarget(c.cpu);
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    const bool amx = target->isa == SPARKC_ISA_AMX;
    if (amx) // all that the emulator's hosts have besides
      target->features = "+avx512vnni,+amx-tile,+amx-int8";
    if (!(amx ? runsVnni() && runsAmx() : hostRuns(*target)))
      GTEST_SKIP() << "this host lacks features of " << c.cpu;
    for (const Shape &shape : shapes())
      object.add(shape.name(), [&](Emitter &e, mlir::Value call, mlir::Value,
                                   mlir::Value out) {
        auto field = [&](mlir::Type type, size_t offset) {
          return e.load(type, e.at(call, int64_t(offset)));
        };
        c.kernel->build(e, {field(e.ptr(), offsetof(Call, tiles)),
                            field(e.i64(), offsetof(Call, count)),
                            field(e.ptr(), offsetof(Call, x)),
                            field(e.i64(), offsetof(Call, quads)), out,
                            rowBytes(), shape.cols, shape.group, shape.xGroup});
      });
    ASSERT_EQ(object.compile(*target), "");
  }

  Layout layout() const { return *layoutFromName(GetParam().kernel->layout); }
  std::vector<Shape> shapes() const {
    return gemmShapes(layout(), GetParam().kernel->isa == SPARKC_ISA_AMX);
  }
  int64_t mostTiles() const { return GetParam().kernel->tiles; }
  /// Bytes between the results of two tokens.
  int64_t rowBytes() const { return 64 * mostTiles() + 64; }

  void check(const Block &block, const Shape &shape, int64_t count,
             int64_t quads) {
    KernelFn *kernel = object.get(shape.name());
    ASSERT_NE(kernel, nullptr);
    PackedMatrix m =
        PackedMatrix::plain(layout(), 16, shape.cols, shape.group);
    const int64_t bytes = m.tileBytes(), row = rowBytes();
    const int64_t tokens = quads * kQuad;
    const BlockKernel &entry = *GetParam().kernel;
    const int64_t quadBytes = entry.quadBytes(shape.cols, shape.xGroup);
    GuardedBytes tiles(count * bytes), x(quads * quadBytes),
        out(tokens * row - 64); // written for all tiles of a call
    std::vector<std::unique_ptr<Operands>> operands;
    for (int64_t i = 0; i < std::max(tokens, count); ++i) {
      operands.push_back(std::make_unique<Operands>(m, shape));
      fill(block, m, shape, kTileRows, rng, *operands[i]);
      if (i < tokens && entry.byToken)
        std::memcpy(x.data() + i * quadBytes / kQuad, operands[i]->x.data(),
                    operands[i]->x.size());
      else if (i < tokens)
        put(*operands[i], i, QuadLayout(shape.cols, shape.xGroup), x.data());
      if (i < count)
        std::memcpy(tiles.data() + i * bytes, operands[i]->tile.data(), bytes);
    }
    std::memset(out.data(), 0xff, out.size());
    Call call = {tiles.data(), count, x.data(), quads};
    kernel(&call, nullptr, out.data());
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t at = 0; at < count * kTileRows; ++at) {
        int64_t tile = at / kTileRows, lane = at % kTileRows;
        float got = out.as<float>(t * row)[at];
        float want = referenceDot(m, tiles.data() + tile * bytes, lane,
                                  operands[t]->activations(),
                                  operands[t]->scales(), shape.xGroup);
        ASSERT_TRUE(sameFloat(got, want))
            << block.name << ", " << shape.name() << ", " << count
            << " tiles, token " << t << " of " << tokens << ", tile " << tile
            << ", lane " << lane << ": " << got << ", expected " << want;
      }
  }

  KernelObject object;
  std::mt19937 rng{11};
};

} // namespace

TEST_P(QuantizedGemm, HasTheBitsOfTheDefinition) {
  for (const Shape &shape : shapes())
    for (const Block &block : blocks())
      ASSERT_NO_FATAL_FAILURE(check(block, shape, mostTiles(), 2));
  // All counts of tiles, and of tokens up to what a kernel takes at a time.
  const bool amx = GetParam().kernel->isa == SPARKC_ISA_AMX;
  std::vector<int64_t> counts = {1, 3};
  if (amx)
    counts = {1, 3, 4, 5, 7, 8, 9, 16, 17, 32};
  const Block &random = blocks()[0];
  for (int64_t count = 1; count <= mostTiles(); ++count)
    for (int64_t quads : counts)
      ASSERT_NO_FATAL_FAILURE(check(random, shapes()[3], count, quads));
  if (amx)
    for (const Shape &shape : shapes())
      ASSERT_NO_FATAL_FAILURE(check(random, shape, mostTiles(), 9));
}

INSTANTIATE_TEST_SUITE_P(Table, QuantizedGemm,
                         testing::ValuesIn(quantizedCases(blockKernels())),
                         [](const auto &info) { return info.param.name(); });
