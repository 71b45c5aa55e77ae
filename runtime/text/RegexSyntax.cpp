//===- RegexSyntax.cpp - Tokenizer patterns for PCRE2 ---------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/RegexSyntax.h"

#include <cstring>

using namespace sparkc;

namespace {

constexpr const char *kWordMembers = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

bool isAsciiAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool isHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
         (c >= 'A' && c <= 'F');
}

class Translator {
public:
  Translator(std::string_view in, std::string &out, std::string &error)
      : in(in), out(out), error(error) {}

  bool run() {
    while (at < in.size())
      if (!item())
        return false;
    return true;
  }

private:
  bool startsWith(std::string_view text) const {
    return in.substr(at, text.size()) == text;
  }

  void copy(size_t count) {
    out.append(in.substr(at, count));
    at += count;
  }

  bool refuse(size_t count) {
    error = "'" + std::string(in.substr(at, count)) +
            "' in a pattern is not supported";
    return false;
  }

  bool item() {
    switch (in[at]) {
    case '\\':
      return escape(/*inClass=*/false);
    case '[':
      return characterClass();
    case '(':
      return group();
    case '{':
      return repeat();
    default:
      copy(1);
      return true;
    }
  }

  bool group() {
    if (startsWith("(*"))
      return refuse(2);
    if (!startsWith("(?")) {
      out += "(?:"; // nothing refers to captures
      ++at;
      return true;
    }
    for (const char *known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"})
      if (startsWith(known)) {
        copy(std::strlen(known));
        return true;
      }
    return refuse(3);
  }

  /// {n}, {n,} or {n,m}, where {n,} and {n,m} may be lazy.
  bool repeat() {
    size_t end = at + 1;
    bool comma = false;
    while (end < in.size() && in[end] != '}') {
      bool digit = in[end] >= '0' && in[end] <= '9';
      if (!digit && (in[end] != ',' || comma || end == at + 1))
        return refuse(end + 1 - at);
      comma |= in[end] == ',';
      ++end;
    }
    if (end == in.size() || end == at + 1)
      return refuse(end - at);
    ++end;
    if (end < in.size() && (in[end] == '+' || (in[end] == '?' && !comma)))
      return refuse(end + 1 - at);
    copy(end - at);
    return true;
  }

  bool escape(bool inClass) {
    if (at + 1 == in.size())
      return refuse(1);
    char c = in[at + 1];
    auto replace = [&](size_t count, const std::string &by) {
      at += count;
      out += by;
      return true;
    };
    switch (c) {
    case 's':
      return replace(2, "\\p{White_Space}");
    case 'S':
      return replace(2, "\\P{White_Space}");
    case 'd':
      return replace(2, "\\p{Nd}");
    case 'D':
      return replace(2, "\\P{Nd}");
    case 'w':
      return replace(2, inClass ? kWordMembers
                                : "[" + std::string(kWordMembers) + "]");
    case 'W':
      return inClass ? refuse(2)
                     : replace(2, "[^" + std::string(kWordMembers) + "]");
    case 'v':
      return replace(2, "\\x{b}");
    case 'r':
    case 'n':
    case 't':
    case 'f':
      copy(2);
      return true;
    case 'u': {
      for (size_t i = 2; i < 6; ++i)
        if (at + i >= in.size() || !isHex(in[at + i]))
          return refuse(2);
      return replace(6, "\\x{" + std::string(in.substr(at + 2, 4)) + "}");
    }
    case 'p':
    case 'P':
    case 'x': {
      size_t close = in.find('}', at);
      if (in.substr(at + 2, 1) != "{" || close == std::string_view::npos)
        return refuse(2);
      copy(close + 1 - at);
      return true;
    }
    default:
      break;
    }
    if (isAsciiAlnum(c))
      return refuse(2);
    if (static_cast<unsigned char>(c) >= 0x80)
      ++at; // the rest of the character is copied as it stands
    else
      copy(2);
    return true;
  }

  bool characterClass() {
    copy(startsWith("[^") ? 2 : 1);
    if (startsWith("]"))
      return refuse(1);
    while (at < in.size()) {
      if (in[at] == ']') {
        copy(1);
        return true;
      }
      if (in[at] == '[')
        return refuse(1);
      if (startsWith("&&"))
        return refuse(2);
      if (in[at] == '\\') {
        if (!escape(/*inClass=*/true))
          return false;
      } else {
        copy(1);
      }
    }
    error = "a character class in a pattern does not end";
    return false;
  }

  std::string_view in;
  std::string &out;
  std::string &error;
  size_t at = 0;
};

} // namespace

bool sparkc::translateRegex(std::string_view pattern, std::string &out,
                            std::string &error) {
  out.clear();
  return Translator(pattern, out, error).run();
}
