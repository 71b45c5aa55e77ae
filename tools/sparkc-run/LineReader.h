//===- LineReader.h - What a person types -----------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_LINEREADER_H
#define SPARKC_TOOLS_LINEREADER_H

#include <memory>
#include <string>

namespace sparkc::run {

/// Whether a file is a terminal that understands escape sequences.
bool understandsEscapes(int file);

/// Ends a read of a LineReader that waits, so that it looks at what a signal
/// handler has set. For such handlers, on any thread.
void wakeReader();

/// Reads lines of standard input. On a terminal they can be edited (libedit:
/// Emacs keys, history, ~/.editrc); else they are taken as they are.
class LineReader {
public:
  enum Result {
    Line,        ///< `line`, without its end
    Interrupted, ///< Ctrl-C; `line` is empty
    End,         ///< no more of them
    Failed       ///< errno says why
  };

  LineReader();
  ~LineReader();

  /// A line that ends in a backslash goes on in the next.
  Result read(const char *prompt, std::string &line);

  /// Whether standard input is a terminal.
  bool terminal() const { return isTerminal; }

private:
  class Editor;

  Result readPlain(const char *prompt, std::string &line);

  bool isTerminal;
  std::unique_ptr<Editor> editor; ///< null: plain lines
  std::string buffer;             ///< read, not yet handed out
  bool ended = false;
};

} // namespace sparkc::run

#endif // SPARKC_TOOLS_LINEREADER_H
