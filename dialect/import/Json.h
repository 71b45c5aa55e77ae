//===- Json.h - JSON as checkpoints may hold it -----------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_JSON_H
#define SPARKC_DIALECT_IMPORT_JSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sparkc {

/// Parses a JSON document that somebody else wrote and whose root must be an
/// object. Refused, beyond what is malformed: nesting deeper than 64 and keys
/// that stand twice in one object (parsers disagree about which one counts).
/// Errors read "<path>: <reason>", with the place in the text.
llvm::Expected<llvm::json::Object> parseJsonObject(llvm::StringRef text,
                                                   llvm::StringRef path);

/// The keys of an object in sorted order (llvm::json::Object has none).
std::vector<llvm::StringRef> sortedKeys(const llvm::json::Object &object);

/// The value of a number that is an integer, also where it is written as 10.0
/// (up to 2^53). Unlike Value::getAsInteger, defined for 2^63 as a double.
std::optional<int64_t> integerOf(const llvm::json::Value &value);

/// What kind of value it is, for a message: "a string", "null", ...
llvm::StringRef kindOf(const llvm::json::Value &value);

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_JSON_H
