//===- TextOf.h - The text side of an opened model --------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_TEXTOF_H
#define SPARKC_RUNTIME_TEXTOF_H

#include "runtime/Failure.h"
#include "runtime/Model.h"
#include "runtime/text/ModelText.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace sparkc {

using TextPtr = std::shared_ptr<const ModelText>;

/// The text side of a model, built by the first call that asks for it.
Failure textOf(const sparkc_model *model, TextPtr &text);

/// Hands out as many tokens as fit, and how many there are.
inline void giveTokens(const std::vector<int32_t> &ids, int32_t *tokens,
                       size_t capacity, size_t *n_tokens) {
  *n_tokens = ids.size();
  std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
}

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXTOF_H
