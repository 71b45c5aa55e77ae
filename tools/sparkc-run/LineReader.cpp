//===- LineReader.cpp - What a person types -------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-run/LineReader.h"
#include "tools/sparkc-run/TextModel.h"

#include <histedit.h>

#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <langinfo.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace sparkc::run;

static volatile std::sig_atomic_t resized = 0;
static int wakeup = -1; ///< an eventfd, readable after wakeReader()

void sparkc::run::wakeReader() {
  const int saved = errno;
  const uint64_t one = 1;
  if (wakeup >= 0)
    (void)!write(wakeup, &one, sizeof one);
  errno = saved;
}

/// read() of standard input that also ends, with EINTR, when a signal was
/// caught before it began, or on another thread.
static ssize_t readInput(char *bytes, size_t size) {
  for (;;) {
    pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {wakeup, POLLIN, 0}};
    if (poll(files, 2, -1) < 0 && errno != EINTR)
      return -1;
    uint64_t count;
    if (files[1].revents & POLLIN)
      (void)!read(wakeup, &count, sizeof count);
    if (interrupted || resized) {
      errno = EINTR;
      return -1;
    }
    if (files[0].revents)
      return read(STDIN_FILENO, bytes, size);
  }
}

/// libedit's line editor. Its own reading and signal handling is not used: it
/// goes on reading after Ctrl-C.
class LineReader::Editor {
public:
  Editor() {
    // Text is UTF-8 whatever the locale; libedit needs one to know its width.
    if (!std::setlocale(LC_CTYPE, "") ||
        std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
      std::setlocale(LC_CTYPE, "C.UTF-8");
    struct sigaction action = {};
    action.sa_handler = [](int) {
      resized = 1;
      wakeReader();
    };
    sigaction(SIGWINCH, &action, nullptr);

    edit = el_init("sparkc-run", stdin, stdout, stderr);
    history = history_init();
    if (!edit || !history)
      return;
    HistEvent event;
    ::history(history, &event, H_SETSIZE, 1000);
    ::history(history, &event, H_SETUNIQUE, 1);
    el_set(edit, EL_CLIENTDATA, this);
    el_set(edit, EL_PROMPT, +[](EditLine *e) { return of(e)->prompt.data(); });
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_HIST, ::history, history);
    el_set(edit, EL_GETCFN, +[](EditLine *e, wchar_t *c) {
      return of(e)->character(*c);
    });
    el_set(edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit, nullptr); // ~/.editrc
  }
  ~Editor() {
    if (history)
      history_end(history);
    if (edit)
      el_end(edit);
  }
  Editor(const Editor &) = delete;
  Editor &operator=(const Editor &) = delete;

  bool works() const { return edit && history; }

  Result read(const char *shown, std::string &line) {
    prompt = shown;
    int count = 0;
    failure = 0;
    el_resize(edit);
    el_set(edit, EL_PREP_TERM, 1); // else once the prompt is there
    const char *text = el_gets(edit, &count);
    if (!text || count <= 0) {
      std::fputc('\n', stdout);
      std::fflush(stdout);
      errno = failure;
      return interrupted ? Interrupted : failure ? Failed : End;
    }
    line.assign(text, size_t(count));
    HistEvent event;
    if (line.find_first_not_of(" \t\n") != line.npos)
      ::history(history, &event, H_ENTER, text);
    if (line.back() == '\n')
      line.pop_back();
    return Line;
  }

private:
  static Editor *of(EditLine *e) {
    void *self = nullptr;
    el_get(e, EL_CLIENTDATA, &self);
    return static_cast<Editor *>(self);
  }

  /// 1 and the next character, 0 at the end, -1 if interrupted.
  int character(wchar_t &c) {
    char bytes[MB_LEN_MAX];
    for (size_t n = 0;;) {
      const ssize_t got = readInput(bytes + n, 1);
      if (got < 0 && errno == EINTR && !interrupted) {
        if (resized) {
          resized = 0;
          el_resize(edit);
        }
        continue;
      }
      if (got < 0) {
        failure = errno;
        return -1;
      }
      if (got == 0)
        return 0;
      std::mbstate_t state = {};
      const size_t used = std::mbrtowc(&c, bytes, ++n, &state);
      if (used == size_t(-2) && n < sizeof bytes)
        continue; // its other bytes are to come
      if (used <= n)
        return 1;
      n = 0; // no character: dropped
    }
  }

  EditLine *edit = nullptr;
  History *history = nullptr;
  std::string prompt;
  int failure = 0; ///< errno of a read that failed
};

bool sparkc::run::understandsEscapes(int file) {
  const char *kind = std::getenv("TERM");
  return isatty(file) && kind && *kind && std::strcmp(kind, "dumb") != 0;
}

LineReader::LineReader() : isTerminal(isatty(STDIN_FILENO)) {
  if (wakeup < 0)
    wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!isTerminal || !understandsEscapes(STDOUT_FILENO))
    return;
  editor = std::make_unique<Editor>();
  if (!editor->works())
    editor.reset();
}

LineReader::~LineReader() = default;

LineReader::Result LineReader::readPlain(const char *prompt,
                                         std::string &line) {
  if (isTerminal)
    std::fputs(prompt, stderr);
  for (size_t looked = 0;;) {
    const size_t end = buffer.find('\n', looked);
    if (end != buffer.npos || (ended && !buffer.empty())) {
      line = buffer.substr(0, end);
      buffer.erase(0, end == buffer.npos ? end : end + 1);
      if (!line.empty() && line.back() == '\r')
        line.pop_back();
      return Line;
    }
    if (ended)
      return End;
    looked = buffer.size();
    char bytes[4096];
    const ssize_t n = readInput(bytes, sizeof bytes);
    if (n > 0)
      buffer.append(bytes, size_t(n));
    else if (n == 0)
      ended = true;
    else if (errno != EINTR)
      return Failed;
    else if (interrupted)
      return Interrupted;
  }
}

LineReader::Result LineReader::read(const char *prompt, std::string &line) {
  line.clear();
  for (std::string part;;) {
    const Result result =
        editor ? editor->read(prompt, part) : readPlain(prompt, part);
    if (result == End && !line.empty())
      return Line; // after a backslash; the next read tells the end again
    if (result != Line) {
      line.clear();
      return result;
    }
    line += part;
    if (line.empty() || line.back() != '\\')
      return Line;
    line.back() = '\n';
    prompt = "| ";
  }
}
