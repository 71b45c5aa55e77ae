//===- main.cpp - A host with threads of its own --------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     cpp-threads model.so [PROMPT [N [THREADS]]]
//
// Does what c-host does on std::threads: a pool that lives as long as the
// program runs each call of the compiled model (the SPMD interface). No OpenMP
// thread is ever made.
//
//===----------------------------------------------------------------------===//
#include <sparkc.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Threads that wait for a job, run it together, and wait for the next. The
/// caller of run() is thread 0.
class Pool {
public:
  explicit Pool(uint32_t n) : size(n) {
    for (uint32_t tid = 1; tid < n; ++tid)
      threads.emplace_back([this, tid] { work(tid); });
  }
  ~Pool() {
    hand(nullptr);
    for (std::thread &thread : threads)
      thread.join();
  }
  void run(const sparkc_spmd &job) {
    hand(&job);
    job.entry(job.ctx, 0, job.n_threads);
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return busy == 0; });
  }
  const uint32_t size;

private:
  void hand(const sparkc_spmd *job) {
    std::lock_guard<std::mutex> lock(mutex);
    current = job;
    busy = uint32_t(threads.size());
    ++round;
    changed.notify_all();
  }
  void work(uint32_t tid) {
    for (uint64_t seen = 0;;) {
      const sparkc_spmd *job;
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return round != seen; });
        seen = round;
        job = current;
      }
      if (!job)
        return;
      job->entry(job->ctx, tid, job->n_threads);
      std::lock_guard<std::mutex> lock(mutex);
      if (--busy == 0)
        changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  const sparkc_spmd *current = nullptr;
  uint32_t busy = 0;
  uint64_t round = 0;
  std::vector<std::thread> threads;
};

int failed(const char *what, const char *why) {
  std::fprintf(stderr, "cpp-threads: error: %s: %s\n", what, why);
  return 1;
}

/// Appends tokens to the session on the pool's threads; `logits` are the last
/// token's.
sparkc_status append(Pool &pool, sparkc_session *session,
                     const sparkc_model_info &info, const int32_t *tokens,
                     size_t n, float *logits) {
  if (n == 0)
    return SPARKC_EMPTY_PROMPT;
  for (size_t done = 0; done < n;) {
    size_t block = std::min<size_t>(info.prefill_block, n - done);
    bool last = done + block == n;
    sparkc_spmd job;
    sparkc_status status =
        sparkc_spmd_begin(session, tokens + done, block, 0,
                          last ? logits : nullptr, pool.size, &job);
    if (status != SPARKC_OK)
      return status;
    pool.run(job);
    status = sparkc_spmd_end(session, &job);
    if (status != SPARKC_OK)
      return status;
    done += block;
  }
  return SPARKC_OK;
}

bool promptTokens(const sparkc_model *model, bool hasText,
                  const std::string &prompt, std::vector<int32_t> &tokens,
                  sparkc_error &why) {
  if (!hasText) {
    std::istringstream ids(prompt);
    for (int32_t id; ids >> id;)
      tokens.push_back(id);
    return true;
  }
  tokens.resize(prompt.size() + 8); // a token has a byte at least
  size_t n = 0;
  if (sparkc_tokenize(model, prompt.data(), prompt.size(),
                      SPARKC_TOKENIZE_ADD_SPECIAL, tokens.data(), tokens.size(),
                      &n, &why) != SPARKC_OK)
    return false;
  tokens.resize(std::min(n, tokens.size()));
  return true;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return failed("usage", "cpp-threads model.so [PROMPT [N [THREADS]]]");
  const std::string prompt = argc > 2 ? argv[2] : "Once upon a time";
  const int n = argc > 3 ? std::atoi(argv[3]) : 32;
  const uint32_t threads = argc > 4 ? uint32_t(std::max(1, std::atoi(argv[4])))
                                    : std::min(sparkc_default_threads(), 64u);

  sparkc_error why = {};
  sparkc_model *model;
  if (sparkc_open(argv[1], nullptr, nullptr, &model, &why) != SPARKC_OK)
    return failed("open", why.message);
  sparkc_model_info info = {};
  info.struct_size = sizeof info;
  sparkc_info(model, &info);
  sparkc_session *session;
  if (sparkc_session_create(model, nullptr, &session, &why) != SPARKC_OK)
    return failed("session", why.message);
  sparkc_decoder *decoder = nullptr;
  if (info.has_tokenizer &&
      sparkc_decoder_create(model, 0, &decoder, &why) != SPARKC_OK)
    return failed("tokenizer", why.message);

  std::vector<int32_t> tokens;
  if (!promptTokens(model, info.has_tokenizer, prompt, tokens, why))
    return failed("prompt", why.message);

  Pool pool(threads);
  std::vector<float> logits(info.vocab);
  sparkc_status status =
      append(pool, session, info, tokens.data(), tokens.size(), logits.data());
  const char *text;
  size_t bytes;
  for (int i = 0; status == SPARKC_OK && i < n; ++i) {
    int32_t token = int32_t(std::max_element(logits.begin(), logits.end()) -
                            logits.begin());
    if (decoder) {
      if (sparkc_token_is_eos(model, token))
        break;
      status = sparkc_decoder_add(decoder, token, &text, &bytes);
      if (status != SPARKC_OK)
        break;
      std::fwrite(text, 1, bytes, stdout);
    } else {
      std::printf("%d ", token);
    }
    std::fflush(stdout);
    status = append(pool, session, info, &token, 1, logits.data());
  }
  if (decoder && sparkc_decoder_finish(decoder, &text, &bytes) == SPARKC_OK)
    std::fwrite(text, 1, bytes, stdout);
  std::putchar('\n');
  if (status != SPARKC_OK)
    failed(sparkc_status_string(status), sparkc_session_message(session));
  sparkc_decoder_destroy(decoder);
  sparkc_session_destroy(session);
  sparkc_close(model);
  return status == SPARKC_OK ? 0 : 1;
}
