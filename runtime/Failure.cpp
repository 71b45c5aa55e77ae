//===- Failure.cpp - Errors inside the runtime ----------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Failure.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using namespace sparkc;

static std::string formatted(const char *format, va_list args) {
  char text[sizeof(sparkc_error::message)];
  vsnprintf(text, sizeof text, format, args);
  for (char *c = text; *c; ++c)
    if (*c == '\n' || *c == '\r')
      *c = ' ';
  return text;
}

Failure sparkc::fail(sparkc_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = formatted(format, args);
  va_end(args);
  return Failure(status, std::move(text));
}

Failure sparkc::failErrno(const char *format, ...) {
  int code = errno;
  va_list args;
  va_start(args, format);
  std::string text = formatted(format, args);
  va_end(args);
  sparkc_status status = code == ENOMEM ? SPARKC_OUT_OF_MEMORY : SPARKC_IO;
  return Failure(status, text + ": " + strerror(code));
}

sparkc_status sparkc::report(const Failure &failure, sparkc_error *error) {
  if (!error)
    return failure.status();
  const char *text = failure.message().c_str();
  if (failure && !*text)
    text = sparkc_status_string(failure.status());
  error->status = failure.status();
  snprintf(error->message, sizeof error->message, "%s", text);
  return failure.status();
}

extern "C" const char *sparkc_status_string(sparkc_status status) {
  switch (status) {
  case SPARKC_OK:
    return "success";
  case SPARKC_INVALID_ARGUMENT:
    return "invalid argument";
  case SPARKC_IO:
    return "input/output error";
  case SPARKC_FORMAT:
    return "not a valid file of this kind";
  case SPARKC_MISMATCH:
    return "the files do not belong together";
  case SPARKC_NEWER_VERSION:
    return "made by a newer version of sparkc";
  case SPARKC_UNSUPPORTED_CPU:
    return "this machine lacks the instructions the model was compiled for";
  case SPARKC_OUT_OF_MEMORY:
    return "out of memory";
  case SPARKC_TOKEN_OUT_OF_RANGE:
    return "token id outside the vocabulary";
  case SPARKC_CONTEXT_FULL:
    return "context full";
  case SPARKC_EMPTY_PROMPT:
    return "empty prompt";
  case SPARKC_NO_CHAT_TEMPLATE:
    return "the model has no chat template that is known";
  case SPARKC_NO_TOKENIZER:
    return "the model has no tokenizer";
  case SPARKC_CANCELLED:
    return "cancelled";
  case SPARKC_CORRUPT:
    return "contents do not match their checksum";
  case SPARKC_INTERNAL:
    return "internal error";
  case SPARKC_STATUS_LAST:
    break;
  }
  return "unknown status";
}

extern "C" const char *sparkc_version(void) { return SPARKC_VERSION; }
