//===- EachTile.h - Work on tiles, side by side -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_EACHTILE_H
#define SPARKC_CODEGEN_WEIGHTS_EACHTILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/Parallel.h"

#include <mutex>

namespace sparkc {

/// Calls `work` for tiles 0 .. count - 1, several at a time. Of several errors
/// it returns that of the lowest tile.
inline llvm::Error
forEachTile(size_t count, llvm::function_ref<llvm::Error(size_t tile)> work) {
  std::mutex guard;
  llvm::Error first = llvm::Error::success();
  size_t firstTile = count;
  llvm::parallelFor(0, count, [&](size_t tile) {
    llvm::Error error = work(tile);
    if (!error)
      return;
    std::lock_guard<std::mutex> lock(guard);
    if (tile > firstTile) {
      llvm::consumeError(std::move(error));
      return;
    }
    llvm::consumeError(std::move(first));
    first = std::move(error);
    firstTile = tile;
  });
  return first;
}

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_EACHTILE_H
