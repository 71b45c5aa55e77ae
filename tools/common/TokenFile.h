//===- TokenFile.h - Files that tools read ----------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_TOOLS_COMMON_TOKENFILE_H
#define SPARKC_TOOLS_COMMON_TOKENFILE_H

#include <cstdint>
#include <string>
#include <vector>

namespace sparkc {

/// Reads a whole file. On failure false, and `why` is one line that starts with
/// the file.
bool readFile(const std::string &path, std::string &text, std::string &why);

/// Reads a file of token ids (int32) separated by white space; a file without
/// any gives none. On failure as above.
bool readTokens(const std::string &path, std::vector<int32_t> &tokens,
                std::string &why);

} // namespace sparkc

#endif // SPARKC_TOOLS_COMMON_TOKENFILE_H
