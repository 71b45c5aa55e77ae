//===- ImportError.h - Errors that name the file ----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_IMPORTERROR_H
#define SPARKC_DIALECT_IMPORT_IMPORTERROR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace sparkc {

/// An error that reads "<path>: <message>" and is one line whatever the file
/// holds: control characters of either part are written as \xNN.
llvm::Error importError(llvm::StringRef path, const llvm::Twine &message);

/// Text from a file, fit for a message: in single quotes, control characters
/// and invalid UTF-8 escaped, long text cut.
std::string quotedName(llvm::StringRef text);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_IMPORTERROR_H
