//===- ElfCheck.h - Is a shared object all there? ---------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_ELFCHECK_H
#define SPARKC_RUNTIME_ELFCHECK_H

#include "runtime/Failure.h"

#include <string>

namespace sparkc {

/// Checks that a file is a 64-bit x86 ELF shared object whose segments and
/// section table lie inside it. The system's loader maps a file that was cut
/// short without complaint and then dies of a bus error.
Failure checkElf(const std::string &path);

} // namespace sparkc

#endif // SPARKC_RUNTIME_ELFCHECK_H
