//===- Json.cpp - JSON as checkpoints may hold it -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/Json.h"
#include "dialect/import/ImportError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace sparkc;
namespace json = llvm::json;

static constexpr unsigned maxDepth = 64;

/// Length of the string literal that text starts with, quotes included; npos
/// where it does not end.
static size_t literalLength(llvm::StringRef text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return llvm::StringRef::npos;
}

/// Deepest nesting of the text, brackets inside strings aside. Needs no valid
/// JSON: it runs first, since llvm::json::parse recurses.
static unsigned nestingDepth(llvm::StringRef text) {
  unsigned depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      size_t n = literalLength(text.substr(i));
      if (n == llvm::StringRef::npos)
        break; // malformed: the parser will say where
      i += n - 1;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth) {
      --depth;
    }
  }
  return deepest;
}

/// The first key that stands twice in one object of a valid document.
static std::optional<std::string> duplicateKey(llvm::StringRef text) {
  std::vector<llvm::StringSet<>> open;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '{' || c == '[') {
      open.emplace_back();
    } else if (c == '}' || c == ']') {
      open.pop_back();
    } else if (c == '"') {
      llvm::StringRef literal = text.substr(i, literalLength(text.substr(i)));
      i += literal.size() - 1;
      if (!text.substr(i + 1).ltrim(" \t\r\n").starts_with(":"))
        continue;
      std::string key;
      if (literal.contains('\\')) // "a" and "\u0061" are one key
        key = llvm::cantFail(json::parse(literal)).getAsString()->str();
      else
        key = literal.drop_front().drop_back().str();
      if (!open.back().insert(key).second)
        return key;
    }
  }
  return std::nullopt;
}

llvm::Expected<json::Object> sparkc::parseJsonObject(llvm::StringRef text,
                                                     llvm::StringRef path) {
  if (nestingDepth(text) > maxDepth)
    return importError(path, "JSON is nested more than " +
                                 llvm::Twine(maxDepth) + " deep");
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return importError(path,
                       "malformed JSON: " + llvm::toString(value.takeError()));
  json::Object *object = value->getAsObject();
  if (!object)
    return importError(path,
                       "the JSON is " + kindOf(*value) + ", not an object");
  if (std::optional<std::string> key = duplicateKey(text))
    return importError(path, "key " + quotedName(*key) + " stands twice");
  return std::move(*object);
}

std::vector<llvm::StringRef> sparkc::sortedKeys(const json::Object &object) {
  std::vector<llvm::StringRef> keys;
  for (const auto &member : object)
    keys.push_back(member.first);
  llvm::sort(keys);
  return keys;
}

std::optional<int64_t> sparkc::integerOf(const json::Value &value) {
  if (std::optional<uint64_t> n = value.getAsUINT64())
    return *n >> 63 ? std::nullopt : std::optional<int64_t>(*n);
  constexpr double exact = 1ll << 53;
  std::optional<double> n = value.getAsNumber();
  if (!n || !(*n >= -exact && *n <= exact))
    return std::nullopt;
  return value.getAsInteger();
}

llvm::StringRef sparkc::kindOf(const json::Value &value) {
  switch (value.kind()) {
  case json::Value::Null:
    return "null";
  case json::Value::Boolean:
    return "a boolean";
  case json::Value::Number:
    return "a number";
  case json::Value::String:
    return "a string";
  case json::Value::Array:
    return "an array";
  case json::Value::Object:
    return "an object";
  }
  return "unknown";
}
