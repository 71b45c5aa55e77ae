//===- Validators.h - What options of several tools may be ------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TOOLS_COMMON_VALIDATORS_H
#define SPARKC_TOOLS_COMMON_VALIDATORS_H

#include <CLI/CLI.hpp>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace sparkc {

/// A finite number greater than 0; what is no number is left to the option's
/// type, but for an empty text, which that would take for 0.
/// (CLI::PositiveNumber would print the largest double in its message.)
inline CLI::Validator positive() {
  auto check = [](std::string &text) -> std::string {
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (text.empty())
      return "'' is not a number";
    if (end == text.c_str() || *end || (value > 0 && std::isfinite(value)))
      return "";
    return text + (value > 0 ? " is not finite" : " is not greater than 0");
  };
  return CLI::Validator(check, "POSITIVE");
}

/// An integer from `least` to `most`, which a larger one is not cut to, nor an
/// empty text taken for 0.
inline CLI::Validator integer(long long least, long long most,
                              const std::string &range) {
  auto check = [=](std::string &text) -> std::string {
    errno = 0;
    char *end = nullptr;
    long long value = std::strtoll(text.c_str(), &end, 0);
    if (!text.empty() && !*end && !errno && value >= least && value <= most)
      return "";
    return "'" + text + "' is not an integer " + range;
  };
  return CLI::Validator(check, range);
}

/// An integer of `least` or more, as large as its 64 bits hold.
inline CLI::Validator integerFrom(long long least) {
  return integer(least, std::numeric_limits<long long>::max(),
                 "from " + std::to_string(least) + " on");
}

/// As many as a session may have: maxThreads of runtime/Session.h.
inline CLI::Validator threadCount() {
  return integer(1, 4096, "from 1 to 4096");
}

/// An integer of 64 bits without a sign, which a larger one is not cut to.
inline CLI::Validator unsigned64() {
  auto check = [](std::string &text) -> std::string {
    errno = 0;
    char *end = nullptr;
    std::strtoull(text.c_str(), &end, 0);
    if (std::isdigit(static_cast<unsigned char>(text[0])) && !*end && !errno)
      return "";
    return text + " is not an integer from 0 to 18446744073709551615";
  };
  return CLI::Validator(check, "");
}

} // namespace sparkc

#endif // SPARKC_TOOLS_COMMON_VALIDATORS_H
