//===- main.cpp - Decode steps beside passes over memory ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     memory-limit [options] model.so [model.so ...]
//
// How near a decode step is to the rate at which the machine reads memory, by
// a measure that shares no code with sparkc-bench: plain loops over memory of
// its own, and steps through the C interface. Several models are stepped in
// turn, which compares builds of one model on a machine whose rate moves.
//
//===----------------------------------------------------------------------===//
#include <sparkc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace {

const char usage[] =
    "usage: memory-limit [options] MODEL.so [MODEL.so ...]\n"
    "\n"
    "Each round has, for every model in changing order, some decode steps\n"
    "between passes over 1 GiB of memory: each thread reads its part from\n"
    "beginning to end, in one, two or four streams. A turn whose best pass\n"
    "before and after differ by more than 10 % is thrown away. The others are\n"
    "sorted by the mean of these two, and of each class are printed: the rate\n"
    "of the weights (median of the turns), its share of the best and of the\n"
    "median pass (median; tenth and ninetieth percentile), and the speed in\n"
    "units of the first model's in the same round and class. The weights must\n"
    "be many times larger than the caches, or steps read from those.\n"
    "\n"
    "  -w FILE  weights of all the models (beside each)\n"
    "  -t N     threads (one a processor)\n"
    "  -r N     rounds (40)\n"
    "  -s N     steps a turn (32)\n"
    "  -p N     passes of each kind before and after (3)\n"
    "  -m MIB   memory to read (1024): many times the caches\n";

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void fail(const std::string &why) {
  std::fprintf(stderr, "memory-limit: error: %s\n", why.c_str());
  std::exit(1);
}

uint32_t number(const char *text, uint32_t most) {
  char *end;
  unsigned long value = std::strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end || value < 1 || value > most)
    fail(std::string("not a number from 1 to ") + std::to_string(most) + ": '" +
         text + "'");
  return uint32_t(value);
}

/// At share 0 to 1 of the sorted values.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, size_t(share * values.size()))];
}
double median(const std::vector<double> &values) {
  return quantile(values, 0.5);
}

//===----------------------------------------------------------------------===//
// Passes over memory
//===----------------------------------------------------------------------===//

constexpr size_t lineBytes = 64;

std::atomic<uint64_t> sink{0}; ///< so that no pass is optimised away

/// Reads lines in one, two or four streams, four vectors a turn of the loop.
template <typename Vector, size_t streams>
inline __attribute__((always_inline)) uint64_t read(const uint8_t *bytes,
                                                    size_t lines) {
  constexpr size_t run = 4 / streams;
  const size_t each = lines * lineBytes / sizeof(Vector) / streams;
  const Vector *from = reinterpret_cast<const Vector *>(bytes);
  Vector a = {}, b = {}, c = {}, d = {};
  auto at = [&](size_t k) { return from + k / run * each + k % run; };
  for (size_t i = 0; i + run <= each; i += run)
    a ^= at(0)[i], b ^= at(1)[i], c ^= at(2)[i], d ^= at(3)[i];
  a ^= b ^ c ^ d;
  return a[0] ^ a[1];
}

using Reader = uint64_t (*)(const uint8_t *, size_t);
struct Readers {
  Reader kinds[3];
};

// A set of readers for each width of vectors: with narrow ones the loops, not
// memory, may be the limit.
#define READERS(NAME, BYTES, TARGET)                                           \
  typedef uint64_t NAME##Vector __attribute__((vector_size(BYTES)));           \
  TARGET uint64_t NAME##1(const uint8_t *bytes, size_t lines) {                \
    return read<NAME##Vector, 1>(bytes, lines);                                \
  }                                                                            \
  TARGET uint64_t NAME##2(const uint8_t *bytes, size_t lines) {                \
    return read<NAME##Vector, 2>(bytes, lines);                                \
  }                                                                            \
  TARGET uint64_t NAME##4(const uint8_t *bytes, size_t lines) {                \
    return read<NAME##Vector, 4>(bytes, lines);                                \
  }                                                                            \
  const Readers NAME = {{NAME##1, NAME##2, NAME##4}};
READERS(sse2, 16, )
READERS(avx2, 32, __attribute__((target("avx2"))))
READERS(avx512, 64, __attribute__((target("avx512f"))))

const Readers &widestReaders() {
  return __builtin_cpu_supports("avx512f") ? avx512
         : __builtin_cpu_supports("avx2")  ? avx2
                                           : sse2;
}

class Memory {
public:
  Memory(size_t bytes, uint32_t threads)
      : threads(threads), part(bytes / threads / lineBytes / 4 * 4) {
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      fail("not enough memory");
    madvise(p, bytes, MADV_HUGEPAGE); // best effort, as for the weights
    std::memset(p, 1, bytes);
    start = static_cast<const uint8_t *>(p);
  }

  /// GB/s of `each` passes of every kind.
  std::vector<double> passes(uint32_t each) const {
    // When each thread began and ended each pass: a pass lasts from the first
    // beginning to the last end, however late a thread gets its processor.
    using Times = std::vector<Clock::time_point>;
    const size_t kinds = std::size(readers.kinds), count = each * kinds;
    std::vector<Times> begins(count, Times(threads)), ends = begins;
    std::atomic<size_t> arrived{0};
    auto work = [&](uint32_t thread) {
      for (size_t pass = 0; pass < count; ++pass) {
        arrived.fetch_add(1);
        while (arrived.load() < threads * (pass + 1))
          std::this_thread::yield();
        begins[pass][thread] = Clock::now();
        sink ^= readers.kinds[pass % kinds](start + part * lineBytes * thread,
                                            part);
        ends[pass][thread] = Clock::now();
      }
    };
    std::vector<std::thread> others;
    for (uint32_t thread = 1; thread < threads; ++thread)
      others.emplace_back(work, thread);
    work(0);
    for (std::thread &other : others)
      other.join();
    std::vector<double> rates;
    for (size_t pass = 0; pass < count; ++pass) {
      std::chrono::duration<double> time =
          *std::max_element(ends[pass].begin(), ends[pass].end()) -
          *std::min_element(begins[pass].begin(), begins[pass].end());
      rates.push_back(part * threads * lineBytes / time.count() / 1e9);
    }
    return rates;
  }

private:
  const uint32_t threads;
  const size_t part; ///< lines of one thread
  const Readers &readers = widestReaders();
  const uint8_t *start;
};

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

class Stepper {
public:
  Stepper(const char *so, const char *weights, uint32_t threads, uint32_t steps)
      : name(so), steps(steps) {
    sparkc_error why = {};
    if (sparkc_open(so, weights, nullptr, &model, &why) != SPARKC_OK)
      fail(why.message);
    sparkc_model_info info = {};
    info.struct_size = sizeof info;
    check(sparkc_info(model, &info));
    sparkc_session_options options = {};
    options.struct_size = sizeof options;
    options.context = steps + 1;
    options.threads = threads;
    if (sparkc_session_create(model, &options, &session, &why) != SPARKC_OK)
      fail(why.message);
    bytes = double(info.bytes_per_step);
    logits.resize(info.vocab);
  }
  Stepper(const Stepper &) = delete;
  ~Stepper() {
    sparkc_session_destroy(session);
    sparkc_close(model);
  }

  /// GB/s of the weights over a turn of steps from an empty context.
  double turn() {
    check(sparkc_reset(session));
    step(0); // wakes the threads
    Clock::time_point start = Clock::now();
    for (uint32_t i = 1; i <= steps; ++i)
      step(i);
    return bytes * steps / secondsSince(start) / 1e9;
  }

  /// Whether the last steps' logits are the same bits.
  bool sameLogits(const Stepper &other) const {
    return logits.size() == other.logits.size() &&
           !std::memcmp(logits.data(), other.logits.data(),
                        logits.size() * sizeof(float));
  }

  const std::string name;

private:
  void step(uint32_t i) {
    check(sparkc_decode(session, int32_t(i % logits.size()), logits.data()));
  }
  void check(sparkc_status status) {
    if (status != SPARKC_OK)
      fail(name + ": " + sparkc_status_string(status));
  }

  const uint32_t steps;
  sparkc_model *model = nullptr;
  sparkc_session *session = nullptr;
  double bytes = 0;
  std::vector<float> logits;
};

/// What one model had in one turn.
struct Turn {
  double rate = 0, best = 0, middle = 0; ///< GB/s: steps, best and median pass
  bool steady = false; ///< the best passes around it are close
  double speed = 0;    ///< rate / the first model's, 0: not comparable
  int level() const { return int(best / 10) * 10; }
};

void print(const std::deque<Stepper> &models,
           const std::map<int, std::vector<std::vector<Turn>>> &classes) {
  auto column = [](const std::vector<Turn> &turns, auto value) {
    std::vector<double> values;
    for (const Turn &turn : turns)
      values.push_back(value(turn));
    return values;
  };
  for (const auto &[low, byModel] : classes) {
    std::printf("best pass %d to %d GB/s\n", low, low + 10);
    for (size_t m = 0; m < models.size(); ++m) {
      const std::vector<Turn> &turns = byModel[m];
      if (turns.empty())
        continue;
      auto ofBest =
          column(turns, [](const Turn &t) { return t.rate / t.best; });
      auto ofMiddle =
          column(turns, [](const Turn &t) { return t.rate / t.middle; });
      std::printf(
          "  %s: %zu turn%s, %.1f GB/s, %.3f of the best pass (%.3f to %.3f), "
          "%.3f of the median (%.3f to %.3f)",
          models[m].name.c_str(), turns.size(), turns.size() == 1 ? "" : "s",
          median(column(turns, [](const Turn &t) { return t.rate; })),
          median(ofBest), quantile(ofBest, 0.1), quantile(ofBest, 0.9),
          median(ofMiddle), quantile(ofMiddle, 0.1), quantile(ofMiddle, 0.9));
      auto speeds = column(turns, [](const Turn &t) { return t.speed; });
      speeds.erase(std::remove(speeds.begin(), speeds.end(), 0), speeds.end());
      if (m > 0 && !speeds.empty())
        std::printf(", %.3f times the first (%zu)", median(speeds),
                    speeds.size());
      std::putchar('\n');
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  const char *weights = nullptr;
  uint32_t threads = sparkc_default_threads(), rounds = 40, steps = 32,
           passes = 3, mib = 1024;
  for (int option; (option = getopt(argc, argv, "w:t:r:s:p:m:h")) != -1;)
    switch (option) {
    case 'w': weights = optarg; break;
    case 't': threads = number(optarg, 4096); break;
    case 'r': rounds = number(optarg, 1000000); break;
    case 's': steps = number(optarg, 1000); break;
    case 'p': passes = number(optarg, 1000); break;
    case 'm': mib = number(optarg, 1 << 20); break;
    case 'h': std::fputs(usage, stdout); return 0;
    default: std::fputs(usage, stderr); return 1;
    }
  if (optind == argc) {
    std::fputs(usage, stderr);
    return 1;
  }

  std::deque<Stepper> models;
  for (int i = optind; i < argc; ++i)
    models.emplace_back(argv[i], weights, threads, steps);
  for (Stepper &model : models)
    model.turn();
  for (size_t m = 1; m < models.size(); ++m)
    std::printf("%s: %s the first\n", models[m].name.c_str(),
                models[m].sameLogits(models[0]) ? "the same bits as"
                                                : "OTHER BITS than");

  const Memory memory(size_t(mib) << 20, threads);
  std::map<int, std::vector<std::vector<Turn>>> classes;
  size_t thrown = 0;
  std::vector<double> before = memory.passes(passes);
  for (uint32_t r = 0; r < rounds; ++r) {
    std::vector<Turn> turns(models.size());
    for (size_t i = 0; i < models.size(); ++i) {
      size_t m = (i + r) % models.size();
      double rate = models[m].turn();
      std::vector<double> after = memory.passes(passes);
      double first = quantile(before, 1), second = quantile(after, 1);
      turns[m].rate = rate;
      turns[m].best = (first + second) / 2;
      turns[m].middle = (median(before) + median(after)) / 2;
      turns[m].steady =
          std::min(first, second) >= 0.9 * std::max(first, second);
      before = std::move(after);
    }
    for (size_t m = 0; m < models.size(); ++m) {
      Turn &turn = turns[m];
      if (!turn.steady) {
        ++thrown;
        continue;
      }
      if (turns[0].steady && turns[0].level() == turn.level())
        turn.speed = turn.rate / turns[0].rate;
      auto &byModel = classes[turn.level()];
      byModel.resize(models.size());
      byModel[m].push_back(turn);
    }
  }
  print(models, classes);
  std::printf("%zu of %zu turns thrown away\n", thrown,
              size_t(rounds) * models.size());
  return 0;
}
