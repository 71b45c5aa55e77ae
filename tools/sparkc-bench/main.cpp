//===- main.cpp - Time a compiled model -----------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/Validators.h"
#include "tools/sparkc-bench/Bench.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <fstream>

using namespace sparkc::bench;

static void addOptions(CLI::App &app, Options &o) {
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", sparkc_version(), "Print the version");
  app.add_option("model", o.model, "Compiled model, model.so")
      ->type_name("MODEL");
  auto *weights =
      app.add_option("--weights", o.weights,
                     "Weights file; by default model.weights beside model.so")
          ->type_name("FILE");
  app.add_flag("--synthetic-weights", o.synthetic,
               "Fill memory with fixed numbers in place of a weights file")
      ->excludes(weights);
  app.add_option("-t,--threads", o.threads,
                 "Threads; by default as many as the process has processors "
                 "(affinity, CPU quota)")
      ->type_name("N")
      ->check(sparkc::threadCount());
  app.add_option("-p,--prompt", o.prompt,
                 "Tokens of the prompt test; 0 leaves it out")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("-n,--generate", o.generate,
                 "Tokens of the generation test; 0 leaves it out")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("-r,--repetitions", o.repetitions, "Repetitions of each test")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--depth", o.depth, "Tokens in the context before each test")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--ceiling-memory", o.ceilingMiB,
                 "MiB to measure the read ceiling with where the weights are "
                 "fewer; by default 8 times the largest cache, at least 256")
      ->type_name("MIB")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("-o,--output", o.output, "md or json")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"md", "json"}));
  app.add_option("--read-passes", o.readPasses,
                 "In place of the tests N rounds: in each, a pass over the "
                 "weights by each pattern of the read ceiling, and a step")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  app.add_option("--profile", o.profile,
                 "Write a timeline of some calls: a line a thread, in the "
                 "Chrome trace format (ui.perfetto.dev opens it)")
      ->type_name("FILE.json");
}

static int fail(const std::string &message) {
  error(message);
  return 1;
}

int main(int argc, char **argv) {
  Options options;
  CLI::App app(
      "Times a model that sparkc compiled, and the machine with it.\n\n"
      "tgN generates N tokens one by one, ppN reads a prompt of N tokens. The\n"
      "median of the repetitions is printed. Before and after each of them,\n"
      "and after each 32 tokens that are generated, the tool measures how fast\n"
      "the same threads read memory (the weights, if they are much larger than\n"
      "the caches): the best of several patterns is the ceiling, and the mean\n"
      "counts. A repetition across which it moved by more than 10 % is\n"
      "thrown away and repeated; if too many are, the steadiest are kept and\n"
      "a note says so. For prompts the int8 peak of the processor is measured\n"
      "too, and counts alike.",
      "sparkc-bench");
  app.footer(
      "-o json prints an array of objects:\n"
      "  test                tg128, pp512\n"
      "  isa, isa_reason     which code runs, and why\n"
      "  tokens_per_second   median; stddev over the repetitions\n"
      "  bytes_per_token     packed weights and live keys and values, each "
      "once\n"
      "  read_ceiling_gbps   1e9 bytes a second\n"
      "  ceiling_share       bytes_per_token * tokens_per_second / ceiling\n"
      "  read_sustained_gbps of the pattern with the best mean over all passes\n"
      "                      within the repetitions: that mean\n"
      "  sustained_share     bytes of all repetitions / their time / the\n"
      "                      sustained rate\n"
      "  barriers            counted: of a step, of the whole prompt\n"
      "  share_linear, share_attention, share_other\n"
      "                      of the time of the profile entries' calls, waits\n"
      "                      at barriers included\n"
      "  profile_slowdown    time of a profile entry / of the plain one\n"
      "Of prompts:\n"
      "  peak_tops           int8 peak, a multiply-add counted as two\n"
      "  peak_share          operations of the linear layers / time of the\n"
      "                      whole prompt / peak\n"
      "  peak_share_linear   the same over the time of the linear layers\n"
      "and more that is named like what it is. What is not known is null.\n\n"
      "SPARKC_ISA=avx2 (avxvnni, ...) in the environment picks the code to "
      "run.\nRun it on an idle machine: a warning tells if it is not.");
  addOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion &version) {
    return app.exit(version);
  } catch (const CLI::ParseError &wrong) {
    std::string what = wrong.what();
    return fail(what.substr(0, what.find('\n')));
  }
  if (options.model.empty())
    return fail("no model given (see --help)");
  if (!options.prompt && !options.generate)
    return fail("nothing to do: -p and -n are both 0");
  if (options.readPasses && (options.output == "json" || !options.profile.empty()))
    return fail("--read-passes runs no test: there is no JSON and no timeline");
  if (options.readPasses && !options.generate)
    return fail("--read-passes needs a generation: -n is 0");

  try {
    Bench bench(options);
    Report report;
    if (!bench.run(report))
      return 1;
    if (!options.profile.empty()) {
      std::ofstream out(options.profile, std::ios::binary);
      out << traceJson(bench.tracedCalls(), bench.phaseTable(),
                       bench.cyclesPerSecond());
      if (!out.flush())
        return fail(options.profile + ": cannot write");
    }
    std::string text =
        options.output == "json" ? reportJson(report) : reportMarkdown(report);
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      return fail("cannot write the report");
    return 0;
  } catch (const std::bad_alloc &) {
    return fail("out of memory");
  }
}
