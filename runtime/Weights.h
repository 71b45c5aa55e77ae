//===- Weights.h - A mapped weights file ------------------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_RUNTIME_WEIGHTS_H
#define SPARKC_RUNTIME_WEIGHTS_H

#include "runtime/Failure.h"
#include "runtime/include/sparkc_abi.h"

#include <string>
#include <string_view>

namespace sparkc {

/// A weights file, mapped shared and read-only. Immutable once open.
class WeightsFile {
public:
  WeightsFile() = default;
  WeightsFile(const WeightsFile &) = delete;
  WeightsFile &operator=(const WeightsFile &) = delete;
  ~WeightsFile();

  /// Maps `path` and checks its header: magic, version, the header's own hash,
  /// the file's size, every section inside the file and aligned, exactly one
  /// payload. Touches no page of the payload.
  Failure open(const std::string &path);

  /// Recomputes the checksums of the payload and of every section.
  Failure verify() const;

  /// The bytes of the first section of a kind; empty if there is none. The
  /// checksum of the section is compared first (not the payload's).
  Failure section(uint32_t kind, std::string_view &bytes) const;
  bool hasSection(uint32_t kind) const { return find(kind) != nullptr; }

  const sparkc_weights_header &header() const { return head; }
  const uint8_t *payload() const;
  uint64_t payloadBytes() const;
  const std::string &path() const { return file; }

private:
  Failure checkHeader(uint64_t fileBytes) const;
  Failure map(int fd, uint64_t bytes);
  const sparkc_section *find(uint32_t kind) const;
  Failure checkSection(const sparkc_section &section) const;

  std::string file;
  sparkc_weights_header head = {};
  uint8_t *base = nullptr;
  void *reserved = nullptr; ///< address range that holds the mapping
  size_t reservedBytes = 0;
};

/// "0a1b..." of a digest: 32 lower-case hex digits.
std::string digestHex(const uint8_t digest[16]);

} // namespace sparkc

#endif // SPARKC_RUNTIME_WEIGHTS_H
