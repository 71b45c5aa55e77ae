//===- Conversation.h - What was said, and what is answered -----*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_CONVERSATION_H
#define SPARKC_TOOLS_CONVERSATION_H

#include "tools/sparkc-run/AnswerView.h"
#include "tools/sparkc-run/Chat.h"
#include "tools/sparkc-run/TextModel.h"

namespace sparkc::run {

/// A line for the person, on standard error.
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

/// A conversation with a model. Calls return false if the program is to end
/// with an error: the reason is in `why`, or printed if that is empty. What
/// does not end it is told in a note.
class Conversation {
public:
  Conversation(const Options &options, const GenerateOptions &wanted,
               const ChatOptions &chat);

  /// Opens the model, and checks that it can be talked to.
  bool prepare(std::string &why);
  /// Says something and shows the answer.
  bool say(std::string message, std::string &why);
  bool save(const std::string &file, std::string &why);
  void load(const std::string &file);
  void reset();
  void stats() const;
  const sparkc_model_info &model() const { return t.info; }
  /// Most tokens it can hold.
  size_t room() const { return sparkc_session_context(t.session.get()); }

private:
  bool special(const char *name, int32_t &token, std::string &why);
  bool render(const std::string &message, std::vector<int32_t> &all,
              std::string &why);
  bool answer(std::string &why);
  bool show(int32_t token);
  bool finishText();

  const Options &options;
  const GenerateOptions &wanted;
  const ChatOptions &chat;
  TextModel t;
  AnswerView view;
  /// All that was said, as the model sees it; the session follows it.
  std::vector<int32_t> tokens;
  int32_t thinkBegin = -1, thinkEnd = -1;
  struct {
    size_t read = 0, kept = 0;
    uint64_t written = 0;
    double readSeconds = 0, writeSeconds = 0;
  } last;
};

} // namespace sparkc::run

#endif // SPARKC_TOOLS_CONVERSATION_H
