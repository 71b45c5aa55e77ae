//===- ExecuteTest.cpp - What tile instructions do ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes the instructions of Instructions.s, by the emulator or by a processor
// that has them, and compares with the manual's definitions, written out anew.
//
//===----------------------------------------------------------------------===//

#include "runtime/Cpu.h"
#include "test/unit/amx-emulator/Instructions.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>
#include <vector>

namespace {

TileFn *const zeros[] = {zero_0, zero_1, zero_2, zero_3,
                         zero_4, zero_5, zero_6, zero_7};
TileFn *const loads[] = {load_0, load_1, load_2, load_3,
                         load_4, load_5, load_6, load_7};
TileFn *const stores[] = {store_0, store_1, store_2, store_3,
                          store_4, store_5, store_6, store_7};

struct alignas(64) Config {
  uint8_t bytes[64] = {};
  explicit Config(uint8_t palette = 1) { bytes[0] = palette; }
  Config &tile(unsigned n, unsigned rows, unsigned rowBytes) {
    bytes[16 + 2 * n] = uint8_t(rowBytes);
    bytes[17 + 2 * n] = uint8_t(rowBytes >> 8);
    bytes[48 + n] = uint8_t(rows);
    return *this;
  }
  Config &all(unsigned rows, unsigned rowBytes) {
    for (unsigned n = 0; n < 8; ++n)
      tile(n, rows, rowBytes);
    return *this;
  }
  void use() { load_config(bytes, 0); }
};

bool isInit() {
  uint8_t now[64], none[64] = {};
  memset(now, 1, sizeof now);
  store_config(now, 0);
  return !memcmp(now, none, sizeof none);
}

using Bytes = std::vector<uint8_t>;

Bytes randomBytes(std::mt19937 &rng, size_t n) {
  Bytes bytes(n);
  for (uint8_t &b : bytes)
    b = uint8_t(rng());
  return bytes;
}

/// Rows of a tile, one behind the other.
Bytes contents(unsigned tile, unsigned rows, unsigned rowBytes) {
  Bytes bytes(rows * rowBytes, 0xee);
  stores[tile](bytes.data(), rowBytes);
  return bytes;
}

// First: the others ask for permission.
TEST(BeforePermission, TilesAreRefused) {
  Config().all(16, 64).use(); // holds no contents
  EXPECT_EXIT(contents(0, 16, 64), testing::KilledBySignal(SIGILL), "");
  release(nullptr, 0);
}

class Execute : public testing::Test {
protected:
  void SetUp() override {
    if (!(sparkc_cpu_query() & SPARKC_CPU_HAS_AMX))
      GTEST_SKIP() << "neither AMX nor, since AVX-512 is missing, its emulator";
    ASSERT_TRUE(sparkc_cpu_permit_amx());
  }
  void TearDown() override { release(nullptr, 0); }
  std::mt19937 rng{11};
};

//===--- Configuration ----------------------------------------------------===//

TEST_F(Execute, ConfigurationIsKept) {
  EXPECT_TRUE(isInit());
  Config config;
  for (unsigned n = 0; n < 8; ++n)
    config.tile(n, n + 1, 64 - 8 * n);
  config.bytes[1] = 3; // start_row
  config.use();
  uint8_t kept[64];
  memset(kept, 1, sizeof kept);
  store_config(kept, 0);
  EXPECT_EQ(memcmp(kept, config.bytes, 64), 0);
  // A failed one does not replace it.
  release(nullptr, 0);
  EXPECT_TRUE(isInit());
  config.use();
  Config(0).use(); // palette 0: INIT
  EXPECT_TRUE(isInit());
}

TEST_F(Execute, ConfigurationOfEveryAddress) {
  uint8_t kept[64];
  config_rip(nullptr, 0);
  store_config(kept, 0);
  EXPECT_EQ(memcmp(kept, some_config, 64), 0);
  alignas(64) uint8_t room[256] = {};
  Config config = Config().tile(2, 7, 20);
  memcpy(room + 8 + 2 * 60, config.bytes, 64);
  config_scaled(room, 60);
  store_config(kept, 0);
  EXPECT_EQ(memcmp(kept, config.bytes, 64), 0);
}

TEST_F(Execute, BadConfigurations) {
  auto dies = [](const Config &config) {
    EXPECT_EXIT(Config(config).use(), testing::KilledBySignal(SIGSEGV), "");
  };
  dies(Config(2));
  dies(Config(255));
  dies(Config().tile(0, 17, 64));
  dies(Config().tile(7, 16, 65));
  dies(Config().tile(7, 16, 256 + 64));
  dies(Config().tile(3, 0, 64));
  dies(Config().tile(3, 16, 0));
  for (unsigned reserved : {2u, 15u, 32u, 47u, 56u, 63u}) {
    Config config;
    config.bytes[reserved] = 1;
    dies(config);
  }
  // Palette 0 wants nothing of the rest.
  Config none(0);
  none.bytes[2] = 1;
  none.tile(0, 200, 200).use();
  EXPECT_TRUE(isInit());
}

TEST_F(Execute, ConfigurationClearsTiles) {
  Config full = Config().all(16, 64);
  full.use();
  Bytes data = randomBytes(rng, 1024);
  for (TileFn *load : loads)
    load(data.data(), 64);
  EXPECT_EQ(contents(7, 16, 64), data);
  full.use();
  for (unsigned n = 0; n < 8; ++n)
    EXPECT_EQ(contents(n, 16, 64), Bytes(1024)) << n;
  loads[2](data.data(), 64);
  release(nullptr, 0);
  full.use();
  EXPECT_EQ(contents(2, 16, 64), Bytes(1024));
}

//===--- Loads and stores -------------------------------------------------===//

TEST_F(Execute, LoadsAndStores) {
  Bytes memory = randomBytes(rng, 16 * 200);
  for (unsigned n = 0; n < 8; ++n)
    for (unsigned rows : {1u, 5u, 16u})
      for (unsigned rowBytes : {4u, 12u, 64u}) {
        Config().tile(n, rows, rowBytes).use();
        loads[n](memory.data(), 200);
        Bytes got = contents(n, rows, rowBytes);
        for (unsigned r = 0; r < rows; ++r)
          ASSERT_EQ(memcmp(&got[r * rowBytes], &memory[200 * r], rowBytes), 0)
              << n << " " << rows << " x " << rowBytes << " row " << r;
        // A store writes its rows and nothing beside them.
        Bytes room(16 * 100, 0xaa), want = room;
        stores[n](room.data(), 100);
        for (unsigned r = 0; r < rows; ++r)
          memcpy(&want[100 * r], &memory[200 * r], rowBytes);
        ASSERT_EQ(room, want);
      }
}

TEST_F(Execute, Strides) {
  Bytes memory = randomBytes(rng, 16 * 64);
  Config().all(16, 64).use();
  loads[4](&memory[15 * 64], -64);
  Bytes got = contents(4, 16, 64);
  for (unsigned r = 0; r < 16; ++r)
    EXPECT_EQ(memcmp(&got[64 * r], &memory[64 * (15 - r)], 64), 0) << r;
  for (auto *same : {load_no_index, load_0}) {
    same(&memory[64], same == load_0 ? 0 : 999);
    got = contents(0, 16, 64);
    for (unsigned r = 0; r < 16; ++r)
      EXPECT_EQ(memcmp(&got[64 * r], &memory[64], 64), 0) << r;
  }
  load_scaled(memory.data(), 16);
  EXPECT_EQ(contents(0, 16, 64), memory);
  load_t1_5(memory.data(), 64);
  EXPECT_EQ(contents(5, 16, 64), memory);
  load_disp8(&memory[0] - 64, 64);
  EXPECT_EQ(contents(0, 16, 64), memory);
  load_disp8_back(&memory[64], 64);
  EXPECT_EQ(contents(0, 16, 64), memory);
  load_high(&memory[128], 32);
  EXPECT_EQ(contents(6, 16, 64), memory);
  loads[3](memory.data(), 64);
  Bytes room(1024);
  store_rsp(room.data(), 64);
  EXPECT_EQ(room, memory);
}

/// An interrupted load goes on at start_row.
TEST_F(Execute, StartRow) {
  Bytes data = randomBytes(rng, 1024);
  Config config = Config().all(16, 64);
  config.bytes[1] = 10;
  config.use();
  loads[1](data.data(), 64);
  Bytes want(1024);
  memcpy(&want[640], &data[640], 1024 - 640);
  EXPECT_EQ(contents(1, 16, 64), want);
  // That load has ended; the next one is whole again.
  loads[1](data.data(), 64);
  EXPECT_EQ(contents(1, 16, 64), data);
}

TEST_F(Execute, Zero) {
  Bytes data = randomBytes(rng, 1024);
  Config().all(16, 64).use();
  for (unsigned n = 0; n < 8; ++n) {
    for (TileFn *load : loads)
      load(data.data(), 64);
    zeros[n](nullptr, 0);
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_EQ(contents(i, 16, 64), i == n ? Bytes(1024) : data) << n << i;
  }
}

TEST_F(Execute, BadUses) {
  Bytes memory(4096);
  auto dies = [&](TileFn *fn, const Config &config) {
    EXPECT_EXIT((Config(config).use(), fn(memory.data(), 64)),
                testing::KilledBySignal(SIGILL), "");
  };
  // No configuration; a tile that has none.
  EXPECT_EXIT(zeros[0](nullptr, 0), testing::KilledBySignal(SIGILL), "");
  EXPECT_EXIT(tdpbssd_012(nullptr, 0), testing::KilledBySignal(SIGILL), "");
  dies(loads[1], Config().tile(0, 16, 64));
  dies(stores[1], Config().tile(0, 16, 64));
  dies(zeros[1], Config().tile(0, 16, 64));
  // Rows that are no whole words; a start row past the end.
  dies(loads[0], Config().tile(0, 16, 62));
  dies(stores[0], Config().tile(0, 16, 63));
  Config late = Config().all(8, 64);
  late.bytes[1] = 8;
  dies(loads[0], late);
  // Products of shapes that do not meet: 0 = 1 * 2.
  auto shapes = [](unsigned m, unsigned n, unsigned m1, unsigned k1,
                   unsigned k2, unsigned n2) {
    return Config().tile(0, m, 4 * n).tile(1, m1, 4 * k1).tile(2, k2, 4 * n2);
  };
  for (TileFn *fn : {tdpbssd_012, tdpbsud_012, tdpbusd_012, tdpbuud_012,
                     tdpbf16ps_012}) {
    dies(fn, shapes(16, 16, 15, 16, 16, 16));
    dies(fn, shapes(16, 16, 16, 16, 16, 15));
    dies(fn, shapes(16, 16, 16, 15, 16, 16));
    dies(fn, shapes(16, 16, 16, 16, 15, 16));
    dies(fn, Config().tile(0, 16, 64).tile(1, 16, 64));
    dies(fn, Config().tile(0, 16, 62).tile(1, 16, 64).tile(2, 16, 62));
  }
  EXPECT_EXIT(undefined(nullptr, 0), testing::KilledBySignal(SIGILL), "");
}

//===--- Products ---------------------------------------------------------===//

/// A product of each kind in three arrangements of tiles {dest, first, second}.
struct Product {
  TileFn *fn[3];
  bool unsigned1, unsigned2;
};
constexpr unsigned arrangements[3][3] = {{0, 1, 2}, {5, 3, 7}, {7, 6, 0}};

/// Loads C, A and B of a shape, runs fn, returns C.
Bytes multiplied(TileFn *fn, const unsigned (&tiles)[3], unsigned m, unsigned n,
                 unsigned k, const Bytes &c, const Bytes &a, const Bytes &b) {
  Config()
      .tile(tiles[0], m, 4 * n)
      .tile(tiles[1], m, 4 * k)
      .tile(tiles[2], k, 4 * n)
      .use();
  loads[tiles[0]](const_cast<uint8_t *>(c.data()), 4 * n);
  loads[tiles[1]](const_cast<uint8_t *>(a.data()), 4 * k);
  loads[tiles[2]](const_cast<uint8_t *>(b.data()), 4 * n);
  fn(nullptr, 0);
  // The sources are as they were.
  EXPECT_EQ(contents(tiles[1], m, 4 * k), a);
  EXPECT_EQ(contents(tiles[2], k, 4 * n), b);
  return contents(tiles[0], m, 4 * n);
}

TEST_F(Execute, ProductsOfBytes) {
  const Product products[] = {
      {{tdpbssd_012, tdpbssd_537, tdpbssd_760}, false, false},
      {{tdpbsud_012, tdpbsud_537, tdpbsud_760}, false, true},
      {{tdpbusd_012, tdpbusd_537, tdpbusd_760}, true, false},
      {{tdpbuud_012, tdpbuud_537, tdpbuud_760}, true, true}};
  const unsigned shapes[][3] = {{16, 16, 16}, {1, 1, 1},  {2, 3, 5},
                                {16, 16, 8},  {7, 16, 2}, {16, 1, 16},
                                {1, 16, 16},  {9, 13, 11}};
  for (const Product &product : products)
    for (int which = 0; which < 3; ++which)
      for (auto &[m, n, k] : shapes) {
        Bytes c = randomBytes(rng, 4 * m * n), a = randomBytes(rng, 4 * m * k),
              b = randomBytes(rng, 4 * k * n);
        Bytes got = multiplied(product.fn[which], arrangements[which], m, n, k,
                               c, a, b);
        auto number = [](uint8_t byte, bool isUnsigned) -> int64_t {
          return !isUnsigned && byte > 127 ? int64_t(byte) - 256 : byte;
        };
        for (unsigned i = 0; i < m; ++i)
          for (unsigned j = 0; j < n; ++j) {
            uint32_t was, now;
            memcpy(&was, &c[4 * (i * n + j)], 4);
            memcpy(&now, &got[4 * (i * n + j)], 4);
            // Row i of A: 4k bytes. B: word j of row q has bytes 4q .. 4q+3 of
            // column j.
            int64_t sum = was;
            for (unsigned q = 0; q < k; ++q)
              for (unsigned byte = 0; byte < 4; ++byte)
                sum += number(a[4 * (i * k + q) + byte], product.unsigned1) *
                       number(b[4 * (q * n + j) + byte], product.unsigned2);
            ASSERT_EQ(now, uint32_t(sum))
                << which << ": " << m << " x " << n << " x " << k;
          }
      }
}

TEST_F(Execute, SumsWrap) {
  Bytes c(4, 0xff), a(4, 0x7f), b(4, 0x7f); // -1 + 4 * 127^2
  Bytes got = multiplied(tdpbssd_012, arrangements[0], 1, 1, 1, c, a, b);
  int32_t sum;
  memcpy(&sum, got.data(), 4);
  EXPECT_EQ(sum, 4 * 127 * 127 - 1);
  c = {0xff, 0xff, 0xff, 0x7f}; // the largest int32: no saturation
  got = multiplied(tdpbuud_012, arrangements[0], 1, 1, 1, c, a, b);
  memcpy(&sum, got.data(), 4);
  EXPECT_EQ(uint32_t(sum), 0x7fffffffu + 4 * 127 * 127);
}

Bytes bf16(const std::vector<float> &values) {
  Bytes bytes;
  for (float x : values) {
    uint32_t word;
    memcpy(&word, &x, 4);
    bytes.push_back(uint8_t(word >> 16));
    bytes.push_back(uint8_t(word >> 24));
  }
  return bytes;
}

Bytes f32(const std::vector<float> &values) {
  Bytes bytes(4 * values.size());
  memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_F(Execute, ProductsOfBf16) {
  TileFn *const fns[] = {tdpbf16ps_012, tdpbf16ps_537, tdpbf16ps_760};
  const unsigned shapes[][3] = {{16, 16, 16}, {1, 1, 1}, {3, 5, 7}};
  auto some = [&](size_t n) {
    std::vector<float> values(n);
    for (float &x : values) { // of eight bits, and far apart in size
      x = std::ldexp(float(int(rng() % 256) - 128), int(rng() % 40) - 20);
    }
    return values;
  };
  for (int which = 0; which < 3; ++which)
    for (auto &[m, n, k] : shapes) {
      std::vector<float> c = some(m * n), a = some(2 * m * k),
                         b = some(2 * k * n);
      Bytes got = multiplied(fns[which], arrangements[which], m, n, k, f32(c),
                             bf16(a), bf16(b));
      for (unsigned i = 0; i < m; ++i)
        for (unsigned j = 0; j < n; ++j) {
          // Two chains, of even and of odd elements, each rounded once a step.
          float even = 0, odd = 0;
          for (unsigned q = 0; q < k; ++q) {
            even = std::fma(a[2 * (i * k + q)], b[2 * (q * n + j)], even);
            odd = std::fma(a[2 * (i * k + q) + 1], b[2 * (q * n + j) + 1], odd);
          }
          volatile float both = even + odd;
          volatile float want = c[i * n + j] + both;
          float now;
          memcpy(&now, &got[4 * (i * n + j)], 4);
          ASSERT_EQ(now, want) << m << " x " << n << " x " << k;
        }
    }
}

TEST_F(Execute, Bf16FlushesDenormals) {
  auto product = [](float c, std::vector<float> a, std::vector<float> b) {
    float now;
    Bytes got = multiplied(tdpbf16ps_012, arrangements[0], 1, 1, 1, f32({c}),
                           bf16(a), bf16(b));
    memcpy(&now, got.data(), 4);
    return now;
  };
  EXPECT_EQ(product(0, {0x1p-127f, 0}, {0x1p100f, 0}), 0.0f); // in
  EXPECT_EQ(product(0, {0x1p-100f, 0}, {0x1p-30f, 0}), 0.0f); // out
  EXPECT_EQ(product(0x1p-130f, {0, 0}, {0, 0}), 0.0f);        // C
  EXPECT_EQ(product(0, {0x1p-100f, 0}, {0x1p-26f, 0}), 0x1p-126f);
  EXPECT_TRUE(std::isinf(product(0, {0x1p100f, 0}, {0x1p100f, 0})));
  EXPECT_TRUE(std::isnan(product(0, {INFINITY, 0}, {0, 0})));
}

//===--- Threads ----------------------------------------------------------===//

TEST_F(Execute, TilesAreAThreadsOwn) {
  Bytes data = randomBytes(rng, 1024);
  Config().all(16, 64).use();
  loads[0](data.data(), 64);
  std::thread([&] {
    Bytes other(1024, 5);
    Config().all(16, 64).use();
    EXPECT_EQ(contents(0, 16, 64), Bytes(1024));
    loads[0](other.data(), 64);
  }).join();
  EXPECT_EQ(contents(0, 16, 64), data);
  std::vector<std::thread> team;
  for (int t = 0; t < 4; ++t)
    team.emplace_back([t] {
      Bytes own(1024, uint8_t(t));
      Config().all(16, 64).use();
      for (int i = 0; i < 200; ++i) {
        loads[t](own.data(), 64);
        ASSERT_EQ(contents(t, 16, 64), own);
      }
    });
  for (std::thread &thread : team)
    thread.join();
}

} // namespace
