//===- Chat.cpp - sparkc-run --chat ---------------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-run/Chat.h"
#include "tools/sparkc-run/Conversation.h"
#include "tools/sparkc-run/LineReader.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>

using namespace sparkc::run;

void sparkc::run::addChatOptions(CLI::App &app, ChatOptions &o) {
  const char *group = "Chat";
  auto *chat = app.add_flag(
      "--chat", o.chat,
      "Talk with the model; /help lists the commands. -p gives the first "
      "message, -n limits an answer");
  chat->group(group);
  app.add_option("--system", o.system, "What the model is told first")
      ->type_name("TEXT")
      ->needs(chat)
      ->group(group);
  app.add_flag("--think,!--no-think", o.think,
               "Whether the model reasons before it answers; default: what "
               "its template says")
      ->needs(chat)
      ->group(group);
  app.add_flag("--hide-think", o.hideThink, "Do not show the reasoning")
      ->needs(chat)
      ->group(group);
  app.add_option("--chat-template", o.templateName,
                 "Take this template (spark, spark-tiny), whatever the model's "
                 "is")
      ->type_name("NAME")
      ->needs(chat)
      ->group(group);
  for (const char *other : {"--file", "--ignore-eos", "--no-bos", "--plain",
                            "--no-echo", "--tokens"})
    chat->excludes(app.get_option(other));
}

static const char help[] =
    "  /reset        forget what was said\n"
    "  /save FILE    write the conversation to a file\n"
    "  /load FILE    go on with a conversation that was saved\n"
    "  /stats        tokens, speed\n"
    "  /help         this\n"
    "  /exit         end; so does Ctrl-D\n"
    "  //TEXT        say a text that begins with /\n"
    "A line that ends in \\ goes on in the next. Ctrl-C stops an answer.\n";

namespace {

/// The lines that are typed: messages and commands.
class Chat {
public:
  Chat(const Options &options, const GenerateOptions &wanted,
       const ChatOptions &chat)
      : wanted(wanted), conversation(options, wanted, chat) {}

  int run() {
    std::string why;
    if (conversation.prepare(why)) {
      catchInterrupts(/*once=*/false);
      if (talk(why))
        return code;
    }
    return why.empty() ? 1 : error(why);
  }

private:
  // False: to end with an error, its reason in `why`.

  bool talk(std::string &why) {
    if (reader.terminal())
      note("%s: %s, a context of %zu tokens. /help lists the commands.",
           conversation.model().object_path, conversation.model().scheme,
           conversation.room());
    if (wanted.prompt && !conversation.say(*wanted.prompt, why))
      return false;
    for (std::string line; !ended;) {
      interrupted = 0;
      switch (reader.read("> ", line)) {
      case LineReader::Failed:
        why = std::string("standard input: ") + std::strerror(errno);
        return false;
      case LineReader::End:
        return true;
      case LineReader::Interrupted:
        if (!reader.terminal()) {
          code = 128 + SIGINT;
          return true;
        }
        note("(/exit or Ctrl-D ends the chat)");
        continue;
      case LineReader::Line:
        break;
      }
      if (line.find_first_not_of(" \t\r\n") == line.npos)
        continue;
      if (line.compare(0, 2, "//") == 0)
        line.erase(0, 1);
      else if (line[0] == '/') {
        if (!command(line, why))
          return false;
        continue;
      }
      if (!conversation.say(line, why))
        return false;
    }
    return true;
  }

  bool command(const std::string &line, std::string &why) {
    const size_t space = std::min(line.find_first_of(" \t"), line.size());
    const std::string name = line.substr(0, space);
    const size_t from = line.find_first_not_of(" \t", space);
    std::string rest = from == line.npos ? "" : line.substr(from);
    rest.erase(rest.find_last_not_of(" \t") + 1);
    const bool needsFile = name == "/save" || name == "/load";
    if (needsFile && rest.empty())
      note("%s needs the name of a file", name.c_str());
    else if (name == "/exit" || name == "/quit")
      ended = true;
    else if (name == "/help")
      std::fputs(help, stderr);
    else if (name == "/reset")
      conversation.reset();
    else if (name == "/stats")
      conversation.stats();
    else if (name == "/save")
      return conversation.save(rest, why);
    else if (name == "/load")
      conversation.load(rest);
    else
      note("no command %s (/help lists them; //... says such a text)",
           name.c_str());
    return true;
  }

  const GenerateOptions &wanted;
  Conversation conversation;
  LineReader reader;
  bool ended = false;
  int code = 0;
};

} // namespace

int sparkc::run::runChat(const Options &options,
                         const GenerateOptions &generate,
                         const ChatOptions &chat) {
  return Chat(options, generate, chat).run();
}
