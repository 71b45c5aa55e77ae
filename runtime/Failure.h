//===- Failure.h - Errors inside the runtime --------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_FAILURE_H
#define SPARKC_RUNTIME_FAILURE_H

#include "runtime/include/sparkc.h"

#include <new>
#include <string>
#include <utility>

namespace sparkc {

/// A status and the one line that explains it. True if something failed:
///
///     if (Failure failure = readHeader(...))
///       return failure;
class [[nodiscard]] Failure {
public:
  Failure() = default;
  Failure(sparkc_status status, std::string message)
      : code(status), text(std::move(message)) {}

  explicit operator bool() const { return code != SPARKC_OK; }
  sparkc_status status() const { return code; }
  const std::string &message() const { return text; }

private:
  sparkc_status code = SPARKC_OK;
  std::string text;
};

inline Failure success() { return {}; }

/// Builds a failure from a printf format.
Failure fail(sparkc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Like fail(SPARKC_IO, ...), followed by ": " and errno's text.
Failure failErrno(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/// Writes a failure to a caller's error (may be null) and returns its status.
sparkc_status report(const Failure &failure, sparkc_error *error);

/// Runs a call of the C interface: whatever it throws becomes a failure.
template <typename Fn> Failure guarded(Fn &&fn) {
  try {
    return fn();
  } catch (const std::bad_alloc &) {
    return Failure(SPARKC_OUT_OF_MEMORY, std::string());
  } catch (...) {
    return Failure(SPARKC_INTERNAL, std::string());
  }
}

} // namespace sparkc

#endif // SPARKC_RUNTIME_FAILURE_H
