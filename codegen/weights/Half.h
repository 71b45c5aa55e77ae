//===- Half.h - 16-bit floats -----------------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Conversions between float32 and bfloat16 / IEEE float16, in integer
/// arithmetic, so that loops over them vectorise without F16C. Narrowing
/// rounds to nearest, ties to even; NaN stays NaN; float16 overflows to
/// infinity and keeps denormals.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_HALF_H
#define SPARKC_CODEGEN_WEIGHTS_HALF_H

#include <cstdint>
#include <cstring>

namespace sparkc {

inline float floatFromBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

inline uint32_t bitsFromFloat(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return bits;
}

inline float floatFromBF16(uint16_t h) {
  return floatFromBits(uint32_t(h) << 16);
}

inline uint16_t bf16FromFloat(float f) {
  uint32_t bits = bitsFromFloat(f);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return nan ? (bits >> 16) | 0x40 : rounded;
}

inline float floatFromF16(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16;
  uint32_t exponentMantissa = h & 0x7fff;
  // Scaling by 2^112 moves the exponent's bias and makes denormals normal.
  float scaled = floatFromBits(exponentMantissa << 13) * 0x1p112f;
  uint32_t bits = bitsFromFloat(scaled);
  uint32_t special = 0x7f800000 | (exponentMantissa & 0x3ff) << 13;
  bits = exponentMantissa >= 0x7c00 ? special : bits;
  return floatFromBits(sign | bits);
}

inline uint16_t f16FromFloat(float f) {
  uint32_t bits = bitsFromFloat(f);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  // Normal results: move the bias, round the 13 dropped bits to nearest even.
  uint32_t normal =
      (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Denormal results: adding 0.5 leaves the value in the last mantissa bits,
  // rounded to nearest even by the addition itself.
  uint32_t denormal =
      bitsFromFloat(floatFromBits(magnitude) + 0.5f) - bitsFromFloat(0.5f);
  uint32_t result = magnitude < (113u << 23) ? denormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result; // 65520 and up
  result = magnitude > 0x7f800000 ? 0x7e00 : result;
  return sign | result;
}

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_HALF_H
