//===- Json.h - Small helpers around the JSON library -----------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_JSON_H
#define SPARKC_RUNTIME_TEXT_JSON_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace sparkc {

using Json = nlohmann::json;

/// The value at a path of keys, or null.
const Json *find(const Json &root, std::initializer_list<std::string> path);

/// The "type" of a component of a tokenizer, or "unknown".
std::string typeOf(const Json &value);

/// A value for an error message: one line, cut to a readable length.
std::string shown(const Json &value);

/// Reads an integer in [0, kMaxTokenId].
bool readTokenId(const Json &value, uint32_t &id);

/// Parses a whole file; an empty one is an empty object.
bool parseObject(std::string_view text, Json &value, std::string &error);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_JSON_H
