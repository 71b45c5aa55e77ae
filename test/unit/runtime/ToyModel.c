/*===- ToyModel.c - A hand-written compiled model ------------------------===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * Stands for what the compiler makes, so that the runtime can be tested
 * without it: a descriptor, and entries that run in SPMD with real barriers.
 * The "model" is integer arithmetic: a full layer sums a function of every
 * token so far, a sliding layer a function of the last WINDOW ones, kept in a
 * ring of RING positions. A lost, stale or doubled key changes the logits.
 *
 *===----------------------------------------------------------------------===*/
#include "runtime/include/sparkc_abi.h"
#include "test/unit/runtime/ToyShape.h"

typedef struct Arena {
  uint64_t full[TOY_VOCAB];    /* what the full layer gives each logit */
  uint64_t sliding[TOY_VOCAB]; /* what the sliding layer gives it */
} Arena;

static void barrier(sparkc_ctx *ctx, uint32_t n) {
  sparkc_barrier *b = ctx->barrier;
  uint32_t seen = __atomic_load_n(&b->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == n) {
    __atomic_store_n(&b->arrived, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&b->generation, 1, __ATOMIC_SEQ_CST);
    if (ctx->wake && __atomic_load_n(&b->sleepers, __ATOMIC_SEQ_CST))
      ctx->wake(&b->generation);
    return;
  }
  for (int i = 0; i < 200; ++i)
    if (__atomic_load_n(&b->generation, __ATOMIC_ACQUIRE) != seen)
      return;
  if (ctx->wait)
    __atomic_add_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&b->generation, __ATOMIC_SEQ_CST) == seen)
    if (ctx->wait)
      ctx->wait(&b->generation, seen);
  if (ctx->wait)
    __atomic_sub_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
}

static uint64_t mixed(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}

/* Where a thread writes its profile; begin is 0 in a plain entry. */
typedef struct Clock {
  sparkc_profile_event *next, *last;
  uint64_t begin;
} Clock;

static void meet(sparkc_ctx *ctx, uint32_t n, Clock *clock, uint32_t phase,
                 uint32_t layer) {
  uint64_t end = clock->begin ? __builtin_ia32_rdtsc() : 0;
  barrier(ctx, n);
  if (!clock->begin)
    return;
  uint64_t resumed = __builtin_ia32_rdtsc();
  if (clock->next < clock->last) {
    sparkc_profile_event event = {phase, layer, clock->begin, end, resumed};
    *clock->next++ = event;
  }
  clock->begin = resumed;
}

/* One token at position pos; logits may be null. Three barriers. */
static void token(sparkc_ctx *ctx, uint32_t tid, uint32_t n, uint32_t index,
                  float *logits, Clock *clock) {
  Arena *arena = (Arena *)ctx->arena;
  uint32_t *ring = (uint32_t *)ctx->kv, *full = ring + TOY_RING;
  uint64_t pos = ctx->pos + index;
  if (tid == index % n) { /* keys are stored as id + 1: zero is "none" */
    ring[pos % TOY_RING] = (uint32_t)ctx->tokens[index] + 1;
    full[pos] = (uint32_t)ctx->tokens[index] + 1;
  }
  meet(ctx, n, clock, 0, 0);
  uint64_t first = pos + 1 > TOY_WINDOW ? pos + 1 - TOY_WINDOW : 0;
  for (uint32_t v = tid; v < TOY_VOCAB; v += n) {
    uint64_t sum = 0, near = 0;
    for (uint64_t q = 0; q <= pos; ++q)
      sum += mixed(full[q] * 131u + q * 7u + v);
    for (uint64_t q = first; q <= pos; ++q)
      near += mixed(ring[q % TOY_RING] * 61u + (pos - q) * 3u + v);
    arena->full[v] = sum;
    arena->sliding[v] = near;
  }
  meet(ctx, n, clock, 1, 0);
  /* Each logit mixes results of all threads. */
  if (logits)
    for (uint32_t v = tid; v < TOY_VOCAB; v += n) {
      uint32_t w = (v + 1) % TOY_VOCAB;
      uint64_t x = mixed(arena->full[v] + mixed(arena->sliding[w]) +
                         ctx->weights[v % TOY_PAYLOAD]);
      logits[v] = (float)(x >> 44) / 4096.0f;
    }
  meet(ctx, n, clock, 2, UINT32_MAX);
}

static void step_timed(sparkc_ctx *ctx, uint32_t tid, uint32_t n,
                       Clock *clock) {
  token(ctx, tid, n, 0,
        ctx->flags & SPARKC_CTX_NO_LOGITS ? (float *)0 : ctx->logits, clock);
}

static void step(sparkc_ctx *ctx, uint32_t tid, uint32_t n) {
  Clock none = {0, 0, 0};
  step_timed(ctx, tid, n, &none);
}

static void prefill_timed(sparkc_ctx *ctx, uint32_t tid, uint32_t n,
                          Clock *clock) {
  for (uint32_t i = 0; i < ctx->n_tokens; ++i) {
    float *logits = (float *)0;
    if (ctx->flags & SPARKC_CTX_ALL_LOGITS)
      logits = ctx->logits + (size_t)i * TOY_VOCAB;
    else if (!(ctx->flags & SPARKC_CTX_NO_LOGITS) && i + 1 == ctx->n_tokens)
      logits = ctx->logits;
    token(ctx, tid, n, i, logits, clock);
  }
}

static void prefill(sparkc_ctx *ctx, uint32_t tid, uint32_t n) {
  Clock none = {0, 0, 0};
  prefill_timed(ctx, tid, n, &none);
}

#ifdef TOY_PROFILE
static Clock started(sparkc_ctx *ctx, uint32_t tid) {
  Clock clock;
  clock.next = ctx->profile + tid * ctx->profile_capacity;
  clock.last = clock.next + ctx->profile_capacity;
  clock.begin = __builtin_ia32_rdtsc();
  return clock;
}

static void step_profile(sparkc_ctx *ctx, uint32_t tid, uint32_t n) {
  Clock clock = started(ctx, tid);
  step_timed(ctx, tid, n, &clock);
}

static void prefill_profile(sparkc_ctx *ctx, uint32_t tid, uint32_t n) {
  Clock clock = started(ctx, tid);
  prefill_timed(ctx, tid, n, &clock);
}

static const sparkc_phase phases[] = {
    {"write keys", SPARKC_PHASE_OTHER, 0, 0},
    {"sums", SPARKC_PHASE_ATTENTION, 0, 0},
    {"head", SPARKC_PHASE_LINEAR, 0, TOY_PAYLOAD},
};
#else

static void step_profile(sparkc_ctx *ctx, uint32_t tid, uint32_t n) {
  step(ctx, tid, n);
  if (ctx->profile && ctx->profile_capacity)
    ctx->profile[tid * ctx->profile_capacity].phase = tid + 1;
}
#define prefill_profile 0
#endif

static const uint32_t layouts[] = {SPARKC_LAYOUT_VECTOR_F32,
                                   SPARKC_LAYOUT_TILE16_BF16};

static const sparkc_entry entries[] = {
#ifdef TOY_FAT
    {SPARKC_ISA_AMX, 0, step, prefill, 0, 0},
    {SPARKC_ISA_AVX512VNNI, 1u << 30, step, prefill, 0, 0},
#endif
    {SPARKC_ISA_AVX2, 0, step, TOY_PREFILL ? prefill : 0, step_profile,
     prefill_profile},
};

/* The compiler's descriptor is constant; this one is data so that its integers
   stand in the file as they are and tests can alter them there. */
__attribute__((visibility("default")))
sparkc_descriptor sparkc_model_descriptor = {
    .magic = SPARKC_DESCRIPTOR_MAGIC,
    .abi_version = SPARKC_ABI_VERSION,
    .bytes = sizeof(sparkc_descriptor),
    .entry_bytes = sizeof(sparkc_entry),
    .compiler = "sparkc toy",
    .target = "x86-64",
    .scheme = "toy",
    .digest = TOY_DIGEST,
    .payload_bytes = TOY_PAYLOAD,
    .layouts = layouts,
    .n_layouts = 2,
    .kv_type = SPARKC_KV_F16,
    .vocab = TOY_VOCAB,
    .hidden = 64,
    .intermediate = 128,
    .layers = 4,
    .full_layers = 1,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 16,
    .window = TOY_WINDOW,
    .ring_positions = TOY_RING,
    .max_context = 1u << 20,
    .default_context = 100,
    .prefill_block = TOY_BLOCK,
    .capacity_multiple = 16,
    .kv_bytes = {TOY_RING * 4, 4},
    .arena_bytes = {sizeof(Arena), 0},
    .bytes_per_step = TOY_PAYLOAD,
    .linear_weights = TOY_PAYLOAD / 2,
    .barriers_per_step = TOY_BARRIERS,
    .fold_threshold = UINT64_MAX,
#ifdef TOY_PROFILE
    .phases = phases,
    .n_phases = sizeof phases / sizeof *phases,
#endif
    .n_entries = sizeof entries / sizeof *entries,
    .entries = entries,
};
