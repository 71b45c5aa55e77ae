//===- ToyFiles.cpp - Good and bad files of the hand-written model --------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/ToyFiles.h"
#include "runtime/Hash.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace sparkc;
using namespace sparkc::test;

static std::string makeDir() {
  std::string name =
      (std::filesystem::temp_directory_path() / "sparkc-XXXXXX").string();
  if (!mkdtemp(&name[0]))
    abort();
  return name;
}

TempDir::TempDir() : path(makeDir()) {}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string sparkc::test::readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

void sparkc::test::writeFile(const std::string &path,
                             const std::string &bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  EXPECT_TRUE(out.flush()) << path;
}

std::string sparkc::test::weightsImage(
    const std::function<void(sparkc_weights_header &)> &alter) {
  const std::string tokenizer = "{\"model\":\"toy\"}";
  std::string image(8192 + TOY_PAYLOAD, '\0');
  memcpy(&image[4096], tokenizer.data(), tokenizer.size());
  for (size_t i = 0; i < TOY_PAYLOAD; ++i)
    image[8192 + i] = char(i * 7 + 3);
  sparkc_weights_header head = {};
  memcpy(head.magic, SPARKC_WEIGHTS_MAGIC, sizeof head.magic);
  head.version = SPARKC_WEIGHTS_VERSION;
  head.header_bytes = sizeof head;
  head.file_bytes = image.size();
  hash128(&image[8192], TOY_PAYLOAD, head.digest);
  head.n_sections = 2;
  head.sections[0] = {SPARKC_SECTION_TOKENIZER, 0, 4096, tokenizer.size(),
                      hash64(tokenizer.data(), tokenizer.size())};
  head.sections[1] = {SPARKC_SECTION_PAYLOAD, 0, 8192, TOY_PAYLOAD, 0};
  head.n_layouts = 1;
  head.layouts[0] = SPARKC_LAYOUT_TILE16_BF16;
  if (alter)
    alter(head);
  head.hash = hash64(&head, offsetof(sparkc_weights_header, hash));
  memcpy(&image[0], &head, sizeof head);
  return image;
}

std::string
sparkc::test::objectImage(const std::function<void(sparkc_descriptor &)> &alter,
                          Toy kind) {
  std::string image = readFile(kind == Toy::Prefill    ? TOY_MODEL
                               : kind == Toy::StepOnly ? TOY_MODEL_STEP
                               : kind == Toy::Profile  ? TOY_MODEL_PROFILE
                                                       : TOY_MODEL_FAT);
  const uint32_t start[] = {SPARKC_DESCRIPTOR_MAGIC, SPARKC_ABI_VERSION,
                            sizeof(sparkc_descriptor), sizeof(sparkc_entry)};
  size_t at = image.find(
      std::string(reinterpret_cast<const char *>(start), sizeof start));
  EXPECT_NE(at, std::string::npos);
  if (alter && at != std::string::npos) {
    sparkc_descriptor descriptor;
    memcpy(&descriptor, &image[at], sizeof descriptor);
    alter(descriptor);
    memcpy(&image[at], &descriptor, sizeof descriptor);
  }
  return image;
}

std::string sparkc::test::writePair(const TempDir &dir,
                                    const std::string &object,
                                    const std::string &weights,
                                    const std::string &name) {
  writeFile(dir / (name + ".so"), object);
  writeFile(dir / (name + ".weights"), weights);
  return dir / (name + ".so");
}

ModelPtr sparkc::test::openToy(const TempDir &dir, Toy kind) {
  // A new name each time: an object in use must not be written over.
  static int count = 0;
  std::string so = writePair(dir, objectImage(nullptr, kind), weightsImage(),
                             "model" + std::to_string(count++));
  sparkc_model *model = nullptr;
  sparkc_error why;
  EXPECT_EQ(sparkc_open(so.c_str(), nullptr, nullptr, &model, &why), SPARKC_OK)
      << why.message;
  return ModelPtr(model);
}

SessionPtr sparkc::test::newSession(const ModelPtr &model, uint64_t context,
                                    uint32_t threads, uint32_t wait,
                                    uint32_t chunk) {
  sparkc_session_options options = {};
  options.struct_size = sizeof options;
  options.context = context;
  options.threads = threads;
  options.wait = wait;
  options.prefill_chunk = chunk;
  sparkc_session *session = nullptr;
  sparkc_error why;
  EXPECT_EQ(sparkc_session_create(model.get(), &options, &session, &why),
            SPARKC_OK)
      << why.message;
  return SessionPtr(session);
}

std::vector<int32_t> sparkc::test::someTokens(size_t n, uint32_t seed) {
  std::vector<int32_t> tokens;
  for (uint32_t x = seed * 2654435761u + 1; tokens.size() < n;) {
    x = x * 1664525u + 1013904223u;
    tokens.push_back((x >> 8) % TOY_VOCAB);
  }
  return tokens;
}

std::vector<float> sparkc::test::reference(const ModelPtr &model,
                                           const std::vector<int32_t> &tokens) {
  SessionPtr session = newSession(model);
  std::vector<float> logits(tokens.size() * TOY_VOCAB);
  for (size_t i = 0; i < tokens.size(); ++i)
    EXPECT_EQ(sparkc_decode(session.get(), tokens[i], &logits[i * TOY_VOCAB]),
              SPARKC_OK);
  return logits;
}
