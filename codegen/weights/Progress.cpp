//===- Progress.cpp - A progress bar on a terminal ------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Progress.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

namespace sparkc {

using Clock = std::chrono::steady_clock;

Progress::Progress(llvm::StringRef label, uint64_t totalBytes, bool quiet)
    : label(label.str()), total(totalBytes),
      active(!quiet && llvm::sys::Process::StandardErrIsDisplayed()),
      start(Clock::now()), lastDraw(start) {}

Progress::~Progress() { finish(); }

std::string Progress::render(llvm::StringRef label, llvm::StringRef item,
                             uint64_t done, uint64_t total, double seconds,
                             unsigned width) {
  constexpr unsigned barWidth = 24;
  double share = total ? std::min(1.0, double(done) / double(total)) : 1.0;
  unsigned filled = static_cast<unsigned>(share * barWidth);
  std::string text = llvm::formatv(
      "{0} [{1}{2}] {3,3}%  {4:F1} GB", label, std::string(filled, '#'),
      std::string(barWidth - filled, '-'), unsigned(share * 100), done * 1e-9);
  if (seconds > 1 && share > 0 && share < 1)
    text += llvm::formatv("  {0} s left",
                          unsigned(seconds / share * (1 - share) + 0.5));
  if (!item.empty())
    text += ("  " + item).str();
  if (text.size() > width)
    text.resize(width);
  return text;
}

void Progress::update(uint64_t doneBytes) {
  done = doneBytes;
  Clock::time_point now = Clock::now();
  if (!active || now - lastDraw < std::chrono::milliseconds(100))
    return;
  lastDraw = now;
  drawn = true;
  unsigned columns = llvm::sys::Process::StandardErrColumns();
  double seconds = std::chrono::duration<double>(now - start).count();
  llvm::errs() << '\r'
               << render(label, item, done, total, seconds,
                         columns ? columns - 1 : 79)
               << "\x1b[K";
  llvm::errs().flush();
}

void Progress::finish() {
  if (drawn)
    llvm::errs() << "\r\x1b[K";
  drawn = active = false;
}

} // namespace sparkc
