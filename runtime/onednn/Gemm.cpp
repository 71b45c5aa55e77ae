//===- Gemm.cpp - ctx->gemm by oneDNN -------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libsparkc-onednn.so: a sparkc_gemm_fn over oneDNN's matrix product of float32.
// It brings operands from the tiles and quads of a compiled model to matrices in
// memory of the calling thread's own, 4 (96 + 128) cols bytes at most; bfloat16
// weights become float32, which is exact. So what is added to the rounding of
// the model's own kernels is another order of the same sums.
//
//===----------------------------------------------------------------------===//

#include "sparkc_abi.h"

#include <cstring>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.h>
#if defined(__clang__)
extern "C" int omp_get_max_threads(void);
extern "C" void omp_set_num_threads(int n);
#else
#include <omp.h>
#endif

namespace {

constexpr uint64_t kRows = 16; ///< of a tile
constexpr uint64_t kQuad = 4;  ///< tokens

/// The arguments of a call.
struct Product {
  const uint8_t *tiles;
  bool narrow; ///< bfloat16
  uint64_t nTiles, cols;
  const float *x;
  uint64_t tokens;
  float *out;
  uint64_t outRow;

  uint64_t rows() const { return kRows * nTiles; }
  uint64_t quadFloats() const { return kQuad * ((cols + 127) / 128 * 128); }
  uint64_t tileBytes() const {
    return narrow ? (cols + 1) / 2 * 64 : cols * 64;
  }
  /// Column k of the 16 rows of a tile.
  void column(uint64_t tile, uint64_t k, float *to) const {
    const uint8_t *from = tiles + tile * tileBytes();
    if (!narrow) {
      std::memcpy(to, from + 64 * k, 64);
      return;
    }
    // Column k in the low half of each word, k + 1 in the high one.
    uint32_t words[kRows];
    std::memcpy(words, from + 64 * (k / 2), 64);
    for (uint32_t &word : words)
      word = k % 2 ? word & 0xffff0000u : word << 16;
    std::memcpy(to, words, 64);
  }
};

/// Memory of a thread, which grows with what its calls need.
class Room {
public:
  float *get(uint64_t floats) {
    if (floats > size) {
      data.reset();
      size = 0;
      data.reset(new (std::nothrow) float[floats]);
      size = data ? floats : 0;
    }
    return data.get();
  }

private:
  std::unique_ptr<float[]> data;
  uint64_t size = 0;
};

/// One thread for oneDNN while it lives: the team is the model's own.
class OneThread {
public:
  OneThread() : before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before); }

private:
  int before;
};

} // namespace

/// False where there is no memory, or oneDNN says no.
static bool multiply(const Product &p) {
  static thread_local Room room;
  float *weights = room.get(p.cols * (p.rows() + p.tokens));
  if (!weights)
    return false;
  // Both with a row for each column of the model's matrix.
  float *x = weights + p.cols * p.rows();
  for (uint64_t tile = 0; tile < p.nTiles; ++tile)
    for (uint64_t k = 0; k < p.cols; ++k)
      p.column(tile, k, weights + k * p.rows() + kRows * tile);
  for (uint64_t t = 0; t < p.tokens; t += kQuad) {
    const float *quad = p.x + t / kQuad * p.quadFloats();
    for (uint64_t k = 0; k < p.cols; ++k)
      std::memcpy(x + k * p.tokens + t, quad + kQuad * k, 4 * kQuad);
  }
  OneThread one;
  return dnnl_sgemm('T', 'N', p.tokens, p.rows(), p.cols, 1.0f, x, p.tokens,
                    weights, p.rows(), 0.0f, p.out,
                    p.outRow / 4) == dnnl_success;
}

/// The same without oneDNN and without memory, slowly.
static void multiplyPlainly(const Product &p) {
  for (uint64_t t = 0; t < p.tokens; ++t)
    for (uint64_t tile = 0; tile < p.nTiles; ++tile) {
      const float *x = p.x + t / kQuad * p.quadFloats() + t % kQuad;
      float sums[kRows] = {}, column[kRows];
      for (uint64_t k = 0; k < p.cols; ++k) {
        p.column(tile, k, column);
        for (uint64_t r = 0; r < kRows; ++r)
          sums[r] += column[r] * x[kQuad * k];
      }
      std::memcpy(p.out + t * (p.outRow / 4) + kRows * tile, sums, 64);
    }
}

extern "C" __attribute__((visibility("default"))) void
sparkc_onednn_gemm_1(const uint8_t *tiles, uint32_t layout, uint64_t n_tiles,
                     uint64_t cols, const float *x, uint64_t tokens, float *out,
                     uint64_t out_row) {
  Product product{tiles,  layout == SPARKC_LAYOUT_TILE16_BF16,
                  n_tiles, cols,
                  x,      tokens,
                  out,    out_row};
  if (!multiply(product))
    multiplyPlainly(product);
}
