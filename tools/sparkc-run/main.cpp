//===- main.cpp - Run a compiled model ------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/Validators.h"
#include "tools/sparkc-run/Chat.h"
#include "tools/sparkc-run/Run.h"

#include <CLI/CLI.hpp>

using namespace sparkc::run;

int main(int argc, char **argv) {
  Options options;
  GenerateOptions generate;
  ChatOptions chat;
  bool version = false;
  CLI::App app(
      "Runs a model that sparkc compiled.\n\n"
      "  sparkc-run model.so -p TEXT -n 64\n"
      "      goes on from a text: prints it and what the model adds, as it "
      "comes.\n"
      "  sparkc-run model.so --chat [--system TEXT] [--no-think]\n"
      "      talks with a model that has Spark-X2.5's chat template.\n"
      "  sparkc-run model.so --tokens FILE --logits OUT\n"
      "      reads token ids separated by white space and writes a row "
      "of logits\n"
      "      for each: raw little-endian float32 [T, vocab]. Needs no "
      "tokenizer.\n"
      "  sparkc-run model.so --version\n"
      "      says what the model is and which of its code runs here.",
      "sparkc-run");
  app.set_help_flag("-h,--help", "Print this help");
  app.add_flag("--version", version, "Print versions, and what would run");
  app.add_option("model", options.model, "Compiled model, model.so")
      ->type_name("MODEL");
  app.add_option("--weights", options.weights,
                 "Weights file; by default model.weights beside model.so")
      ->type_name("FILE");
  app.add_flag("--verify", options.verify,
               "Check all contents of the weights file first");
  app.add_option("-t,--threads", options.threads,
                 "Threads; by default as many as the process has processors "
                 "(affinity, CPU quota)")
      ->type_name("N")
      ->check(sparkc::threadCount());
  app.add_option("--context", options.context,
                 "Most tokens the session holds; by default what the model "
                 "was compiled for")
      ->type_name("N")
      ->check(sparkc::integerFrom(1));
  auto *tokens = app.add_option("--tokens", options.tokens,
                                "Token ids, separated by white space")
                     ->type_name("FILE")
                     ->group("Logits of given tokens");
  auto *logits = app.add_option("--logits", options.logits,
                                "Where the logits go: float32 [T, vocab]")
                     ->type_name("OUT")
                     ->group("Logits of given tokens");
  auto *chunk =
      app.add_option("--prefill-chunk", options.prefillChunk,
                     "Tokens computed a call; changes no bit of the result")
          ->type_name("N")
          ->check(sparkc::integerFrom(1))
          ->needs(tokens)
          ->group("Logits of given tokens");
  app.add_flag("--decode", options.decode, "Token by token, without prefill")
      ->needs(tokens)
      ->excludes(chunk)
      ->group("Logits of given tokens");
  addGenerateOptions(app, generate);
  addChatOptions(app, chat);
  tokens->needs(logits);
  logits->needs(tokens);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &wrong) {
    std::string what = wrong.what();
    return error(what.substr(0, what.find('\n')));
  }
  try {
    if (version)
      return runVersion(options);
    if (options.model.empty())
      return error("no model given (see --help)");
    if (!options.tokens.empty())
      return runLogits(options);
    if (chat.chat) {
      if (app.count("--n-predict") == 0)
        generate.tokens = -1;
      return runChat(options, generate, chat);
    }
    return runGenerate(options, generate);
  } catch (const std::bad_alloc &) {
    return error("out of memory");
  }
}
