//===- WeightFile.h - Writing and reading weights files ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The weights file of sparkc_abi.h: header, payload (from 4096 on), then
/// sections, each at a multiple of 64. Errors are one line that starts with
/// the file's name.
///
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_WEIGHTFILE_H
#define SPARKC_CODEGEN_WEIGHTS_WEIGHTFILE_H

#include "codegen/output/OutputFile.h"
#include "codegen/weights/PackedLayout.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <array>
#include <memory>
#include <optional>
#include <string>

namespace sparkc {

/// Where the payload starts in the file.
constexpr uint64_t kPayloadOffset = 4096;

using WeightDigest = std::array<uint8_t, 16>;

/// A tensor of the payload, as the directory lists it.
struct DirectoryEntry {
  std::string name;
  PackedMatrix matrix;
  /// Names of the source tensors that matrix.runs index.
  std::vector<std::string> sources;
  uint64_t offset = 0; ///< from the payload's start, a multiple of 64

  uint64_t bytes() const { return matrix.bytes(); }
};

/// {"tensors":[{name, layout, layout_name, rows, cols, group, offset, bytes,
/// sources, rowmap:[{heads, width, stride, a:[source, base], b:[...]}]}]}
llvm::json::Value directoryToJSON(llvm::ArrayRef<DirectoryEntry> entries);
/// Checks every field; `payloadBytes` bounds the offsets.
llvm::Expected<std::vector<DirectoryEntry>>
directoryFromJSON(llvm::StringRef text, uint64_t payloadBytes);

/// Writes a weights file in one pass, with a few megabytes of memory, under a
/// temporary name beside the target. Without `finish` nothing remains.
///
///   create, {beginTensor, append...}..., addSection..., finish
class WeightFileWriter {
public:
  /// Opens a temporary file beside `path`.
  static llvm::Expected<std::unique_ptr<WeightFileWriter>>
  create(llvm::StringRef path);
  /// Writes nowhere: only the digest is wanted.
  static std::unique_ptr<WeightFileWriter> createDigestOnly();
  ~WeightFileWriter();
  WeightFileWriter(const WeightFileWriter &) = delete;
  WeightFileWriter &operator=(const WeightFileWriter &) = delete;

  /// Starts the next tensor. Its planned offset must be where the payload has
  /// got to, rounded up to a multiple of 64; the gap is filled with zeros.
  llvm::Error beginTensor(DirectoryEntry entry);
  /// Bytes of the tensor begun last.
  llvm::Error append(llvm::ArrayRef<uint8_t> bytes);
  /// Of the whole payload so far.
  uint64_t payloadBytes() const { return position; }

  /// A section behind the payload, in the order added. The directory is added
  /// by `finish`. Each kind once.
  llvm::Error addSection(sparkc_section_kind kind, llvm::StringRef bytes);

  /// Ends the payload (its length becomes a multiple of 64) and gives its
  /// digest. No tensor may follow; called by `finish` if it has not been.
  llvm::Expected<WeightDigest> finishPayload();
  /// Writes sections and header and renames the file to its target. `sync`
  /// forces it to the disk first.
  llvm::Error finish(bool sync = false);

private:
  WeightFileWriter();
  llvm::Error endTensor();
  llvm::Error appendRaw(llvm::ArrayRef<uint8_t> bytes);
  llvm::Error put(const void *data, uint64_t size);
  llvm::Error flush();
  llvm::Error failure(const llvm::Twine &what) const;

  struct Hash;
  std::string path;
  std::optional<OutputFile> file; ///< none: only a digest is wanted
  bool payloadDone = false;
  uint64_t position = 0;     ///< in the payload
  uint64_t filePosition = 0; ///< in the file, buffered bytes included
  uint64_t tensorEnd = 0;    ///< in the payload, of the tensor begun last
  std::vector<uint8_t> buffer;
  std::vector<DirectoryEntry> entries;
  std::vector<std::pair<sparkc_section_kind, std::string>> sections;
  std::unique_ptr<Hash> hash;
  WeightDigest digest = {};
};

/// Adds a section of a kind that a finished file has none of; not atomic, for
/// files that nobody reads yet.
llvm::Error addSectionToFile(llvm::StringRef path, sparkc_section_kind kind,
                             llvm::StringRef bytes);

/// A weights file, mapped; all of its header, sections and directory checked
/// (the payload only by `verifyDigest`).
class WeightFileReader {
public:
  static llvm::Expected<std::unique_ptr<WeightFileReader>>
  open(llvm::StringRef path);

  const sparkc_weights_header &header() const { return *head; }
  llvm::ArrayRef<uint8_t> payload() const { return payloadBytes; }
  /// Empty if there is none.
  llvm::StringRef section(sparkc_section_kind kind) const;
  llvm::ArrayRef<DirectoryEntry> directory() const { return entries; }
  const DirectoryEntry *find(llvm::StringRef name) const;
  llvm::ArrayRef<uint8_t> bytesOf(const DirectoryEntry &entry) const {
    return payloadBytes.slice(entry.offset, entry.bytes());
  }
  /// Reads the whole payload and compares.
  llvm::Error verifyDigest() const;

private:
  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> file;
  const sparkc_weights_header *head = nullptr;
  llvm::ArrayRef<uint8_t> payloadBytes;
  std::vector<DirectoryEntry> entries;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_WEIGHTFILE_H
