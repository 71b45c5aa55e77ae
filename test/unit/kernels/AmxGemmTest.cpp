//===- AmxGemmTest.cpp - Block kernels on tile registers ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of AmxGemm.cpp, and one of AVX-512-VNNI beside them, on tiles and
// tokens of all counts. Every lane of every token must have the bits of
// referenceDot. Tiles, activations and results end where no memory is: nothing
// is read or written past them. Runs with the emulator preloaded.
//
//===----------------------------------------------------------------------===//

#include "codegen/microkernels/AmxGemm.h"
#include "codegen/weights/Half.h"
#include "codegen/weights/QuantizedTile.h"
#include "test/unit/kernels/KernelObject.h"
#include "test/unit/kernels/Machine.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

namespace {

/// What a generated function is given.
struct Call {
  const void *tiles;
  int64_t count;
  const void *x;
  int64_t quads;
};

/// Bytes of a token's results: those of six tiles, as in a macro.
constexpr int64_t kRow = 6 * 64;

struct Shape {
  int64_t cols, group, xGroup;
  std::string name() const {
    return "k" + std::to_string(cols) + "_g" + std::to_string(group) + "_x" +
           std::to_string(xGroup);
  }
};

/// K of one group, of several chunks, of half batches; activations in groups as
/// large as the weights' and smaller.
const Shape shapes[] = {{50, 32, 32},    {96, 32, 32},   {64, 64, 64},
                        {600, 64, 64},   {2880, 64, 64}, {96, 64, 32},
                        {130, 128, 128}, {900, 128, 64}, {1100, 128, 32}};

struct Operands {
  Operands(const PackedMatrix &matrix, const Shape &shape, int64_t tiles,
           int64_t quads, bool extreme, std::mt19937 &rng)
      : m(matrix), shape(shape), quad(shape.cols, shape.xGroup),
        count(tiles), tokens(quads * kQuad),
        tiles(tiles * matrix.tileBytes()), x(quads * quad.bytes),
        f(tokens * kRow) {
    fillTiles(extreme, rng);
    fillTokens(extreme, rng);
    memset(f.data(), 0xff, f.size());
  }

  void fillTiles(bool extreme, std::mt19937 &rng) {
    uint32_t highest = (1u << bitsPerWeight(m.layout)) - 1;
    for (int64_t tile = 0; tile < count; ++tile) {
      TileCodes codes(m);
      for (int64_t g = 0; g < m.groups(); ++g)
        for (int64_t lane = 0; lane < kTileRows; ++lane) {
          int64_t at = kTileRows * g + lane;
          codes.scales[at] = (rng() % 8 + 7) << 10 | (rng() & 0x83ff);
          codes.zeros[at] = extreme ? rng() % 2 * highest
                                    : rng() % (highest + 1);
          for (int64_t c = g * m.group; c < (g + 1) * m.group; ++c)
            codes.codes[kTileRows * c + lane] =
                c >= m.cols ? codes.zeros[at]
                : extreme   ? highest - codes.zeros[at]
                            : rng() % (highest + 1);
        }
      packCodes(m, codes, tiles.data() + tile * m.tileBytes());
    }
  }

  void fillTokens(bool extreme, std::mt19937 &rng) {
    // As emitPut has it: 128 is added to each code, padding included.
    memset(x.data(), 0, x.size());
    for (int64_t q = 0; q < tokens / kQuad; ++q)
      memset(x.data() + q * quad.bytes, 0x80, 16 * quad.words);
    int64_t groups = m.paddedCols() / shape.xGroup;
    for (int64_t t = 0; t < tokens; ++t) {
      uint8_t *own = x.data() + t / kQuad * quad.bytes;
      std::vector<int8_t> values(m.paddedCols());
      std::vector<float> scales(groups);
      for (int64_t c = 0; c < m.cols; ++c) {
        values[c] = extreme ? (t % 2 ? 127 : -127) : int(rng() % 255) - 127;
        own[16 * (c / 4) + 4 * (t % kQuad) + c % 4] = uint8_t(values[c] + 128);
      }
      for (int64_t g = 0; g < groups; ++g) {
        int32_t sum = 0;
        for (int64_t c = g * shape.xGroup; c < (g + 1) * shape.xGroup; ++c)
          sum += values[c];
        sum = -sum & 0xffff;
        scales[g] = std::ldexp(float(rng() % 1000 + 1), -12);
        int64_t at = 16 * g + 4 * (t % kQuad);
        memcpy(own + quad.scales + at, &scales[g], 4);
        memcpy(own + quad.sums + at, &sum, 4);
      }
      activations.push_back(std::move(values));
      activationScales.push_back(std::move(scales));
    }
  }

  const PackedMatrix &m;
  const Shape &shape;
  QuadLayout quad;
  int64_t count, tokens;
  GuardedBytes tiles, x, f;
  std::vector<std::vector<int8_t>> activations;
  std::vector<std::vector<float>> activationScales;
};

class AmxGemm : public testing::TestWithParam<const BlockKernel *> {
protected:
  void SetUp() override {
    const BlockKernel &kernel = *GetParam();
    bool amx = kernel.isa == SPARKC_ISA_AMX;
    auto target = resolveTarget(amx ? "sapphirerapids" : "cascadelake");
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    target->features = amx ? "+avx512vnni,+amx-tile,+amx-int8" : "+avx512vnni";
    if (!(amx ? runsAmx() : runsVnni()))
      GTEST_SKIP() << "this host runs no such code";
    for (const Shape &shape : shapes)
      object.add(shape.name(), [&](Emitter &e, mlir::Value call, mlir::Value,
                                   mlir::Value out) {
        auto field = [&](mlir::Type type, size_t offset) {
          return e.load(type, e.at(call, int64_t(offset)));
        };
        kernel.build(e, {field(e.ptr(), offsetof(Call, tiles)),
                         field(e.i64(), offsetof(Call, count)),
                         field(e.ptr(), offsetof(Call, x)),
                         field(e.i64(), offsetof(Call, quads)), out, kRow,
                         shape.cols, shape.group, shape.xGroup});
      });
    ASSERT_EQ(object.compile(*target), "");
  }

  void check(const Shape &shape, int64_t count, int64_t quads, bool extreme,
             std::mt19937 &rng) {
    PackedMatrix m = PackedMatrix::plain(*layoutFromName(GetParam()->layout),
                                         16, shape.cols, shape.group);
    Operands o(m, shape, count, quads, extreme, rng);
    Call call = {o.tiles.data(), count, o.x.data(), quads};
    object.get(shape.name())(&call, nullptr, o.f.data());
    for (int64_t t = 0; t < o.tokens; ++t)
      for (int64_t tile = 0; tile < count; ++tile)
        for (int64_t lane = 0; lane < kTileRows; ++lane) {
          float want = referenceDot(m, o.tiles.data() + tile * m.tileBytes(),
                                    lane, o.activations[t].data(),
                                    o.activationScales[t].data(), shape.xGroup);
          float got = o.f.as<float>(t * kRow + 64 * tile)[lane];
          ASSERT_EQ(bitsFromFloat(got), bitsFromFloat(want))
              << shape.name() << ", " << count << " tiles, token " << t
              << " of " << o.tokens << ", tile " << tile << ", lane " << lane
              << ": " << got << ", expected " << want;
        }
  }

  KernelObject object;
};

std::vector<const BlockKernel *> kernels() {
  std::vector<const BlockKernel *> found;
  for (const char *name :
       {"gemm_q4_amx", "gemm_q5_amx", "gemm_q6_amx", "gemm_q8_amx",
        "gemm_q4_avx512vnni"})
    found.push_back(findBlockKernel(name));
  return found;
}

} // namespace

TEST_P(AmxGemm, HasTheBitsOfTheDefinition) {
  std::mt19937 rng(3);
  for (const Shape &shape : shapes)
    for (bool extreme : {false, true})
      ASSERT_NO_FATAL_FAILURE(
          check(shape, tilesOfCall(*GetParam()), 9, extreme, rng));
  // All counts of tiles and of tokens.
  for (int64_t count = 1; count <= tilesOfCall(*GetParam()); ++count)
    for (int64_t quads : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 32})
      ASSERT_NO_FATAL_FAILURE(check(shapes[1], count, quads, false, rng));
}

INSTANTIATE_TEST_SUITE_P(Table, AmxGemm, testing::ValuesIn(kernels()),
                         [](const auto &info) {
                           return std::string(info.param->name);
                         });
