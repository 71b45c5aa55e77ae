//===- spmd_host.cpp - A host that knows only the ABI -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: spmd_host MODEL.so MODEL.weights THREADS TOKENS LOGITS [spin]
//
// Runs the step of a compiled model on std::threads, with nothing of sparkc but
// sparkc_abi.h: what a program with a thread pool of its own does. TOKENS is
// token ids separated by white space; LOGITS gets float32 [tokens, vocab].
// Prints the barriers of each step and what the descriptor says of them.
//
// Built twice: as it is, and with ThreadSanitizer, for models compiled with
// `sparkc --sanitize=thread`.
//
//===----------------------------------------------------------------------===//
#include "sparkc_abi.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <linux/futex.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <xmmintrin.h>

namespace {

[[noreturn]] void fail(const std::string &what) {
  std::fprintf(stderr, "spmd_host: error: %s\n", what.c_str());
  std::exit(1);
}

const sparkc_descriptor &loadDescriptor(const char *path) {
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object)
    fail(dlerror());
  auto *d = static_cast<const sparkc_descriptor *>(
      dlsym(object, SPARKC_DESCRIPTOR_SYMBOL));
  if (!d || d->magic != SPARKC_DESCRIPTOR_MAGIC ||
      d->abi_version != SPARKC_ABI_VERSION || d->bytes != sizeof(*d) ||
      d->entry_bytes != sizeof(sparkc_entry))
    fail(std::string(path) + ": no descriptor of this ABI");
  return *d;
}

/// The payload of a weights file, mapped.
const uint8_t *mapWeights(const char *path, const sparkc_descriptor &d) {
  int file = open(path, O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0)
    fail(std::string(path) + ": cannot be opened");
  void *data = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED)
    fail(std::string(path) + ": cannot be mapped");
  auto *header = static_cast<const sparkc_weights_header *>(data);
  if (std::memcmp(header->digest, d.digest, sizeof(d.digest)) != 0)
    fail(std::string(path) + ": not the weights of this model");
  for (uint32_t i = 0; i < header->n_sections; ++i)
    if (header->sections[i].kind == SPARKC_SECTION_PAYLOAD)
      return static_cast<const uint8_t *>(data) + header->sections[i].offset;
  fail(std::string(path) + ": no payload");
}

template <typename T> T *allocate(uint64_t bytes) {
  bytes = (bytes + 63) / 64 * 64 + 64;
  void *memory = std::aligned_alloc(64, bytes);
  if (!memory)
    fail("out of memory");
  std::memset(memory, 0, bytes);
  return static_cast<T *>(memory);
}

void wait(uint32_t *word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void wake(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 6 && argc != 7)
    fail(
        "usage: spmd_host MODEL.so MODEL.weights THREADS TOKENS LOGITS "
        "[spin|prefill]");
  const std::string mode = argc == 7 ? argv[6] : "";
  const bool spin = mode == "spin";
  const sparkc_descriptor &d = loadDescriptor(argv[1]);
  const uint32_t threads = std::strtoul(argv[3], nullptr, 10);
  std::ifstream tokenFile(argv[4]);
  std::vector<int32_t> tokens;
  for (int32_t token; tokenFile >> token;)
    tokens.push_back(token);

  sparkc_ctx ctx = {};
  ctx.weights = mapWeights(argv[2], d);
  const uint64_t unit = d.capacity_multiple;
  ctx.capacity = (tokens.size() + unit - 1) / unit * unit;
  ctx.kv = allocate<uint8_t>(d.kv_bytes.a + d.kv_bytes.b * ctx.capacity);
  ctx.arena =
      allocate<uint8_t>(d.arena_bytes.a + d.arena_bytes.b * ctx.capacity);
  ctx.barrier = allocate<sparkc_barrier>(sizeof(sparkc_barrier));
  if (!spin) {
    ctx.wait = wait;
    ctx.wake = wake;
  }

  // A ctx for each call, so that the threads need no meeting of their own
  // between calls: an entry returns when all have passed its last barrier.
  const size_t block = mode == "prefill" ? d.prefill_block : 1;
  std::vector<float> logits(tokens.size() * d.vocab);
  std::vector<sparkc_ctx> calls;
  for (size_t i = 0; i < tokens.size(); i += block) {
    ctx.n_tokens = uint32_t(std::min(block, tokens.size() - i));
    ctx.flags = block > 1 ? SPARKC_CTX_ALL_LOGITS : 0;
    ctx.tokens = &tokens[i];
    ctx.pos = i;
    ctx.logits = &logits[i * d.vocab];
    calls.push_back(ctx);
  }

  // Tests compile for the machine they run on: no choice to make here. Tiles are
  // to be asked for (ARCH_REQ_XCOMP_PERM, XTILEDATA).
  const sparkc_entry &entry = d.entries[0];
  if (entry.isa == SPARKC_ISA_AMX && syscall(SYS_arch_prctl, 0x1023, 18) != 0)
    fail("the system permits no tiles");
  const sparkc_entry_fn run = block > 1 ? entry.prefill : entry.step;
  if (!run)
    fail("the model has no such entry");
  std::vector<uint32_t> barriers(calls.size());
  std::vector<std::thread> team;
  for (uint32_t tid = 0; tid < threads; ++tid)
    team.emplace_back([&, tid] {
      // Flush to zero and rounding up: a caller's mode, to be left alone.
      const unsigned mode = _mm_getcsr() | 0x8000 | 0x4000;
      _mm_setcsr(mode);
      for (size_t i = 0; i < calls.size(); ++i) {
        run(&calls[i], tid, threads);
        if (((_mm_getcsr() ^ mode) & ~0x3fu) != 0)
          fail("the step changed MXCSR");
        if (threads == 1)
          barriers[i] = ctx.barrier->generation;
      }
    });
  for (std::thread &thread : team)
    thread.join();

  std::printf("barriers %u per step %u", ctx.barrier->generation,
              d.barriers_per_step);
  if (threads == 1) {
    std::printf(" each");
    for (size_t i = 0; i < barriers.size(); ++i)
      std::printf(" %u", barriers[i] - (i ? barriers[i - 1] : 0));
  }
  std::printf("\n");
  std::ofstream out(argv[5], std::ios::binary);
  out.write(reinterpret_cast<const char *>(logits.data()),
            logits.size() * sizeof(float));
  return out ? 0 : 1;
}
