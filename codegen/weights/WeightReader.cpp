//===- WeightReader.cpp - Reading weights files ---------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/WeightFile.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sparkc {

static llvm::Error fileError(const llvm::Twine &path, const llvm::Twine &what) {
  return llvm::createStringError(path + ": " + what);
}

llvm::Expected<std::unique_ptr<WeightFileReader>>
WeightFileReader::open(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fileError(path, buffer.getError().message());
  auto reader = std::make_unique<WeightFileReader>();
  reader->path = path.str();
  reader->file = std::move(*buffer);
  llvm::StringRef bytes = reader->file->getBuffer();
  if (bytes.size() < sizeof(sparkc_weights_header))
    return fileError(path, "too short for a weights file");
  auto *head = reinterpret_cast<const sparkc_weights_header *>(bytes.data());
  reader->head = head;
  if (std::memcmp(head->magic, SPARKC_WEIGHTS_MAGIC, sizeof(head->magic)) != 0)
    return fileError(path, "not a weights file");
  if (head->version != SPARKC_WEIGHTS_VERSION)
    return fileError(path, "weights file version " +
                               llvm::Twine(head->version) + ", expected " +
                               llvm::Twine(SPARKC_WEIGHTS_VERSION));
  if (head->header_bytes != sizeof(*head) ||
      head->hash != XXH3_64bits(head, offsetof(sparkc_weights_header, hash)))
    return fileError(path, "damaged header");
  if (head->file_bytes != bytes.size())
    return fileError(path, "truncated: " + llvm::Twine(bytes.size()) + " of " +
                               llvm::Twine(head->file_bytes) + " bytes");
  if (head->n_sections > SPARKC_WEIGHTS_MAX_SECTIONS ||
      head->n_layouts > SPARKC_WEIGHTS_MAX_LAYOUTS)
    return fileError(path, "damaged header");
  bool hasPayload = false;
  for (uint32_t i = 0; i < head->n_sections; ++i) {
    const sparkc_section &s = head->sections[i];
    if (s.offset % kLineBytes || s.offset > bytes.size() ||
        s.bytes > bytes.size() - s.offset)
      return fileError(path, "section " + llvm::Twine(s.kind) +
                                 " lies outside the file");
    if (s.kind == SPARKC_SECTION_PAYLOAD) {
      reader->payloadBytes = {bytes.bytes_begin() + s.offset, s.bytes};
      hasPayload = true;
    } else if (s.hash != XXH3_64bits(bytes.data() + s.offset, s.bytes)) {
      return fileError(path, "section " + llvm::Twine(s.kind) + " is damaged");
    }
  }
  if (!hasPayload)
    return fileError(path, "no payload");
  auto entries = directoryFromJSON(reader->section(SPARKC_SECTION_DIRECTORY),
                                   reader->payloadBytes.size());
  if (!entries)
    return fileError(path, llvm::toString(entries.takeError()));
  reader->entries = std::move(*entries);
  return reader;
}

llvm::StringRef WeightFileReader::section(sparkc_section_kind kind) const {
  for (uint32_t i = 0; i < head->n_sections; ++i)
    if (head->sections[i].kind == static_cast<uint32_t>(kind))
      return file->getBuffer().substr(head->sections[i].offset,
                                      head->sections[i].bytes);
  return {};
}

const DirectoryEntry *WeightFileReader::find(llvm::StringRef name) const {
  for (const DirectoryEntry &entry : entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

llvm::Error WeightFileReader::verifyDigest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(
      &canonical, XXH3_128bits(payloadBytes.data(), payloadBytes.size()));
  if (std::memcmp(canonical.digest, head->digest, sizeof(head->digest)) != 0)
    return fileError(path, "the payload is damaged: its digest differs");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Directory
//===----------------------------------------------------------------------===//

llvm::json::Value directoryToJSON(llvm::ArrayRef<DirectoryEntry> entries) {
  llvm::json::Array tensors;
  for (const DirectoryEntry &entry : entries) {
    const PackedMatrix &m = entry.matrix;
    llvm::json::Array rowmap, sources;
    for (const RowRun &run : m.runs) {
      llvm::json::Object r{{"heads", run.heads},
                           {"width", run.width},
                           {"stride", run.stride},
                           {"a", llvm::json::Array{run.weightA, run.baseA}}};
      if (run.paired())
        r["b"] = llvm::json::Array{run.weightB, run.baseB};
      rowmap.push_back(std::move(r));
    }
    for (const std::string &source : entry.sources)
      sources.push_back(source);
    tensors.push_back(
        llvm::json::Object{{"name", entry.name},
                           {"layout", static_cast<int64_t>(m.layout)},
                           {"layout_name", layoutName(m.layout)},
                           {"rows", m.rows()},
                           {"cols", m.cols},
                           {"group", m.group},
                           {"offset", static_cast<int64_t>(entry.offset)},
                           {"bytes", static_cast<int64_t>(entry.bytes())},
                           {"sources", std::move(sources)},
                           {"rowmap", std::move(rowmap)}});
  }
  return llvm::json::Object{{"tensors", std::move(tensors)}};
}

/// {"a": [source, base]} -> source, base.
static bool readSide(const llvm::json::Array *side, int &weight,
                     int64_t &base) {
  if (!side || side->size() != 2)
    return false;
  auto w = (*side)[0].getAsInteger(), b = (*side)[1].getAsInteger();
  if (!w || !b || *w < 0 || *w > 1 << 20)
    return false;
  weight = static_cast<int>(*w);
  base = *b;
  return true;
}

static bool readEntry(const llvm::json::Object *o, DirectoryEntry &entry,
                      int64_t &bytes, int64_t &rows) {
  if (!o)
    return false;
  auto name = o->getString("name");
  auto layout = o->getInteger("layout"), cols = o->getInteger("cols"),
       group = o->getInteger("group"), offset = o->getInteger("offset"),
       size = o->getInteger("bytes"), nRows = o->getInteger("rows");
  const llvm::json::Array *rowmap = o->getArray("rowmap"),
                          *sources = o->getArray("sources");
  if (!name || !layout || !cols || !group || !offset || !size || !nRows ||
      !rowmap || !sources || *layout < 0 || *offset < 0)
    return false;
  std::optional<Layout> known = layoutFromId(*layout);
  if (!known)
    return false;
  entry.name = name->str();
  entry.matrix.layout = *known;
  entry.matrix.cols = *cols;
  entry.matrix.group = *group;
  entry.offset = *offset;
  bytes = *size;
  rows = *nRows;
  for (const llvm::json::Value &source : *sources) {
    auto text = source.getAsString();
    if (!text)
      return false;
    entry.sources.push_back(text->str());
  }
  for (const llvm::json::Value &value : *rowmap) {
    const llvm::json::Object *r = value.getAsObject();
    if (!r)
      return false;
    RowRun run;
    auto heads = r->getInteger("heads"), width = r->getInteger("width"),
         stride = r->getInteger("stride");
    if (!heads || !width || !stride ||
        !readSide(r->getArray("a"), run.weightA, run.baseA) ||
        (r->get("b") && !readSide(r->getArray("b"), run.weightB, run.baseB)))
      return false;
    run.heads = *heads;
    run.width = *width;
    run.stride = *stride;
    entry.matrix.runs.push_back(run);
  }
  return true;
}

llvm::Expected<std::vector<DirectoryEntry>>
directoryFromJSON(llvm::StringRef text, uint64_t payloadBytes) {
  auto bad = [](const llvm::Twine &what) {
    return llvm::createStringError("bad directory: " + what);
  };
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  if (!json)
    return bad(llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject();
  const llvm::json::Array *tensors = root ? root->getArray("tensors") : nullptr;
  if (!tensors)
    return bad("no tensors");
  std::vector<DirectoryEntry> entries;
  for (const llvm::json::Value &value : *tensors) {
    DirectoryEntry entry;
    int64_t bytes = 0, rows = 0;
    if (!readEntry(value.getAsObject(), entry, bytes, rows))
      return bad("malformed tensor " + llvm::Twine(entries.size()));
    // Sources are not at hand: their rows are bounded by the sizes below.
    std::vector<int64_t> sourceRows(entry.sources.size(), INT64_MAX / 2);
    if (llvm::Error e = entry.matrix.verify(sourceRows))
      return bad("tensor '" + entry.name +
                 "': " + llvm::toString(std::move(e)));
    if (entry.matrix.rows() != rows ||
        static_cast<__int128>(entry.matrix.tiles()) *
                entry.matrix.tileBytes() !=
            bytes ||
        entry.offset % kLineBytes || entry.offset > payloadBytes ||
        static_cast<uint64_t>(bytes) > payloadBytes - entry.offset)
      return bad("tensor '" + entry.name + "' lies outside the payload");
    entries.push_back(std::move(entry));
  }
  return entries;
}

} // namespace sparkc
