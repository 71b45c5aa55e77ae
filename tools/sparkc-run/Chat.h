//===- Chat.h - sparkc-run --chat -------------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_CHAT_H
#define SPARKC_TOOLS_CHAT_H

#include "tools/sparkc-run/Generate.h"

namespace sparkc::run {

/// What the command line says about a chat.
struct ChatOptions {
  bool chat = false;
  std::optional<std::string> system;
  std::optional<bool> think; ///< not given: the template's default
  bool hideThink = false;
  std::optional<std::string> templateName; ///< not given: the model's
};

/// Adds the options to the command line; after addGenerateOptions.
void addChatOptions(CLI::App &app, ChatOptions &options);

/// Reads messages and commands from standard input and streams the answers to
/// standard output; notes go to standard error. Returns the exit code.
int runChat(const Options &options, const GenerateOptions &generate,
            const ChatOptions &chat);

} // namespace sparkc::run

#endif // SPARKC_TOOLS_CHAT_H
