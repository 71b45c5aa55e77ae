//===- CacheTest.cpp - A KV cache of int8 ---------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// emitCacheWrite against the definition in #step.cache and step.attention, byte
// by byte; emitAttention over an int8 cache against itself over the same values
// in floats, bit by bit; on each instruction set.
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Half.h"
#include "test/unit/kernels/KernelObject.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

using namespace sparkc;
using namespace sparkc::test;

namespace {

constexpr int64_t kKVHeads = 2;
constexpr int64_t kPositions = 128;

//===----------------------------------------------------------------------===//
// The layout, written down once more
//===----------------------------------------------------------------------===//

struct Int8Cache {
  explicit Int8Cache(int64_t dim)
      : dim(dim), groups((dim + 15) / 16), keyBytes(dim + 2 * groups),
        valueBytes(18 * groups),
        memory(kKVHeads * kPositions * (keyBytes + valueBytes)) {}

  int64_t group(int64_t head, int64_t position, int64_t d) const {
    return head * kPositions * keyBytes + position / 16 * 16 * keyBytes +
           d / 16 * (32 + 256);
  }
  int64_t row(int64_t head, int64_t position) const {
    return kKVHeads * kPositions * keyBytes +
           (head * kPositions + position) * valueBytes;
  }
  uint16_t &keyScale(int64_t head, int64_t position, int64_t d) {
    return memory.as<uint16_t>(group(head, position, d))[position % 16];
  }
  int8_t &key(int64_t head, int64_t position, int64_t d) {
    return memory.as<int8_t>(group(head, position, d) +
                             32)[d % 16 * 16 + position % 16];
  }
  uint16_t &valueScale(int64_t head, int64_t position, int64_t d) {
    return memory.as<uint16_t>(row(head, position) + 16 * groups)[d / 16];
  }
  int8_t &value(int64_t head, int64_t position, int64_t d) {
    return memory.as<int8_t>(row(head, position))[d];
  }

  int64_t dim, groups, keyBytes, valueBytes;
  GuardedBytes memory;
};

/// Up to 16 dims that share a scale.
struct CacheGroup {
  uint16_t scale;
  std::vector<int8_t> codes;
};
CacheGroup inCache(const float *x, int64_t dims) {
  float largest = 0;
  for (int64_t i = 0; i < dims; ++i)
    largest = std::max(largest, std::fabs(x[i]));
  CacheGroup group;
  group.scale = f16FromFloat(std::min(largest / 127.0f, 65504.0f));
  float scale = floatFromF16(group.scale);
  for (int64_t i = 0; i < dims; ++i) {
    float code = scale == 0 ? 0 : std::nearbyint(x[i] / scale); // ties to even
    group.codes.push_back(std::clamp(code, -127.0f, 127.0f));
  }
  return group;
}

step::CacheAttr cacheOf(Emitter &e, int64_t dim, mlir::Type element,
                        int64_t ring) {
  e.b.getContext()->loadDialect<step::StepDialect>();
  return step::CacheAttr::get(e.b.getContext(), kKVHeads, dim, ring, element);
}

class Targets : public testing::TestWithParam<const char *> {
protected:
  void compile(llvm::function_ref<void()> addKernels) {
    auto target = resolveTarget(GetParam());
    ASSERT_TRUE(bool(target)) << messageOf(target.takeError());
    if (!hostRuns(*target))
      GTEST_SKIP() << "this host lacks features of " << GetParam();
    addKernels();
    ASSERT_EQ(object.compile(*target), "");
  }

  /// Adds a kernel whose arguments are ctx, the KV cache and an arena.
  void add(const std::string &name,
           llvm::function_ref<void(Emitter &e, mlir::Value arena)> body) {
    object.add(name, [&](Emitter &e, mlir::Value ctx, mlir::Value kv,
                         mlir::Value arena) {
      e.ctx = ctx;
      e.kv = kv;
      e.tid = e.c(0);
      e.n = e.c(1);
      body(e, arena);
    });
  }

  KernelObject object;
  std::mt19937 rng{5};
};

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

constexpr int64_t kDims[] = {1, 6, 8, 16, 24, 40, 256};
constexpr int64_t kHead = 1;

class CacheWrite : public Targets {
protected:
  void SetUp() override {
    compile([&] {
      for (int64_t dim : kDims)
        add("d" + std::to_string(dim), [&](Emitter &e, mlir::Value arena) {
          CacheAddress cache(e, cacheOf(e, dim, e.i8(), kPositions));
          emitCacheWrite(cache, e.c(kHead), cache.slotOf(e.pos()),
                         {arena, e.at(arena, dim * 4)});
        });
    });
  }

  /// Writes a key value(0 ..) and a value value(dim ..) at `position`, which
  /// must change the bytes that `expect` changes and no others.
  template <typename Value, typename Expect>
  void write(int64_t dim, uint64_t position, Value value, Expect expect) {
    Int8Cache cache(dim), want(dim);
    for (size_t i = 0; i < cache.memory.size(); ++i)
      cache.memory.data()[i] = want.memory.data()[i] = rng();
    GuardedBytes token(2 * dim * 4); // key, value, nothing behind
    for (int64_t i = 0; i < 2 * dim; ++i)
      token.as<float>()[i] = value(i);
    sparkc_ctx ctx = {};
    ctx.pos = position;
    object.get("d" + std::to_string(dim))(&ctx, cache.memory.data(),
                                          token.data());
    expect(want, cache, token.as<float>());
    for (size_t i = 0; i < cache.memory.size(); ++i)
      ASSERT_EQ(cache.memory.data()[i], want.memory.data()[i])
          << "head_dim " << dim << ", position " << position << ", byte " << i;
  }

  template <typename Value> void same(const char *what, Value value) {
    SCOPED_TRACE(what);
    for (int64_t dim : kDims)
      for (uint64_t position : {0, 7, 15, 16, 77, 127, 128, 1000})
        write(
            dim, position, value, [&](Int8Cache &want, Int8Cache &, float *x) {
              int64_t slot = position % kPositions;
              for (int64_t d = 0; d < dim; d += 16) {
                int64_t dims = std::min<int64_t>(16, dim - d);
                CacheGroup key = inCache(x + d, dims);
                CacheGroup row = inCache(x + dim + d, dims);
                want.keyScale(kHead, slot, d) = key.scale;
                want.valueScale(kHead, slot, d) = row.scale;
                for (int64_t i = 0; i < 16; ++i)
                  want.value(kHead, slot, d + i) = i < dims ? row.codes[i] : 0;
                for (int64_t i = 0; i < dims; ++i)
                  want.key(kHead, slot, d + i) = key.codes[i];
              }
            });
  }
};

TEST_P(CacheWrite, Random) {
  std::normal_distribution<float> normal;
  same("normal", [&](int64_t) { return normal(rng); });
  same("many magnitudes",
       [&](int64_t) { return std::ldexp(normal(rng), int(rng() % 40) - 20); });
}

TEST_P(CacheWrite, TiesGoToEven) {
  // The largest is 127, so the scale is 1: halves are ties.
  same("halves", [&](int64_t i) {
    return i % 8 == 5 ? 127.0f : float(int(rng() % 507) - 253) / 2;
  });
}

TEST_P(CacheWrite, ZerosAndTinyValues) {
  same("zeros", [](int64_t) { return 0.0f; });
  same("negative zeros", [](int64_t) { return -0.0f; });
  same("float denormals", [&](int64_t) {
    return floatFromBits(rng() % 0x800000 | (rng() % 2) << 31);
  });
  // 127 times the smallest f16, half of which is 0 and a little more is not.
  for (float largest :
       {127 * 0x1p-24f, 127 * 0x1p-25f, std::nextafter(127 * 0x1p-25f, 1.0f)})
    same("smallest scales", [&](int64_t i) {
      return i % 8 == 0 ? largest : largest * (int(rng() % 255) - 127) / 127;
    });
  // Scales that are f16 denormals, whose rounding may need codes beyond 127.
  same("denormal scales", [&](int64_t) {
    return std::ldexp(float(int(rng() % 2001) - 1000) / 1000,
                      int(rng() % 12) - 18);
  });
}

TEST_P(CacheWrite, HugeValuesSaturate) {
  same("around the largest scale", [&](int64_t) {
    return 65504.0f * 127 * (float(int(rng() % 2001) - 1000) / 800);
  });
  same("FLT_MAX", [&](int64_t) { return rng() % 2 ? FLT_MAX : -FLT_MAX; });
}

TEST_P(CacheWrite, InfinityAndNaNReachTheScale) {
  for (float bad : {INFINITY, -INFINITY, float(NAN), -float(NAN)})
    for (int64_t dim : kDims)
      for (int64_t at : {int64_t(0), dim - 1, dim, 2 * dim - 1})
        write(
            dim, 3, [&](int64_t i) { return i == at ? bad : 1.0f; },
            [&](Int8Cache &want, Int8Cache &got, float *) {
              for (int64_t d = 0; d < dim; d += 16) {
                float key = floatFromF16(got.keyScale(kHead, 3, d));
                float row = floatFromF16(got.valueScale(kHead, 3, d));
                EXPECT_EQ(std::isnan(key), at < dim && at / 16 == d / 16);
                EXPECT_EQ(std::isnan(row),
                          at >= dim && (at - dim) / 16 == d / 16);
              }
              std::memcpy(want.memory.data(), got.memory.data(),
                          got.memory.size());
            });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Window 0: none, and no ring.
struct AttentionShape {
  int64_t dim, group, window;
  std::string name() const {
    return "d" + std::to_string(dim) + "_g" + std::to_string(group) + "_w" +
           std::to_string(window);
  }
};
constexpr AttentionShape kAttentionShapes[] = {
    {6, 1, 0},   {6, 3, 20},   {16, 1, 20},  {24, 2, 0},  {40, 1, 0},
    {40, 9, 20}, {256, 4, 20}, {112, 8, 64}, {256, 1, 1}};

class CacheAttention : public Targets {
protected:
  /// Offsets of an arena, in floats.
  struct Arena {
    explicit Arena(const AttentionShape &s)
        : query(0), key(kKVHeads * s.group * s.dim),
          value(key + kKVHeads * s.dim), partials(value + kKVHeads * s.dim),
          partialFloats(2 * kKVHeads * s.group * step::partialFloats(s.dim)),
          floats(partials + partialFloats) {}
    int64_t query, key, value, partials, partialFloats, floats;
  };

  void SetUp() override {
    compile([&] {
      for (const AttentionShape &shape : kAttentionShapes)
        for (bool quantized : {false, true})
          add(shape.name() + (quantized ? "_i8" : "_f32"),
              [&](Emitter &e, mlir::Value memory) {
                Arena arena(shape);
                auto at = [&](int64_t f) { return e.at(memory, f * 4); };
                auto cache = cacheOf(e, shape.dim, quantized ? e.i8() : e.f32(),
                                     shape.window ? kPositions : 0);
                TokenKV token;
                if (quantized)
                  token = {at(arena.key), at(arena.value)};
                emitAttention(e,
                              {cache, kKVHeads * shape.group, shape.window, 64,
                               1.0f / std::sqrt(float(shape.dim))},
                              at(arena.query), token, at(arena.partials));
              });
    });
  }
};

// int8 is a way to store floats: attention gives the same bits from them.
TEST_P(CacheAttention, IsAttentionOverTheDequantizedValues) {
  std::normal_distribution<float> normal;
  for (const AttentionShape &shape : kAttentionShapes) {
    SCOPED_TRACE(shape.name());
    Arena layout(shape);
    Int8Cache cache(shape.dim);
    int64_t padded = alignTo16(shape.dim);
    int64_t valueArea = kKVHeads * kPositions * shape.dim;
    GuardedBytes floats(4 * (valueArea + kKVHeads * kPositions * padded));
    // Whatever masked lanes hold, it takes no part.
    std::memset(cache.memory.data(), 0xff, cache.memory.size());
    std::memset(floats.data(), 0xff, floats.size());
    GuardedBytes arena(layout.floats * 4), plain(layout.floats * 4);
    // A ring turns over; the context of a full layer does not.
    for (uint64_t pos = 0; pos < (shape.window ? 300 : kPositions); ++pos) {
      for (int64_t i = 0; i < layout.partials; ++i)
        arena.as<float>()[i] = normal(rng);
      std::memcpy(plain.data(), arena.data(), layout.partials * 4);
      sparkc_ctx ctx = {};
      ctx.pos = pos;
      ctx.capacity = kPositions;
      object.get(shape.name() + "_i8")(&ctx, cache.memory.data(), arena.data());
      int64_t slot = pos % kPositions;
      for (int64_t head = 0; head < kKVHeads; ++head)
        for (int64_t d = 0; d < shape.dim; ++d) {
          floats.as<float>()[head * kPositions * shape.dim +
                             slot / 16 * 16 * shape.dim + d * 16 + slot % 16] =
              cache.key(head, slot, d) *
              floatFromF16(cache.keyScale(head, slot, d));
          floats.as<float>()[valueArea + (head * kPositions + slot) * padded +
                             d] = cache.value(head, slot, d) *
                                  floatFromF16(cache.valueScale(head, slot, d));
        }
      object.get(shape.name() + "_f32")(&ctx, floats.data(), plain.data());
      uint64_t first = shape.window && pos >= uint64_t(shape.window)
                           ? (pos - shape.window + 1) / 64
                           : 0;
      int64_t records = (pos / 64 - first + 1) * kKVHeads * shape.group;
      int64_t record = step::partialFloats(shape.dim);
      for (int64_t r = 0; r < records; ++r)
        for (int64_t i = 0; i < record; ++i) {
          // The padding of the dims is what it may be, and behind the maximum
          // and the sum is nothing.
          if ((i >= shape.dim && i < padded) || i >= padded + 2)
            continue;
          int64_t at = layout.partials + r * record + i;
          ASSERT_EQ(arena.as<uint32_t>()[at], plain.as<uint32_t>()[at])
              << "position " << pos << ", record " << r << ", float " << i
              << ": " << arena.as<float>()[at] << ", " << plain.as<float>()[at];
          ASSERT_TRUE(std::isfinite(arena.as<float>()[at]));
        }
    }
  }
}

std::string nameOf(const testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Targets, CacheWrite,
                         testing::Values("x86-64-v3", "x86-64-v4", "native"),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Targets, CacheAttention,
                         testing::Values("x86-64-v3", "x86-64-v4", "native"),
                         nameOf);

} // namespace
