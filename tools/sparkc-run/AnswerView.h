//===- AnswerView.h - An answer as it is shown ------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_ANSWERVIEW_H
#define SPARKC_TOOLS_ANSWERVIEW_H

#include <cstddef>
#include <string_view>

namespace sparkc::run {

/// Writes answers to standard output. On a terminal reasoning is dim, and
/// control characters are shown (^X), not sent; else reasoning stands between
/// <think> and </think>. Calls return false once standard output fails, and
/// errno says why.
class AnswerView {
public:
  AnswerView(bool terminal, bool hideReasoning)
      : terminal(terminal), hidden(hideReasoning) {}

  bool beginReasoning();
  bool endReasoning();
  /// Some whole characters.
  bool text(std::string_view characters);
  /// Ends the line that was begun.
  bool finish();

private:
  bool put(std::string_view bytes);

  bool terminal, hidden;
  bool reasoning = false;
  bool lineBegun = false;
};

} // namespace sparkc::run

#endif // SPARKC_TOOLS_ANSWERVIEW_H
