//===- ConfigReader.cpp - Members of a JSON object, checked ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/import/ConfigReader.h"
#include "dialect/import/ImportError.h"
#include "dialect/import/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace sparkc;
namespace json = llvm::json;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

std::string sparkc::shown(const json::Value &value) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (value.kind() == json::Value::Number && !integerOf(value) &&
      !value.getAsUINT64())
    out << llvm::format("%g", *value.getAsNumber());
  else
    out << value;
  if (text.size() > 60)
    text = json::fixUTF8(StringRef(text).take_front(60)) + "...";
  return text;
}

bool sparkc::isOff(const json::Value &value) {
  switch (value.kind()) {
  case json::Value::Null:
    return true;
  case json::Value::Boolean:
    return !*value.getAsBoolean();
  case json::Value::Number:
    return *value.getAsNumber() == 0;
  case json::Value::String:
    return value.getAsString()->empty();
  case json::Value::Array:
    return value.getAsArray()->empty();
  case json::Value::Object:
    return value.getAsObject()->empty();
  }
  return false;
}

int64_t ConfigReader::integer(StringRef key, int64_t least, int64_t most) {
  const json::Value *value = required(key);
  if (!value)
    return least;
  std::optional<int64_t> n = integerOf(*value);
  if (n && *n >= least && *n <= most)
    return *n;
  fail(where + key + " is " + shown(*value) + "; an integer from " +
       Twine(least) + " to " + Twine(most) + " is needed");
  return least;
}

double ConfigReader::number(StringRef key) {
  const json::Value *value = required(key);
  if (!value)
    return 1;
  std::optional<double> n = value->getAsNumber();
  if (n && std::isfinite(*n) && *n > 0)
    return *n;
  fail(where + key + " is " + shown(*value) + "; a number above 0 is needed");
  return 1;
}

bool ConfigReader::boolean(StringRef key) {
  const json::Value *value = required(key);
  if (!value)
    return false;
  if (std::optional<bool> flag = value->getAsBoolean())
    return *flag;
  fail(where + key + " is " + shown(*value) + "; true or false is needed");
  return false;
}

void ConfigReader::mustBe(StringRef key, StringRef only) {
  const json::Value *value = required(key);
  if (value && value->getAsString() != only)
    fail(where + key + " is " + shown(*value) + "; only \"" + only +
         "\" is supported");
}

void ConfigReader::mustNotBeTrue(StringRef key, StringRef why) {
  const json::Value *value = get(key);
  if (value && value->getAsBoolean() != false)
    fail(where + key + " is " + shown(*value) + "; " + why);
}

void ConfigReader::refuseUnknown(llvm::ArrayRef<StringLiteral> known) {
  for (StringRef key : sortedKeys(object)) {
    const json::Value &value = *object.get(key);
    if (!isOff(value) && !llvm::is_contained(known, key))
      fail("unknown key " + quotedName(where + key.str()) + " (" +
           shown(value) + ") may change what the model computes");
  }
}
