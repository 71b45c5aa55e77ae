//===- ConfigReader.h - Members of a JSON object, checked -------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_DIALECT_IMPORT_CONFIGREADER_H
#define SPARKC_DIALECT_IMPORT_CONFIGREADER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>

namespace sparkc {

/// A value for a message, cut where it is long.
std::string shown(const llvm::json::Value &value);

/// Whether a value says that a feature is not there: null, false, 0, empty.
bool isOff(const llvm::json::Value &value);

/// Reads members of one JSON object. Keeps the first fault and then answers
/// with harmless values, so that a caller checks once.
class ConfigReader {
public:
  /// where: what stands before a key in messages, e.g. "rope_parameters.".
  ConfigReader(const llvm::json::Object &object, std::string &fault,
               const llvm::Twine &where = "")
      : object(object), fault(fault), where(where.str()) {}

  bool ok() const { return fault.empty(); }
  void fail(const llvm::Twine &message) {
    if (ok())
      fault = message.str();
  }
  /// The value, or null where the key is missing or JSON's null.
  const llvm::json::Value *get(llvm::StringRef key) const {
    const llvm::json::Value *value = object.get(key);
    return value && value->kind() != llvm::json::Value::Null ? value : nullptr;
  }
  const llvm::json::Value *required(llvm::StringRef key) {
    const llvm::json::Value *value = get(key);
    if (!value)
      fail(where + key + " is missing");
    return value;
  }
  /// An integer of the given range, a positive finite number, a boolean.
  int64_t integer(llvm::StringRef key, int64_t least, int64_t most);
  double number(llvm::StringRef key);
  bool boolean(llvm::StringRef key);
  /// The key is there and is this string.
  void mustBe(llvm::StringRef key, llvm::StringRef only);
  /// The key is missing, null or false.
  void mustNotBeTrue(llvm::StringRef key, llvm::StringRef why);
  /// Every other key has a value that says "off".
  void refuseUnknown(llvm::ArrayRef<llvm::StringLiteral> known);

  const llvm::json::Object &object;

private:
  std::string &fault;
  std::string where;
};

} // namespace sparkc

#endif // SPARKC_DIALECT_IMPORT_CONFIGREADER_H
