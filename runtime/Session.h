//===- Session.h - One sequence of a model ----------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_SESSION_H
#define SPARKC_RUNTIME_SESSION_H

#include "runtime/Failure.h"
#include "runtime/Memory.h"
#include "runtime/Model.h"
#include "runtime/RingMap.h"
#include "runtime/include/sparkc.h"

#include <memory>
#include <vector>

namespace sparkc {

/// KV cache, arena and tokens of one sequence. Calls check everything before
/// they change anything. Not thread-safe.
class Session {
public:
  Session() = default;
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  Failure init(std::shared_ptr<const Model> model,
               const sparkc_session_options &options);

  Failure prefill(const int32_t *tokens, size_t n, uint32_t flags,
                  float *logits);
  Failure decode(int32_t token, float *logits);
  /// Makes the sequence these tokens; `kept` of them were not computed again.
  Failure prompt(const int32_t *tokens, size_t n, float *logits, size_t &kept);
  Failure reset();
  Failure rewind(size_t kept);
  Failure setThreads(uint32_t n);
  Failure setProfile(sparkc_profile_event *events, size_t capacity,
                     uint32_t forThreads);

  Failure spmdBegin(const int32_t *tokens, size_t n, uint32_t flags,
                    float *logits, uint32_t n_threads, sparkc_spmd &job);
  Failure spmdEnd(const sparkc_spmd &job);

  Failure save(const char *path) const;
  Failure restore(const char *path);

  size_t position() const { return history.size() - pending; }
  size_t context() const { return limit; }
  const int32_t *tokens() const { return history.data(); }
  uint32_t barriers() const { return barrier.generation; }
  void setProgress(sparkc_progress_fn fn, void *user) {
    progress = fn;
    progressUser = user;
  }

private:
  Failure checkIdle() const;
  /// Whether tokens [n] may follow the first `at` of the sequence.
  Failure checkTokens(size_t at, const int32_t *tokens, size_t n,
                      uint32_t flags, const float *logits) const;
  /// Points ctx at history[pos, pos + n).
  void fillCtx(size_t pos, size_t n, uint32_t flags, float *logits);
  void setWait(uint32_t n_threads);
  /// Runs the step (n = 1) or prefill entry, plain or profiled, over ctx.
  void run(size_t n);
  Failure checkProfile(size_t n) const;
  uint64_t identity() const;

  std::shared_ptr<const Model> model;
  Memory kv, arena;
  sparkc_ctx ctx = {};
  alignas(64) sparkc_barrier barrier = {};
  std::vector<int32_t> history; ///< tokens, then those of a call under way
  size_t pending = 0;           ///< tokens of a call under way
  RingMap ring;

  size_t limit = 0; ///< context
  uint32_t threads = 1;
  uint32_t wait = SPARKC_WAIT_AUTO;
  uint32_t chunk = 0;
  unsigned processors = 1; ///< in the affinity mask

  sparkc_profile_event *profile = nullptr; ///< null: plain entries
  size_t profileCapacity = 0;
  uint32_t profileThreads = 0;

  sparkc_progress_fn progress = nullptr;
  void *progressUser = nullptr;
  bool spmd = false; ///< between spmdBegin and spmdEnd
  uint32_t spmdGeneration = 0;
};

/// Runs an entry on an OpenMP team of n threads, or as many as there are.
void runTeam(sparkc_entry_fn entry, sparkc_ctx *ctx, uint32_t n);

/// Most threads that a call may ask for.
constexpr uint32_t maxThreads = 4096;

} // namespace sparkc

/// The handle of the C interface.
struct sparkc_session {
  sparkc::Session impl;
  sparkc_error last = {}; ///< of the latest failed call
};

#endif // SPARKC_RUNTIME_SESSION_H
