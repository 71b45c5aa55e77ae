//===- Conversation.cpp - What was said, and what is answered -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-run/Conversation.h"
#include "tools/sparkc-run/LineReader.h"

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <unistd.h>

using namespace sparkc::run;

void sparkc::run::note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  std::vfprintf(stderr, format, args);
  va_end(args);
  std::fputc('\n', stderr);
}

Conversation::Conversation(const Options &options,
                           const GenerateOptions &wanted,
                           const ChatOptions &chat)
    : options(options), wanted(wanted), chat(chat),
      view(understandsEscapes(STDOUT_FILENO), chat.hideThink) {}

bool Conversation::prepare(std::string &why) {
  if (!t.open(options, wanted, why) ||
      !t.begin(options, wanted, t.info.default_context, why) ||
      !special("<think>", thinkBegin, why) ||
      !special("</think>", thinkEnd, why))
    return false;
  std::vector<int32_t> none;
  return render("", none, why); // asks for the template, while there is time
}

/// The token of a name; -1 if it is none.
bool Conversation::special(const char *name, int32_t &token, std::string &why) {
  std::vector<int32_t> ids;
  if (!t.tokenize(name, SPARKC_TOKENIZE_PARSE_SPECIAL, ids, why))
    return false;
  token = ids.size() == 1 ? ids[0] : -1;
  return true;
}

/// Appends a message, and the markup up to where an answer begins.
bool Conversation::render(const std::string &message,
                          std::vector<int32_t> &all, std::string &why) {
  std::vector<sparkc_message> turns;
  if (all.empty() && chat.system)
    turns.push_back(
        {SPARKC_ROLE_SYSTEM, 0, chat.system->c_str(), nullptr, nullptr});
  turns.push_back({SPARKC_ROLE_USER, 0, message.c_str(), nullptr, nullptr});
  sparkc_chat_options how = {};
  how.struct_size = sizeof how;
  how.flags = all.empty() ? 0 : SPARKC_CHAT_CONTINUE;
  how.thinking = !chat.think  ? SPARKC_THINKING_DEFAULT
                 : *chat.think ? SPARKC_THINKING_ON
                               : SPARKC_THINKING_OFF;
  how.template_name =
      chat.templateName ? chat.templateName->c_str() : nullptr;
  const size_t before = all.size();
  size_t count = message.size() + 64;
  for (size_t room = 0; room < count;) {
    room = count;
    all.resize(before + room);
    sparkc_error failure;
    sparkc_status status = sparkc_chat_tokenize(
        t.model.get(), turns.data(), turns.size(), &how,
        all.data() + before, room, &count, &failure);
    if (status != SPARKC_OK) {
      why = failure.message;
      if (status == SPARKC_NO_CHAT_TEMPLATE)
        why += " (--chat-template spark; -p)";
      return false;
    }
  }
  all.resize(before + count);
  return true;
}

bool Conversation::say(std::string message, std::string &why) {
  for (size_t at; (at = message.find('\0')) != message.npos;)
    message.replace(at, 1, "\xef\xbf\xbd"); // C strings end there
  std::vector<int32_t> prompt = tokens;
  if (!render(message, prompt, why))
    return false;
  sparkc_session *session = t.session.get();
  if (prompt.size() >= room()) {
    note("(no room: %zu tokens were said and this makes %zu, the context "
         "holds %zu; /reset begins anew, --context N makes a larger one)",
         tokens.size(), prompt.size(), room());
    return true;
  }
  Clock::time_point begin = Clock::now();
  size_t kept = 0;
  sparkc_status status = sparkc_prompt(session, prompt.data(), prompt.size(),
                                       t.logits.data(), &kept);
  if (status == SPARKC_CANCELLED) {
    note("(stopped before it was read; it was not said)");
    return true;
  }
  if (status != SPARKC_OK) {
    why = t.sessionMessage();
    return false;
  }
  last = {};
  last.kept = kept;
  last.read = prompt.size() - kept;
  last.readSeconds = secondsSince(begin);
  tokens = std::move(prompt);
  return answer(why);
}

bool Conversation::answer(std::string &why) {
  sparkc_session *session = t.session.get();
  bool thinking = tokens.back() == thinkBegin && thinkBegin >= 0;
  const bool limited = wanted.tokens >= 0;
  const char *cut = nullptr; // why it ended before the model ended it
  bool good = !thinking || view.beginReasoning();
  Clock::time_point begin = Clock::now();
  while (good) {
    if (limited && last.written >= uint64_t(wanted.tokens))
      cut = "the limit of tokens (-n)";
    else if (tokens.size() == room())
      cut = "the end of the context";
    else if (interrupted)
      cut = "Ctrl-C";
    int32_t token;
    if (cut)
      break;
    if (!t.sample(token, why))
      return false;
    // A model that begins another turn has ended its own.
    if (sparkc_token_is_eos(t.model.get(), token) || token == t.text.bos)
      break;
    tokens.push_back(token);
    ++last.written;
    if (token == thinkBegin && last.written == 1 && !thinking) {
      thinking = true;
      good = view.beginReasoning();
    } else if (token == thinkEnd && thinking) {
      thinking = false;
      good = finishText() && view.endReasoning();
    } else {
      good = show(token);
    }
    if (good && sparkc_decode(session, token, t.logits.data()) != SPARKC_OK) {
      why = t.sessionMessage();
      return false;
    }
  }
  last.writeSeconds = secondsSince(begin);
  good = good && finishText() && view.finish();
  if (!good) {
    why = std::string("standard output: ") + std::strerror(errno);
    return false;
  }
  if (cut)
    note(thinking ? "(%s ended the reasoning: there is no answer)"
                  : "(%s ended the answer)",
         cut);
  if (thinking && tokens.size() < room())
    tokens.push_back(thinkEnd); // as the template writes every turn
  return true;
}

bool Conversation::show(int32_t token) {
  const char *text;
  size_t bytes;
  return sparkc_decoder_add(t.decoder.get(), token, &text, &bytes) ==
             SPARKC_OK &&
         view.text({text, bytes});
}

bool Conversation::finishText() {
  const char *text;
  size_t bytes;
  return sparkc_decoder_finish(t.decoder.get(), &text, &bytes) == SPARKC_OK &&
         view.text({text, bytes});
}

void Conversation::reset() {
  tokens.clear(); // the session keeps what the next one begins with alike
  last = {};
  note("(nothing was said)");
}

bool Conversation::save(const std::string &file, std::string &why) {
  sparkc_session *session = t.session.get();
  sparkc_status status = SPARKC_OK;
  if (tokens.empty())
    status = sparkc_reset(session);
  else // what was sampled last is not in the session yet
    status = sparkc_prompt(session, tokens.data(), tokens.size(), nullptr,
                           nullptr);
  if (status == SPARKC_CANCELLED) {
    note("(stopped, nothing was saved)");
    return true;
  }
  if (status != SPARKC_OK) {
    why = t.sessionMessage();
    return false;
  }
  sparkc_error failure;
  if (sparkc_session_save(session, file.c_str(), &failure) == SPARKC_OK)
    note("(%zu tokens saved)", tokens.size());
  else
    note("(not saved: %s)", failure.message);
  return true;
}

void Conversation::load(const std::string &file) {
  sparkc_session *session = t.session.get();
  sparkc_error failure;
  sparkc_status status =
      sparkc_session_restore(session, file.c_str(), &failure);
  if (status != SPARKC_OK) {
    note("(not loaded: %s)", failure.message);
    return;
  }
  const int32_t *held = sparkc_session_tokens(session);
  tokens.assign(held, held + sparkc_session_position(session));
  last = {};
  note("(%zu tokens loaded)", tokens.size());
}

void Conversation::stats() const {
  note("conversation  %zu tokens of %zu", tokens.size(), room());
  note("last message  %zu tokens computed, %zu kept from before, %.1f "
       "tokens/s",
       last.read, last.kept, perSecond(double(last.read), last.readSeconds));
  note("last answer   %llu tokens, %.1f tokens/s",
       static_cast<unsigned long long>(last.written),
       perSecond(double(last.written), last.writeSeconds));
  if (t.sampled)
    note("seed          %llu", static_cast<unsigned long long>(t.seed));
}
