//===- main.cpp - How well a compiled model predicts a text ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/include/sparkc.h"
#include "tools/common/Validators.h"
#include "tools/sparkc-eval/Evaluation.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

using namespace sparkc::eval;

static int fail(const std::string &message) {
  std::fprintf(stderr, "sparkc-eval: error: %s\n", message.c_str());
  return 1;
}

static const char kMethod[] =
    "Method: the text is tokenized as a whole (markup in it is text) and cut "
    "into\nconsecutive windows; what is left at its end is not used. Each "
    "window starts from\nan empty session. If the tokenizer's config asks for a "
    "BOS, it replaces the first\ntoken of each window; nothing is added "
    "otherwise. Scored are the predictions made\nat positions window/2 to "
    "window-2 of each window (at 0 to window-2 with\n--all-positions): 255 of "
    "512, those that llama-perplexity scores.\n\n"
    "  perplexity  exp of the mean of -ln p(next token)\n"
    "  increase    perplexity / the reference's - 1; its error is that of the "
    "paired\n              losses\n"
    "  KL          KL(reference || model) at each position, in nats: mean and "
    "99th\n              percentile\n"
    "  top-1       share of positions where both hold the same token "
    "likeliest\n"
    "  greedy      model and reference each go on greedily from the first half "
    "of a\n              window, for --greedy tokens: the share of those tokens "
    "before the\n              two first differ, a mean over windows\n\n"
    "Losses and KL are computed in float64 from float32 logits. +- is one "
    "standard error,\nwith positions (for greedy: windows) taken as "
    "independent.\n\n"
    "JSON keys: tokens, perplexity, perplexity_stderr, reference_perplexity, "
    "increase,\nincrease_stderr, kl_mean, kl_stderr, kl_p99, top1_agreement, "
    "top1_stderr,\ngreedy_agreement, greedy_stderr (null without a reference), "
    "and what was run.";

/// Declares the options; false and `code` set if the program ends here.
static bool parse(int argc, char **argv, Options &options, int &code) {
  std::string output = "text";
  CLI::App app("Measures how well a compiled model predicts a text, and how "
               "close it stays to\na reference build of the same model.",
               "sparkc-eval");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version",
                       std::string("sparkc-eval ") + sparkc_version());
  app.add_option("model", options.model, "Compiled model, model.so")
      ->type_name("MODEL")
      ->required();
  app.add_option("--weights", options.weights,
                 "Its weights file; by default model.weights beside model.so")
      ->type_name("FILE");
  auto *text = app.add_option("--text", options.text, "Text to evaluate on")
                   ->type_name("FILE");
  app.add_option("--tokens", options.tokens,
                 "Token ids separated by white space instead of a text; needs "
                 "no tokenizer, and no BOS is put in")
      ->type_name("FILE")
      ->excludes(text);
  auto *reference =
      app.add_option("--reference", options.reference,
                     "Compare with this build, usually an unquantized one")
          ->type_name("MODEL");
  app.add_option("--reference-weights", options.referenceWeights,
                 "Weights file of the reference")
      ->type_name("FILE")
      ->needs(reference);
  app.add_option("--window", options.window, "Tokens of a window")
      ->type_name("N")
      ->check(CLI::Range(2, 1 << 24))
      ->capture_default_str();
  app.add_option("--windows", options.windows,
                 "Only the first N windows of the text")
      ->type_name("N")
      ->check(sparkc::positive());
  app.add_flag("--all-positions", options.allPositions,
               "Score all of each window, not its second half");
  app.add_option("--greedy", options.greedy,
                 "Tokens of the greedy continuations; 0: none")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("-t,--threads", options.threads,
                 "Threads; by default as many as the process has processors. "
                 "Changes no figure")
      ->type_name("N")
      ->check(sparkc::threadCount());
  app.add_option("-o,--output", output, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_flag("--quiet", options.quiet, "No progress bar");
  app.footer(kMethod);
  code = 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &wanted) { // help, version
    code = app.exit(wanted);
    return false;
  } catch (const CLI::ParseError &wrong) {
    std::string what = wrong.what();
    code = fail(what.substr(0, what.find('\n')));
    return false;
  }
  if (options.text.empty() && options.tokens.empty()) {
    code = fail("no text given: --text or --tokens is required");
    return false;
  }
  options.json = output == "json";
  return true;
}

int main(int argc, char **argv) {
  try {
    Options options;
    int code;
    if (!parse(argc, argv, options, code))
      return code;
    Result result;
    std::string why;
    if (!evaluate(options, result, why))
      return fail(why);
    if (!print(options, result))
      return fail(std::string("standard output: ") + std::strerror(errno));
    return 0;
  } catch (const std::bad_alloc &) {
    return fail("out of memory");
  }
}
