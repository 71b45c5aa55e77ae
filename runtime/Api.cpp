//===- Api.cpp - The C interface over the runtime's classes ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Session.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace sparkc;

/// Copies a caller's option struct of its own size into one of ours: fields it
/// does not know are zero; fields we do not know must be.
template <typename T>
static Failure readOptions(const T *given, T &options, const char *what) {
  options = {};
  options.struct_size = sizeof(T);
  if (!given)
    return success();
  size_t size = given->struct_size;
  if (size < sizeof(size_t))
    return fail(SPARKC_INVALID_ARGUMENT, "%s: struct_size is not set", what);
  const char *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i])
      return fail(SPARKC_INVALID_ARGUMENT,
                  "%s: an option that this version does not know", what);
  memcpy(static_cast<void *>(&options), given, std::min(size, sizeof(T)));
  if (options.reserved)
    return fail(SPARKC_INVALID_ARGUMENT, "%s: reserved is not 0", what);
  return success();
}

static Failure isNull(const char *what) {
  return fail(SPARKC_INVALID_ARGUMENT, "%s is null", what);
}

/// Runs a call on a session and keeps the reason of its failure.
template <typename Fn>
static sparkc_status on(sparkc_session *session, Fn &&fn) {
  if (!session)
    return SPARKC_INVALID_ARGUMENT;
  Failure failure = guarded([&] { return fn(session->impl); });
  if (failure)
    report(failure, &session->last);
  return failure.status();
}

extern "C" {

sparkc_status sparkc_open(const char *so, const char *weights,
                          const sparkc_open_options *given,
                          sparkc_model **model, sparkc_error *error) {
  if (model)
    *model = nullptr;
  return report(guarded([&]() -> Failure {
                  if (!so || !model)
                    return isNull(so ? "model" : "so");
                  sparkc_open_options options;
                  if (Failure failure = readOptions(given, options, so))
                    return failure;
                  constexpr uint32_t known =
                      SPARKC_OPEN_VERIFY | SPARKC_OPEN_SYNTHETIC;
                  if (options.flags & ~known)
                    return fail(SPARKC_INVALID_ARGUMENT, "unknown flags 0x%x",
                                options.flags);
                  const bool synthetic = options.flags & SPARKC_OPEN_SYNTHETIC;
                  if (synthetic &&
                      (weights || options.flags & SPARKC_OPEN_VERIFY))
                    return fail(SPARKC_INVALID_ARGUMENT,
                                "synthetic weights come from no file");
                  auto opened = std::make_shared<Model>();
                  if (Failure failure =
                          synthetic
                              ? opened->openSynthetic(so)
                              : opened->open(so, weights ? weights : "",
                                             options.flags &
                                                 SPARKC_OPEN_VERIFY))
                    return failure;
                  *model = new sparkc_model{std::move(opened)};
                  return success();
                }),
                error);
}

void sparkc_close(sparkc_model *model) { delete model; }

sparkc_status sparkc_info(const sparkc_model *model, sparkc_model_info *info) {
  if (!model || !info || info->struct_size < sizeof(size_t))
    return SPARKC_INVALID_ARGUMENT;
  size_t size = info->struct_size;
  sparkc_model_info all = {};
  model->impl->describe(all);
  all.struct_size = size;
  memcpy(info, &all, std::min(size, sizeof all));
  if (size > sizeof all) // a newer caller: fields we do not know are zero
    memset(reinterpret_cast<char *>(info) + sizeof all, 0, size - sizeof all);
  return SPARKC_OK;
}

const sparkc_phase *sparkc_phases(const sparkc_model *model, uint32_t *n) {
  const sparkc_descriptor *d = model ? &model->impl->descriptor() : nullptr;
  if (n)
    *n = d && d->phases ? d->n_phases : 0;
  return d && d->n_phases ? d->phases : nullptr;
}

sparkc_status sparkc_session_create(const sparkc_model *model,
                                    const sparkc_session_options *given,
                                    sparkc_session **session,
                                    sparkc_error *error) {
  if (session)
    *session = nullptr;
  return report(guarded([&]() -> Failure {
                  if (!model || !session)
                    return isNull(model ? "session" : "model");
                  sparkc_session_options options;
                  if (Failure failure =
                          readOptions(given, options, "session options"))
                    return failure;
                  auto made = std::make_unique<sparkc_session>();
                  if (Failure failure = made->impl.init(model->impl, options))
                    return failure;
                  *session = made.release();
                  return success();
                }),
                error);
}

void sparkc_session_destroy(sparkc_session *session) { delete session; }

sparkc_status sparkc_prefill(sparkc_session *session, const int32_t *tokens,
                             size_t n, uint32_t flags, float *logits) {
  return on(session,
            [&](Session &s) { return s.prefill(tokens, n, flags, logits); });
}

sparkc_status sparkc_decode(sparkc_session *session, int32_t token,
                            float *logits) {
  return on(session, [&](Session &s) { return s.decode(token, logits); });
}

sparkc_status sparkc_prompt(sparkc_session *session, const int32_t *tokens,
                            size_t n, float *logits, size_t *kept) {
  size_t unwanted;
  return on(session, [&](Session &s) {
    return s.prompt(tokens, n, logits, kept ? *kept : unwanted);
  });
}

sparkc_status sparkc_reset(sparkc_session *session) {
  return on(session, [](Session &s) { return s.reset(); });
}

sparkc_status sparkc_rewind(sparkc_session *session, size_t n_tokens) {
  return on(session, [&](Session &s) { return s.rewind(n_tokens); });
}

size_t sparkc_session_position(const sparkc_session *session) {
  return session ? session->impl.position() : 0;
}

size_t sparkc_session_context(const sparkc_session *session) {
  return session ? session->impl.context() : 0;
}

const int32_t *sparkc_session_tokens(const sparkc_session *session) {
  return session ? session->impl.tokens() : nullptr;
}

const char *sparkc_session_message(const sparkc_session *session) {
  return session ? session->last.message : "session is null";
}

sparkc_status sparkc_session_set_threads(sparkc_session *session,
                                         uint32_t threads) {
  return on(session, [&](Session &s) { return s.setThreads(threads); });
}

sparkc_status sparkc_session_set_profile(sparkc_session *session,
                                         sparkc_profile_event *events,
                                         size_t capacity, uint32_t threads) {
  return on(session, [&](Session &s) {
    return s.setProfile(events, capacity, threads);
  });
}

uint32_t sparkc_session_barriers(const sparkc_session *session) {
  return session ? session->impl.barriers() : 0;
}

void sparkc_session_set_progress(sparkc_session *session, sparkc_progress_fn fn,
                                 void *user) {
  if (session)
    session->impl.setProgress(fn, user);
}

sparkc_status sparkc_session_save(const sparkc_session *session,
                                  const char *path, sparkc_error *error) {
  return report(guarded([&]() -> Failure {
                  if (!session || !path)
                    return isNull(session ? "path" : "session");
                  return session->impl.save(path);
                }),
                error);
}

sparkc_status sparkc_session_restore(sparkc_session *session, const char *path,
                                     sparkc_error *error) {
  return report(guarded([&]() -> Failure {
                  if (!session || !path)
                    return isNull(session ? "path" : "session");
                  return session->impl.restore(path);
                }),
                error);
}

sparkc_status sparkc_spmd_begin(sparkc_session *session, const int32_t *tokens,
                                size_t n, uint32_t flags, float *logits,
                                uint32_t n_threads, sparkc_spmd *job) {
  return on(session, [&](Session &s) {
    return job ? s.spmdBegin(tokens, n, flags, logits, n_threads, *job)
               : isNull("job");
  });
}

sparkc_status sparkc_spmd_end(sparkc_session *session, sparkc_spmd *job) {
  return on(session,
            [&](Session &s) { return job ? s.spmdEnd(*job) : isNull("job"); });
}

} // extern "C"
