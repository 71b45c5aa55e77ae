//===- Session.cpp - One sequence of a model ------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Session.h"
#include "runtime/Processors.h"

#include <algorithm>
#include <utility>

using namespace sparkc;

using ull = unsigned long long;

Failure Session::init(std::shared_ptr<const Model> theModel,
                      const sparkc_session_options &options) {
  model = std::move(theModel);
  const sparkc_descriptor &d = model->descriptor();
  uint64_t asked = options.context ? options.context : d.default_context;
  if (asked > d.max_context)
    return fail(SPARKC_INVALID_ARGUMENT,
                "a context of %llu tokens; the model has at most %llu",
                ull(asked), ull(d.max_context));
  if (options.wait > SPARKC_WAIT_SPIN)
    return fail(SPARKC_INVALID_ARGUMENT, "unknown wait %u", options.wait);
  uint64_t multiple = d.capacity_multiple;
  uint64_t capacity = (asked + multiple - 1) / multiple * multiple;
  uint64_t kvBytes, arenaBytes;
  if (!affineBytes(d.kv_bytes, capacity, kvBytes) ||
      !affineBytes(d.arena_bytes, capacity, arenaBytes))
    return fail(SPARKC_OUT_OF_MEMORY,
                "the memory of a context of %llu tokens has no 64-bit size",
                ull(asked));
  if (Failure failure = setThreads(options.threads))
    return failure;
  if (Failure failure = kv.allocate(kvBytes, "a KV cache"))
    return failure;
  if (Failure failure = arena.allocate(arenaBytes, "scratch memory"))
    return failure;
  limit = asked;
  wait = options.wait;
  chunk = options.prefill_chunk;
  processors = affinityProcessors();
  ring.init(d.full_layers < d.layers ? d.ring_positions : 0, d.window);
  ctx.weights = model->payload();
  ctx.kv = kv.data();
  ctx.arena = arena.data();
  ctx.capacity = capacity;
  ctx.barrier = &barrier;
  ctx.gemm = model->gemm();
  return success();
}

Failure Session::setThreads(uint32_t n) {
  if (n > maxThreads)
    return fail(SPARKC_INVALID_ARGUMENT, "%u threads; at most %u", n,
                maxThreads);
  threads = n ? n : sparkc_default_threads();
  return success();
}

Failure Session::setProfile(sparkc_profile_event *events, size_t capacity,
                            uint32_t forThreads) {
  if (events && !model->entry().step_profile)
    return fail(SPARKC_INVALID_ARGUMENT,
                "the model was compiled without profile entries");
  if (events && (!capacity || !forThreads || forThreads > maxThreads))
    return fail(SPARKC_INVALID_ARGUMENT,
                "a profile of %zu events for each of %u threads", capacity,
                forThreads);
  profile = events;
  profileCapacity = capacity;
  profileThreads = forThreads;
  return success();
}

/// A profiled call of n tokens has its entry, and room for its threads.
Failure Session::checkProfile(size_t n) const {
  if (!profile)
    return success();
  if (threads > profileThreads)
    return fail(SPARKC_INVALID_ARGUMENT,
                "%u threads; the profile has room for %u", threads,
                profileThreads);
  if (n > 1 && model->entry().prefill && !model->entry().prefill_profile)
    return fail(SPARKC_INVALID_ARGUMENT,
                "the model was compiled without a profile entry of its "
                "prefill");
  return success();
}

void Session::run(size_t n) {
  const sparkc_entry &entry = model->entry();
  sparkc_entry_fn fn = n > 1 ? entry.prefill : entry.step;
  if (profile) {
    fn = n > 1 ? entry.prefill_profile : entry.step_profile;
    std::fill_n(profile, profileCapacity * profileThreads,
                sparkc_profile_event{});
    ctx.profile = profile;
    ctx.profile_capacity = profileCapacity;
  }
  runTeam(fn, &ctx, threads);
}

Failure Session::checkIdle() const {
  if (spmd)
    return fail(SPARKC_INVALID_ARGUMENT,
                "a job of sparkc_spmd_begin was not ended");
  return success();
}

Failure Session::checkTokens(size_t at, const int32_t *tokens, size_t n,
                             uint32_t flags, const float *logits) const {
  if (Failure failure = checkIdle())
    return failure;
  if (flags & ~uint32_t(SPARKC_PREFILL_ALL_LOGITS))
    return fail(SPARKC_INVALID_ARGUMENT, "unknown flags 0x%x", flags);
  if (flags & SPARKC_PREFILL_ALL_LOGITS && !logits)
    return fail(SPARKC_INVALID_ARGUMENT, "all logits asked for, into null");
  if (n == 0)
    return fail(SPARKC_EMPTY_PROMPT, "no tokens were given");
  if (!tokens)
    return fail(SPARKC_INVALID_ARGUMENT, "tokens is null");
  if (n > limit - at)
    return fail(SPARKC_CONTEXT_FULL,
                "%zu tokens at position %zu; the context has room for %zu", n,
                at, limit);
  uint32_t vocab = model->descriptor().vocab;
  for (size_t i = 0; i < n; ++i)
    if (tokens[i] < 0 || uint32_t(tokens[i]) >= vocab)
      return fail(SPARKC_TOKEN_OUT_OF_RANGE,
                  "token id %d at index %zu is outside the vocabulary of %u",
                  tokens[i], i, vocab);
  return success();
}

void Session::fillCtx(size_t pos, size_t n, uint32_t flags, float *logits) {
  ctx.tokens = history.data() + pos;
  ctx.n_tokens = uint32_t(n);
  ctx.pos = pos;
  ctx.logits = logits;
  ctx.flags = 0;
  if (!logits)
    ctx.flags |= SPARKC_CTX_NO_LOGITS;
  else if (flags & SPARKC_PREFILL_ALL_LOGITS)
    ctx.flags |= SPARKC_CTX_ALL_LOGITS;
  ctx.profile = nullptr;
  ctx.profile_capacity = 0;
}

void Session::setWait(uint32_t n_threads) {
  // Polling only delays a thread that has no processor to run on.
  ctx.spins = n_threads > processors ? 50 : 0;
  uint32_t kind = wait;
  if (kind == SPARKC_WAIT_AUTO)
    kind = n_threads > processors ? SPARKC_WAIT_YIELD : SPARKC_WAIT_FUTEX;
  ctx.wait = kind == SPARKC_WAIT_FUTEX   ? sparkc_futex_wait
             : kind == SPARKC_WAIT_YIELD ? sparkc_yield_wait
                                         : nullptr;
  ctx.wake = kind == SPARKC_WAIT_FUTEX   ? sparkc_futex_wake
             : kind == SPARKC_WAIT_YIELD ? sparkc_yield_wake
                                         : nullptr;
}

Failure Session::prefill(const int32_t *tokens, size_t n, uint32_t flags,
                         float *logits) {
  if (Failure failure = checkTokens(position(), tokens, n, flags, logits))
    return failure;
  if (Failure failure = checkProfile(n))
    return failure;
  const sparkc_descriptor &d = model->descriptor();
  const sparkc_entry &entry = model->entry();
  const bool all = flags & SPARKC_PREFILL_ALL_LOGITS;
  size_t most = entry.prefill ? d.prefill_block : 1;
  if (chunk)
    most = std::min<size_t>(most, chunk);

  size_t pos = position();
  history.insert(history.end(), tokens, tokens + n);
  pending = n;
  setWait(threads);
  for (size_t done = 0; done < n;) {
    size_t block = std::min(most, n - done);
    float *rows = nullptr;
    if (all)
      rows = logits + done * d.vocab;
    else if (done + block == n)
      rows = logits;
    fillCtx(pos, block, flags, rows);
    run(block);
    ring.wrote(pos, block);
    pos += block;
    done += block;
    pending -= block;
    if (progress && progress(progressUser, done, n) && done < n) {
      history.resize(pos);
      pending = 0;
      return fail(SPARKC_CANCELLED, "cancelled after %zu of %zu tokens", done,
                  n);
    }
  }
  return success();
}

Failure Session::decode(int32_t token, float *logits) {
  if (Failure failure = checkTokens(position(), &token, 1, 0, logits))
    return failure;
  if (Failure failure = checkProfile(1))
    return failure;
  size_t pos = position();
  history.push_back(token);
  setWait(threads);
  fillCtx(pos, 1, 0, logits);
  run(1);
  ring.wrote(pos, 1);
  return success();
}

Failure Session::reset() {
  if (Failure failure = checkIdle())
    return failure;
  history.clear();
  ring.clear();
  return success();
}

Failure Session::rewind(size_t kept) {
  if (Failure failure = checkIdle())
    return failure;
  if (kept > position())
    return fail(SPARKC_INVALID_ARGUMENT,
                "cannot rewind to %zu: the session has %zu tokens", kept,
                position());
  if (ring.serves(kept)) {
    history.resize(kept);
    return success();
  }
  std::vector<int32_t> tokens(history.begin(), history.begin() + kept);
  history.clear();
  ring.clear();
  sparkc_profile_event *kept_profile = std::exchange(profile, nullptr);
  Failure failure = prefill(tokens.data(), tokens.size(), 0, nullptr);
  profile = kept_profile;
  return failure;
}

Failure Session::prompt(const int32_t *tokens, size_t n, float *logits,
                        size_t &kept) {
  if (Failure failure = checkTokens(0, tokens, n, 0, logits))
    return failure;
  // Only a token that is computed has logits.
  const size_t most = std::min(position(), logits ? n - 1 : n);
  const auto held = history.begin();
  size_t common = std::mismatch(held, held + most, tokens).first - held;
  if (!ring.serves(common))
    common = 0;
  if (Failure failure = checkProfile(n - common))
    return failure;
  // A copy: the tokens may be the session's own.
  const std::vector<int32_t> rest(tokens + common, tokens + n);
  history.reserve(n);
  history.resize(common);
  if (common == 0)
    ring.clear();
  kept = common;
  return rest.empty() ? success()
                      : prefill(rest.data(), rest.size(), 0, logits);
}

Failure Session::spmdBegin(const int32_t *tokens, size_t n, uint32_t flags,
                           float *logits, uint32_t n_threads,
                           sparkc_spmd &job) {
  const bool profile = flags & SPARKC_SPMD_PROFILE;
  flags &= ~uint32_t(SPARKC_SPMD_PROFILE);
  if (Failure failure = checkTokens(position(), tokens, n, flags, logits))
    return failure;
  const sparkc_entry &entry = model->entry();
  if (n_threads == 0 || n_threads > maxThreads)
    return fail(SPARKC_INVALID_ARGUMENT, "%u threads; 1 to %u", n_threads,
                maxThreads);
  size_t most = entry.prefill ? model->descriptor().prefill_block : 1;
  if (n > most)
    return fail(SPARKC_INVALID_ARGUMENT,
                "%zu tokens in one job; the model takes at most %zu", n, most);
  sparkc_entry_fn fn = n > 1 ? (profile ? entry.prefill_profile : entry.prefill)
                             : (profile ? entry.step_profile : entry.step);
  if (!fn)
    return fail(SPARKC_INVALID_ARGUMENT,
                "the model was compiled without profile entries");
  size_t pos = position();
  history.insert(history.end(), tokens, tokens + n);
  pending = n;
  setWait(n_threads);
  fillCtx(pos, n, flags, logits);
  spmd = true;
  spmdGeneration = barrier.generation;
  job = {&ctx, fn, n_threads, 0};
  return success();
}

Failure Session::spmdEnd(const sparkc_spmd &job) {
  if (!spmd || job.ctx != &ctx)
    return fail(SPARKC_INVALID_ARGUMENT, "no such job was begun");
  spmd = false;
  size_t n = pending;
  pending = 0;
  if (barrier.generation == spmdGeneration) {
    history.resize(history.size() - n);
    return fail(SPARKC_INVALID_ARGUMENT, "the job was not run");
  }
  ring.wrote(history.size() - n, n);
  return success();
}
