//===- AnswerView.cpp - An answer as it is shown --------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-run/AnswerView.h"

#include <cstdio>
#include <string>

using namespace sparkc::run;

bool AnswerView::put(std::string_view bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
         std::fflush(stdout) == 0;
}

bool AnswerView::beginReasoning() {
  reasoning = true;
  if (!terminal)
    return hidden || put("<think>");
  return put(hidden ? "\033[2mthinking ...\033[0m" : "\033[2m");
}

bool AnswerView::endReasoning() {
  reasoning = false;
  if (hidden) // the note is wiped away
    return !terminal || put("\r\033[K");
  const bool begun = lineBegun;
  lineBegun = false;
  if (terminal)
    return put(begun ? "\033[0m\n" : "\033[0m");
  return put("</think>\n");
}

/// Controls made visible: a model must not move the cursor, or worse.
static std::string shown(std::string_view characters) {
  std::string out;
  for (size_t i = 0; i < characters.size(); ++i) {
    const unsigned char c = characters[i];
    const bool last = i + 1 == characters.size();
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += {'^', char(c ^ 0x40)};
    } else if (c == 0xc2 && !last && // U+0080 .. U+009F
               static_cast<unsigned char>(characters[i + 1]) < 0xa0) {
      out += "\xef\xbf\xbd";
      ++i;
    } else {
      out += char(c);
    }
  }
  return out;
}

bool AnswerView::text(std::string_view characters) {
  if (characters.empty() || (reasoning && hidden))
    return true;
  lineBegun = characters.back() != '\n';
  return terminal ? put(shown(characters)) : put(characters);
}

bool AnswerView::finish() {
  if (reasoning && !endReasoning())
    return false;
  const bool begun = lineBegun;
  lineBegun = false;
  return !begun || put("\n");
}
