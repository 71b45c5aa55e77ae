//===- ProgressLine.cpp - How far an evaluation is ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-eval/ProgressLine.h"

#include <cstdio>
#include <unistd.h>

using namespace sparkc::eval;

ProgressLine::ProgressLine(bool quiet) : active(!quiet && isatty(2)) {}

ProgressLine::~ProgressLine() {
  if (active)
    std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(size_t done, size_t total, double perplexity) {
  if (!active)
    return;
  double seconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  std::fprintf(stderr, "\r%s\x1b[K",
               text(done, total, perplexity, seconds).c_str());
  std::fflush(stderr);
}

std::string ProgressLine::text(size_t done, size_t total, double perplexity,
                               double seconds) {
  const size_t width = 24, full = total ? width * done / total : 0;
  char line[80];
  int n = std::snprintf(line, sizeof line, "[%s%s] %zu/%zu windows",
                        std::string(full, '#').c_str(),
                        std::string(width - full, '.').c_str(), done, total);
  if (done && n > 0 && size_t(n) < sizeof line)
    std::snprintf(line + n, sizeof line - n, ", perplexity %.3f, %.0f s left",
                  perplexity, seconds / double(done) * double(total - done));
  return line;
}
