//===- ByteAlphabet.h - How byte-level BPE spells bytes ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Byte-level BPE writes its vocabulary with one printable character for each
/// byte: bytes that are printable in Latin-1 stand for themselves, the other
/// 68 are U+0100, U+0101, ... in order ("Ġ" is the space).
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_RUNTIME_TEXT_BYTEALPHABET_H
#define SPARKC_RUNTIME_TEXT_BYTEALPHABET_H

#include <cstdint>
#include <string>
#include <string_view>

namespace sparkc {

/// The character that stands for `byte`, as UTF-8.
std::string spellByte(uint8_t byte);

/// Appends to `out` the bytes that `spelling` stands for. If any of its
/// characters stands for no byte, appends `spelling` itself instead.
void appendSpelledBytes(std::string &out, std::string_view spelling);

} // namespace sparkc

#endif // SPARKC_RUNTIME_TEXT_BYTEALPHABET_H
