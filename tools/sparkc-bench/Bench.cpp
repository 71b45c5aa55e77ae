//===- Bench.cpp - Times a compiled model ---------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Bench.h"
#include "tools/sparkc-bench/Machine.h"
#include "tools/sparkc-bench/Stats.h"
#include "tools/sparkc-bench/Team.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <unistd.h>
#include <x86intrin.h>

using namespace sparkc::bench;

/// Tokens between two measurements of the read ceiling.
static constexpr uint64_t pieceTokens = 32;
/// Ceilings that moved by more than this make a repetition void.
static constexpr double movementLimit = 0.10;

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool sparkc::bench::error(const std::string &message) {
  std::fprintf(stderr, "sparkc-bench: error: %s\n", message.c_str());
  return false;
}

bool Bench::failed(sparkc_status status) {
  if (status == SPARKC_OK)
    return false;
  progress("");
  error(options.model + ": " + sparkc_session_message(session.get()));
  return true;
}

void Bench::progress(const std::string &text) {
  if (isatty(STDERR_FILENO))
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

int32_t Bench::tokenAt(uint64_t i) const {
  return int32_t(i * 2654435761u % 4294967291u % info.vocab);
}

double Bench::cyclesPerSecond() const {
  return double(__rdtsc() - startCycles) / (now() - startSeconds);
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

bool Bench::open(Report &report) {
  sparkc_open_options open = {};
  open.struct_size = sizeof open;
  open.flags = options.synthetic ? SPARKC_OPEN_SYNTHETIC : 0;
  sparkc_error why;
  sparkc_model *opened;
  if (sparkc_open(options.model.c_str(),
                  options.weights.empty() ? nullptr : options.weights.c_str(),
                  &open, &opened, &why) != SPARKC_OK)
    return error(why.message);
  model.reset(opened);
  info.struct_size = sizeof info;
  sparkc_info(opened, &info);
  table.phases = sparkc_phases(opened, &table.n);

  uint32_t asked = options.threads ? options.threads : sparkc_default_threads();
  threads = teamSize(asked);
  if (threads < asked)
    report.notes.push_back("OpenMP gives " + std::to_string(threads) +
                           " threads of the " + std::to_string(asked) +
                           " asked for");
  logits.resize(info.vocab);
  // A step has an event for each barrier, a block of a prefill perhaps more.
  capacity = 4 * (size_t(info.barriers_per_step) + info.fold_layers) + 256;
  if (!openSession())
    return false;
  for (uint64_t i = 0; i < options.prompt; ++i)
    promptTokens.push_back(tokenAt(options.depth + i));
  return true;
}

bool Bench::openSession() {
  sparkc_session_options make = {};
  make.struct_size = sizeof make;
  make.context =
      options.depth + std::max<uint64_t>({options.prompt, options.generate, 2});
  make.threads = threads;
  sparkc_error why;
  sparkc_session *made;
  if (make.context > info.max_context)
    return error(options.model + ": " + std::to_string(make.context) +
                 " tokens are needed; the model has at most " +
                 std::to_string(info.max_context));
  if (sparkc_session_create(model.get(), &make, &made, &why) != SPARKC_OK)
    return error(options.model + ": " + why.message);
  session.reset(made);
  return true;
}

bool Bench::chooseMemory(Report &report) {
  // A job that is not run says where the weights are.
  sparkc_spmd job;
  int32_t token = 0;
  if (failed(sparkc_spmd_begin(session.get(), &token, 1, 0, nullptr, 1, &job)))
    return false;
  weights = job.ctx->weights;
  sparkc_spmd_end(session.get(), &job);

  const size_t cache = largestCacheBytes();
  const size_t enough = options.ceilingMiB
                            ? size_t(options.ceilingMiB) << 20
                            : std::max<size_t>(8 * cache, size_t(256) << 20);
  if (info.payload_bytes >= enough) {
    memory = weights;
    memoryBytes = info.payload_bytes;
    report.ceilingMemory = "the weights";
  } else {
    if (!own.allocate(enough, options.synthetic))
      return error("no memory of " + std::to_string(enough) +
                   " bytes to measure the read ceiling with");
    memory = own.data();
    memoryBytes = own.bytes();
    report.ceilingMemory = "other memory (" + std::to_string(enough / 1000000) +
                           " MB: the weights are too few)";
    if (info.payload_bytes < 2 * cache)
      report.notes.push_back(
          "the weights fit the caches: shares of the read ceiling say little");
  }
  readCeiling(memory, memoryBytes, threads, 1); // maps and reads every page
  ReadRate rate = readCeiling(memory, memoryBytes, threads);
  report.ceilingPattern = rate.pattern;
  ReadBuffer anonymous;
  if (anonymous.allocate(
          options.ceilingMiB ? enough : std::max(enough, size_t(512) << 20),
          true))
    report.hugePageCeiling =
        readCeiling(anonymous.data(), anonymous.bytes(), threads).gbps;
  return true;
}

void Bench::measureCeiling(Attempt &a) {
  ReadRate rate = readCeiling(memory, memoryBytes, threads);
  a.readSeconds.resize(rate.meanSeconds.size());
  const double before = double(a.ceilings.size());
  for (size_t i = 0; i < a.readSeconds.size(); ++i)
    a.readSeconds[i] =
        (a.readSeconds[i] * before + rate.meanSeconds[i]) / (before + 1);
  a.ceilings.push_back(rate.gbps);
}

//===----------------------------------------------------------------------===//
// Repetitions
//===----------------------------------------------------------------------===//

bool Bench::atDepth() {
  size_t have = sparkc_session_position(session.get());
  if (have > options.depth)
    return !failed(options.depth ? sparkc_rewind(session.get(), options.depth)
                                 : sparkc_reset(session.get()));
  std::vector<int32_t> tokens;
  for (uint64_t i = have; i < options.depth; ++i)
    tokens.push_back(tokenAt(i));
  return tokens.empty() || !failed(sparkc_prefill(session.get(), tokens.data(),
                                                  tokens.size(), 0, nullptr));
}

bool Bench::generate(uint64_t n, std::vector<double> *seconds) {
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t position = sparkc_session_position(session.get());
    double begin = seconds ? now() : 0;
    if (failed(sparkc_decode(session.get(), tokenAt(position), logits.data())))
      return false;
    if (seconds)
      seconds->push_back(now() - begin);
  }
  return true;
}

bool Bench::warmUp() {
  progress("warming up");
  if (!atDepth())
    return false;
  if (options.generate && !generate(std::min<uint64_t>(options.generate, 4)))
    return false;
  return !options.prompt ||
         (atDepth() &&
          !failed(sparkc_prefill(session.get(), promptTokens.data(),
                                 promptTokens.size(), 0, logits.data())));
}

bool Bench::attempt(const Result &result, Attempt &a) {
  if (!atDepth())
    return false;
  if (result.prompt)
    a.peak[0] = int8Peak(threads).tops;
  measureCeiling(a);
  for (uint64_t done = 0, piece; done < result.tokens; done += piece) {
    piece = result.prompt ? result.tokens
                          : std::min(result.tokens - done, pieceTokens);
    double begin = now();
    if (result.prompt ? failed(sparkc_prefill(session.get(),
                                              promptTokens.data(), piece, 0,
                                              logits.data()))
                      : !generate(piece))
      return false;
    a.seconds += now() - begin;
    measureCeiling(a);
  }
  if (result.prompt)
    a.peak[1] = int8Peak(threads).tops;
  return true;
}

bool Bench::measure(Result &result, Report &report) {
  std::vector<Attempt> attempts;
  std::vector<double> movements;
  const size_t wanted = options.repetitions, most = 3 * wanted + 2;
  size_t steady = 0;
  while (steady < wanted && attempts.size() < most) {
    progress(
        result.name + ": repetition " + std::to_string(steady + 1) + " of " +
        std::to_string(wanted) +
        (attempts.size() > steady
             ? ", " + std::to_string(attempts.size() - steady) + " thrown away"
             : ""));
    Attempt a;
    if (!attempt(result, a))
      return false;
    attempts.push_back(a);
    movements.push_back(a.movement());
    steady += a.movement() <= movementLimit;
  }
  for (size_t i : steadiest(movements, wanted, movementLimit)) {
    result.kept.push_back(attempts[i]);
    result.worstMovement = std::max(result.worstMovement, movements[i]);
  }
  result.discarded = attempts.size() - result.kept.size();
  if (result.worstMovement > movementLimit) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "%s: the machine was not steady in %zu attempts; kept are "
                  "repetitions across which a ceiling moved by up to %.0f %%",
                  result.name.c_str(), attempts.size(),
                  100 * result.worstMovement);
    report.notes.push_back(line);
  }
  for (float value : logits)
    result.finite &= std::isfinite(value);
  if (!result.finite)
    report.notes.push_back(result.name + ": logits are not finite");
  return true;
}

/// In each round a pass by each pattern and a step, every other round backwards:
/// all of them meet the same machine.
bool Bench::comparePasses(Report &report) {
  const std::vector<ReadPattern> &patterns = readPatterns();
  for (const ReadPattern &pattern : patterns)
    report.passes.push_back({pattern.name(), {}});
  report.passes.push_back({"a step", {}});
  for (uint32_t round = 0; round < options.readPasses; ++round) {
    progress("round " + std::to_string(round + 1) + " of " +
             std::to_string(options.readPasses));
    if (round % std::min<uint64_t>(options.generate, 64) == 0 && !atDepth())
      return false;
    for (size_t i = 0; i <= patterns.size(); ++i) {
      size_t which = round % 2 ? patterns.size() - i : i;
      std::vector<double> seconds;
      if (which < patterns.size())
        report.passes[which].gbps.push_back(
            readPass(memory, memoryBytes, threads, patterns[which]));
      else if (generate(1, &seconds))
        report.passes[which].gbps.push_back(info.bytes_per_step /
                                            seconds.front() * 1e-9);
      else
        return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Profiles
//===----------------------------------------------------------------------===//

bool Bench::setProfile(bool on) {
  if (on && room.empty())
    room.resize(capacity * threads);
  return !failed(sparkc_session_set_profile(
      session.get(), on ? room.data() : nullptr, capacity, threads));
}

bool Bench::takeEvents(CallEvents &call) {
  bool full;
  call = usedEvents(room, capacity, full);
  if (full)
    return error(options.model + ": more events of a profile than the " +
                 std::to_string(capacity) + " there is room for");
  return true;
}

bool Bench::profileGeneration(Result &result) {
  // Plain and profiled steps in turn, so that both see the same machine.
  const uint64_t pairs = std::clamp<uint64_t>(result.tokens / 2, 1, 32);
  if (!atDepth())
    return false;
  PhaseTimes times;
  std::vector<double> plain, profiled;
  std::vector<CallEvents> calls;
  for (uint64_t i = 0; i < pairs; ++i) {
    progress(result.name + ": profile");
    for (bool on : {i % 2 == 0, i % 2 != 0}) {
      if (!setProfile(on) || !generate(1, on ? &profiled : &plain))
        return false;
      if (!on)
        continue;
      calls.emplace_back();
      if (!takeEvents(calls.back()))
        return false;
      times.add(calls.back(), table);
    }
  }
  for (size_t i = calls.size() - std::min<size_t>(calls.size(), 3);
       i < calls.size(); ++i)
    traced.push_back({result.name + " step", std::move(calls[i])});
  result.phases = times;
  result.slowdown = median(profiled) / median(plain);
  return setProfile(false);
}

bool Bench::profilePrompt(Result &result) {
  const size_t block = info.has_prefill ? info.prefill_block : 1;
  constexpr size_t mostTraced = 8;
  PhaseTimes times;
  double seconds = 0;
  progress(result.name + ": profile");
  if (!atDepth() || !setProfile(true))
    return false;
  for (size_t i = 0; i < promptTokens.size(); i += block) {
    size_t n = std::min(block, promptTokens.size() - i);
    bool last = i + n == promptTokens.size();
    double begin = now();
    if (failed(sparkc_prefill(session.get(), &promptTokens[i], n, 0,
                              last ? logits.data() : nullptr)))
      return false;
    seconds += now() - begin;
    CallEvents call;
    if (!takeEvents(call))
      return false;
    times.add(call, table);
    if (i / block < mostTraced)
      traced.push_back({result.name + " tokens " + std::to_string(i) + " to " +
                            std::to_string(i + n - 1),
                        std::move(call)});
  }
  result.phases = times;
  result.slowdown = seconds * result.speed() / result.tokens;
  return setProfile(false);
}

//===----------------------------------------------------------------------===//

bool Bench::run(Report &report) {
  startCycles = __rdtsc();
  startSeconds = now();
  progress("watching the processors");
  report.busy = watchBusyFraction(0.5);
  if (report.busy && *report.busy > 0.05) {
    char line[120];
    std::snprintf(line, sizeof line,
                  "the processors were %.0f %% busy before the start: figures "
                  "are not those of an idle machine",
                  100 * *report.busy);
    report.notes.push_back(line);
  }
  if (!open(report))
    return false;
  const bool stepProfile = info.has_step_profile && table.n,
             prefillProfile =
                 stepProfile && (!info.has_prefill || info.has_prefill_profile);
  if (!options.profile.empty() && !stepProfile)
    return progress(""),
           error(options.model +
                 ": no profile entries in this model, so no timeline");
  progress("measuring the read ceiling");
  if (!chooseMemory(report) || !warmUp())
    return false;
  report.weightsInHugePages = hugePageShare(weights);
  if (options.readPasses && !comparePasses(report))
    return false;
  if (options.generate && !options.readPasses) {
    Result r;
    r.name = "tg" + std::to_string(options.generate);
    r.tokens = options.generate;
    double bytes = double(info.bytes_per_step);
    for (uint64_t i = 0; i < r.tokens; ++i)
      bytes += double(liveKvBytes(info, options.depth + i)) / r.tokens;
    r.bytesPerToken = bytes;
    if (!measure(r, report) || !atDepth())
      return false;
    uint32_t before = sparkc_session_barriers(session.get());
    if (!generate(1))
      return false;
    r.barriers = sparkc_session_barriers(session.get()) - before;
    if (stepProfile && !profileGeneration(r))
      return false;
    report.results.push_back(std::move(r));
  }
  if (options.prompt && !options.readPasses) {
    Result r;
    r.name = "pp" + std::to_string(options.prompt);
    r.prompt = true;
    r.tokens = options.prompt;
    r.operations = promptOperations(info, r.tokens);
    if (!measure(r, report) || !atDepth())
      return false;
    uint32_t before = sparkc_session_barriers(session.get());
    if (failed(sparkc_prefill(session.get(), promptTokens.data(),
                              promptTokens.size(), 0, logits.data())))
      return false;
    r.barriers = sparkc_session_barriers(session.get()) - before;
    if (prefillProfile && !profilePrompt(r))
      return false;
    report.results.push_back(std::move(r));
    report.peakInstruction = int8Peak(threads).instruction;
  }
  progress("");
  if (!stepProfile && !options.readPasses)
    report.notes.push_back("no profile entries in this model");
  report.info = info;
  report.cpu = cpuModel();
  report.threads = threads;
  report.depth = options.depth;
  report.synthetic = options.synthetic;
  return true;
}
