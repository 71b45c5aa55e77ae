//===- HostGemm.h - ctx->gemm of models that ask for it ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_HOSTGEMM_H
#define SPARKC_RUNTIME_HOSTGEMM_H

#include "runtime/Failure.h"
#include "sparkc_abi.h"

namespace sparkc {

/// Loads libsparkc-onednn.so, which stands beside this runtime, else where the
/// system looks for libraries, and gives its function; it stays loaded. A failure
/// begins with `object`, the model that asks for it.
Failure loadGemm(const char *object, sparkc_gemm_fn &gemm);

} // namespace sparkc

#endif // SPARKC_RUNTIME_HOSTGEMM_H
