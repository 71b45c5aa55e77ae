//===- Bench.h - Times a compiled model -------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_BENCH_BENCH_H
#define SPARKC_TOOLS_BENCH_BENCH_H

#include "runtime/include/sparkc.h"
#include "tools/sparkc-bench/Ceiling.h"
#include "tools/sparkc-bench/Peak.h"
#include "tools/sparkc-bench/Profile.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sparkc::bench {

/// What the command line says.
struct Options {
  std::string model;
  std::string weights; ///< empty: beside the model
  uint32_t threads = 0;
  uint64_t prompt = 512;
  uint64_t generate = 128;
  uint32_t repetitions = 5;
  uint64_t depth = 0;
  bool synthetic = false;
  std::string output = "md"; ///< or "json"
  std::string profile;       ///< file for the timeline; empty: none
  uint32_t readPasses = 0;   ///< rounds of passes and steps; 0: the tests
  /// MiB for the read ceiling where the weights are fewer; 0: 8 times the
  /// largest cache, at least 256.
  uint32_t ceilingMiB = 0;
};

/// Prints `sparkc-bench: error: <message>` and returns false.
bool error(const std::string &message);

/// A repetition that was run.
struct Attempt {
  double seconds = 0;
  /// Read ceilings, GB/s: before, between pieces of many tokens, and after.
  std::vector<double> ceilings;
  /// Seconds that each pattern of reading took for 1e9 bytes, the mean of all
  /// its passes within the attempt.
  std::vector<double> readSeconds;
  double peak[2] = {};     ///< int8 peak before and after (prompts), TOPS
  double movement() const; ///< of whichever moved more, 0 to 1
  double ceiling() const;  ///< the mean
};

/// What one test found.
struct Result {
  std::string name; ///< "tg128", "pp512"
  bool prompt = false;
  uint64_t tokens = 0;
  std::vector<Attempt> kept;
  size_t discarded = 0;                ///< attempts thrown away
  double worstMovement = 0;            ///< among those kept
  uint32_t barriers = 0;               ///< a step (a whole prompt), counted
  bool finite = true;                  ///< no logit was NaN or infinite
  std::optional<double> bytesPerToken; ///< generation only
  std::optional<PhaseTimes> phases;    ///< of the profile entry
  std::optional<double> slowdown;      ///< its time / the plain entry's

  double speed() const; ///< tokens a second: the median
  double speedDeviation() const;
  double ceiling() const; ///< GB/s: median of the repetitions' means
  std::optional<double> ceilingShare() const;
  /// GB/s of the pattern of reading with the best mean over all passes within
  /// the repetitions: what memory gave while they ran, delays included.
  std::optional<double> sustained() const;
  /// All bytes of the repetitions over all their time, as a share of
  /// sustained().
  std::optional<double> sustainedShare() const;
  std::optional<double> linearShare() const;
  std::optional<double> attentionShare() const;
  std::optional<double> otherShare() const;
  std::optional<double> waitShare() const;

  double operations = 0;              ///< of the linear layers, whole prompt
  std::optional<double> peak() const; ///< TOPS: median of the means
  std::optional<double> peakShare() const;
  std::optional<double> peakShareLinear() const;
};

/// How fast something that reads the weights once was, round after round.
struct Pass {
  std::string name;
  std::vector<double> gbps;
};

/// Everything that a report says. Some of it is the model's: for as long as
/// the Bench lives.
struct Report {
  sparkc_model_info info = {};
  std::string cpu;
  std::optional<double> busy; ///< of the processors, before the start
  uint32_t threads = 0;
  uint64_t depth = 0;
  bool synthetic = false;
  std::string ceilingMemory;  ///< what the ceiling is measured over
  ReadPattern ceilingPattern; ///< the best at the start
  /// Of the weights that steps have read, in 2 MiB pages; what the system does
  /// not tell: none.
  std::optional<double> weightsInHugePages;
  double hugePageCeiling = 0; ///< over 2 MiB anonymous pages, at the start
  const char *peakInstruction = nullptr;
  std::vector<Result> results;
  std::vector<Pass> passes; ///< in place of results
  std::vector<std::string> notes; ///< warnings, one line each
};

/// Bytes of keys and values that a step at position `pos` reads.
uint64_t liveKvBytes(const sparkc_model_info &info, uint64_t pos);

/// Multiply-adds of the linear layers, times two, for a prompt: every token
/// passes through all of them but the head, which is computed once.
double promptOperations(const sparkc_model_info &info, uint64_t tokens);

/// The two forms of a report.
std::string reportJson(const Report &report);
std::string reportMarkdown(const Report &report);

struct ModelDeleter {
  void operator()(sparkc_model *m) const { sparkc_close(m); }
};
struct SessionDeleter {
  void operator()(sparkc_session *s) const { sparkc_session_destroy(s); }
};

/// Runs the tests of the options.
class Bench {
public:
  explicit Bench(const Options &options) : options(options) {}
  /// False after printing why.
  bool run(Report &report);
  const std::vector<TracedCall> &tracedCalls() const { return traced; }
  const PhaseTable &phaseTable() const { return table; }
  double cyclesPerSecond() const;

private:
  bool open(Report &report);
  bool openSession();
  bool chooseMemory(Report &report);
  bool warmUp();
  bool measure(Result &result, Report &report);
  bool attempt(const Result &result, Attempt &attempt);
  /// Makes the session hold `depth` tokens; false after printing why not.
  bool atDepth();
  bool generate(uint64_t n, std::vector<double> *seconds = nullptr);
  bool comparePasses(Report &report);
  bool profileGeneration(Result &result);
  bool profilePrompt(Result &result);
  bool setProfile(bool on);
  bool takeEvents(CallEvents &call);
  bool failed(sparkc_status status);
  void progress(const std::string &text);
  void measureCeiling(Attempt &attempt);
  int32_t tokenAt(uint64_t i) const;

  const Options &options;
  std::unique_ptr<sparkc_model, ModelDeleter> model;
  std::unique_ptr<sparkc_session, SessionDeleter> session;
  sparkc_model_info info = {};
  PhaseTable table;
  uint32_t threads = 1;
  std::vector<float> logits;
  std::vector<int32_t> promptTokens;
  ReadBuffer own; ///< empty if the weights serve
  const uint8_t *weights = nullptr;
  const uint8_t *memory = nullptr; ///< that the ceiling is measured over
  size_t memoryBytes = 0;
  std::vector<sparkc_profile_event> room;
  size_t capacity = 0;
  std::vector<TracedCall> traced;
  uint64_t startCycles = 0;
  double startSeconds = 0;
};

} // namespace sparkc::bench

#endif // SPARKC_TOOLS_BENCH_BENCH_H
