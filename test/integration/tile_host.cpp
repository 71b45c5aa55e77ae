//===- tile_host.cpp - A host that uses tiles itself ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: tile_host MODEL.so
//
// Several threads, each with a session, alternate between AMX code of their own,
// prefills of the model, and (where it was found) int8 products by oneDNN. Each
// must get what it would get alone: a prefill finds a foreign configuration, of
// other shapes than its own, and leaves none behind, on the caller's thread, on
// OpenMP's and on a host's own that it ran on (fresh ones in every round).
//
// What a prefill has to give is known from decoding, which uses no tiles.
//
//===----------------------------------------------------------------------===//

#include "runtime/Cpu.h"
#include "sparkc.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <omp.h>
#include <thread>
#include <vector>

#ifdef SPARKC_HAS_ONEDNN
#include <dnnl.hpp>
#endif

namespace {

constexpr int kThreads = 4, kRounds = 2, kTokens = 37;

std::atomic<int> checked, failed;

void check(bool ok, const char *what) {
  ++checked;
  if (ok)
    return;
  if (++failed <= 20)
    std::printf("FAILED %s\n", what);
}

//===--- The host's own tiles ---------------------------------------------===//

struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};
};

/// 5 x 12, 5 x 28 and 7 x 12 bytes.
TileConfig hostConfig() {
  TileConfig config;
  config.rows[1] = 5, config.rowBytes[1] = 12;
  config.rows[2] = 5, config.rowBytes[2] = 28;
  config.rows[6] = 7, config.rowBytes[6] = 12;
  return config;
}

/// No tiles, or those of the host: a thread that got no piece of the work keeps
/// them. What must never be there are the model's.
__attribute__((target("amx-tile"))) bool nothingIsLeft() {
  alignas(64) uint8_t now[64], none[64] = {};
  std::memset(now, 1, sizeof now);
  _tile_storeconfig(now);
  const TileConfig own = hostConfig();
  return !std::memcmp(now, none, sizeof none) ||
         !std::memcmp(now, &own, sizeof own);
}

/// 5 x 3 += 5 x 7 words times 7 x 3 words, of bytes; leaves its tiles
/// configured.
__attribute__((target("amx-tile,amx-int8"))) void hostProduct(unsigned seed) {
  int8_t a[5 * 28], b[7 * 12];
  int32_t c[5][3], want[5][3] = {};
  for (unsigned i = 0; i < sizeof a; ++i)
    a[i] = int8_t((seed = seed * 1664525 + 1013904223) >> 16);
  for (unsigned i = 0; i < sizeof b; ++i)
    b[i] = int8_t((seed = seed * 1664525 + 1013904223) >> 16);
  for (int m = 0; m < 5; ++m)
    for (int n = 0; n < 3; ++n)
      for (int k = 0; k < 28; ++k)
        want[m][n] += a[28 * m + k] * b[12 * (k / 4) + 4 * n + k % 4];
  const TileConfig config = hostConfig();
  _tile_loadconfig(&config);
  _tile_zero(1);
  _tile_loadd(2, a, 28);
  _tile_loadd(6, b, 12);
  _tile_dpbssd(1, 2, 6);
  _tile_stored(1, c, 12);
  check(!std::memcmp(c, want, sizeof c), "a product of the host's own");
}

//===--- oneDNN -----------------------------------------------------------===//

#ifdef SPARKC_HAS_ONEDNN
/// u8 [M, K] times s8 [K, N] to s32.
class Matmul {
public:
  Matmul()
      : engine(dnnl::engine::kind::cpu, 0), stream(engine),
        a(M * K), b(K * N), c(M * N), want(M * N) {
    using Memory = dnnl::memory;
    auto describe = [](int rows, int cols, Memory::data_type type) {
      return Memory::desc({rows, cols}, type, Memory::format_tag::ab);
    };
    auto mdA = describe(M, K, Memory::data_type::u8),
         mdB = describe(K, N, Memory::data_type::s8),
         mdC = describe(M, N, Memory::data_type::s32);
    for (int i = 0; i < M * K; ++i)
      a[i] = uint8_t(i * 31 % 128);
    for (int i = 0; i < K * N; ++i)
      b[i] = int8_t(i * 17 % 100 - 50);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        for (int k = 0; k < K; ++k)
          want[m * N + n] += a[m * K + k] * b[k * N + n];
    memories = {{DNNL_ARG_SRC, Memory(mdA, engine, a.data())},
                {DNNL_ARG_WEIGHTS, Memory(mdB, engine, b.data())},
                {DNNL_ARG_DST, Memory(mdC, engine, c.data())}};
    dnnl::matmul::desc description(mdA, mdB, mdC);
    primitive = dnnl::matmul(
        dnnl::matmul::primitive_desc(description, engine));
  }
  void run() {
    std::fill(c.begin(), c.end(), -1);
    primitive.execute(stream, memories);
    stream.wait();
    check(c == want, "a product by oneDNN");
  }

private:
  static constexpr int M = 48, K = 128, N = 64;
  dnnl::engine engine;
  dnnl::stream stream;
  std::vector<uint8_t> a;
  std::vector<int8_t> b;
  std::vector<int32_t> c, want;
  std::unordered_map<int, dnnl::memory> memories;
  dnnl::matmul primitive;
};
#else
struct Matmul {
  void run() {}
};
#endif

//===--- The model --------------------------------------------------------===//

sparkc_model *model;
std::vector<int32_t> tokens;
std::vector<float> wanted; // of all tokens, by decoding
uint32_t vocab;

void must(sparkc_status status, const char *what) {
  if (status == SPARKC_OK)
    return;
  std::printf("FAILED %s: %s\n", what, sparkc_status_string(status));
  std::exit(1);
}

/// Tokens in two calls, by the session's OpenMP team.
void prefill(sparkc_session *session) {
  std::vector<float> logits(wanted.size());
  must(sparkc_reset(session), "reset");
  const size_t first = 21;
  must(sparkc_prefill(session, tokens.data(), first, SPARKC_PREFILL_ALL_LOGITS,
                      logits.data()),
       "prefill");
  must(sparkc_prefill(session, tokens.data() + first, tokens.size() - first,
                      SPARKC_PREFILL_ALL_LOGITS, logits.data() + first * vocab),
       "prefill");
  check(!std::memcmp(logits.data(), wanted.data(), 4 * logits.size()),
        "a prefill has the bits of decoding");
  check(nothingIsLeft(), "no tiles of the model on the caller's thread");
}

/// All tokens, by fresh threads of the host's; one of them has tiles already.
void prefillOnOwnThreads(sparkc_session *session) {
  std::vector<float> logits(wanted.size());
  must(sparkc_reset(session), "reset");
  sparkc_spmd job;
  must(sparkc_spmd_begin(session, tokens.data(), tokens.size(),
                         SPARKC_PREFILL_ALL_LOGITS, logits.data(), 3, &job),
       "spmd_begin");
  std::vector<std::thread> team;
  for (uint32_t tid = 0; tid < 3; ++tid)
    team.emplace_back([&, tid] {
      if (tid == 1)
        hostProduct(tid);
      job.entry(job.ctx, tid, job.n_threads);
      check(nothingIsLeft(), "no tiles of the model on a host's thread");
      hostProduct(tid + 7);
    });
  for (std::thread &thread : team)
    thread.join();
  must(sparkc_spmd_end(session, &job), "spmd_end");
  check(!std::memcmp(logits.data(), wanted.data(), 4 * logits.size()),
        "a prefill on a host's threads has the bits of decoding");
}

void alternate(int number) {
  sparkc_session *session;
  sparkc_session_options options = {};
  options.struct_size = sizeof options;
  options.threads = number % 2 ? 2 : 1;
  must(sparkc_session_create(model, &options, &session, nullptr), "session");
  Matmul matmul;
  for (int round = 0; round < kRounds; ++round) {
    hostProduct(unsigned(100 * number + round));
    prefill(session);
#pragma omp parallel num_threads(2) // the team that has just run
    {
      check(nothingIsLeft(), "no tiles of the model on OpenMP's threads");
      hostProduct(3);
    }
    matmul.run();
    prefillOnOwnThreads(session);
    matmul.run();
    hostProduct(5);
    prefill(session);
  }
  sparkc_session_destroy(session);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tile_host MODEL.so\n");
    return 2;
  }
  sparkc_error why;
  if (sparkc_open(argv[1], nullptr, nullptr, &model, &why) != SPARKC_OK) {
    std::printf("FAILED %s\n", why.message);
    return 1;
  }
  sparkc_model_info info = {};
  info.struct_size = sizeof info;
  must(sparkc_info(model, &info), "info");
  check(!std::strcmp(info.isa, "amx"), "the model runs on AMX");
  if (failed)
    return 1;
  vocab = info.vocab;
  for (int i = 0; i < kTokens; ++i)
    tokens.push_back((7 * i + 3) % int(vocab));
  wanted.resize(size_t(kTokens) * vocab);
  sparkc_session *session;
  must(sparkc_session_create(model, nullptr, &session, nullptr), "session");
  for (int i = 0; i < kTokens; ++i)
    must(sparkc_decode(session, tokens[i], &wanted[size_t(i) * vocab]),
         "decode");
  sparkc_session_destroy(session);

  std::vector<std::thread> hosts;
  for (int t = 0; t < kThreads; ++t)
    hosts.emplace_back(alternate, t);
  for (std::thread &host : hosts)
    host.join();
  sparkc_close(model);
#ifdef SPARKC_HAS_ONEDNN
  std::printf("with oneDNN; ");
#endif
  std::printf("%d of %d hold\n", checked - failed, checked.load());
  return failed ? 1 : 0;
}
