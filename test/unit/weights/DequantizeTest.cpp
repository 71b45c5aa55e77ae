//===- DequantizeTest.cpp - Packed weights as a checkpoint ----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Dequantize.h"
#include "codegen/weights/Pack.h"
#include "dialect/import/TensorSet.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace sparkc;
namespace fs = llvm::sys::fs;

namespace {

/// A folder that an export may make, and its parent.
struct Target {
  Target() { EXPECT_FALSE(fs::createUniqueDirectory("export", parent)); }
  ~Target() { fs::remove_directories(parent); }
  std::string path() const { return (parent + "/new").str(); }
  llvm::SmallString<128> parent;
};

std::string goldenPath(llvm::StringRef name) {
  return (llvm::Twine(SPARKC_TEST_GOLDEN) + "/" + name).str();
}

/// Packs a weight as float32, plainly, and adds it to the export.
llvm::Error addWeight(CheckpointExport &to, const Checkpoint &checkpoint,
                      const LogicalWeight &weight) {
  SourceMatrix source;
  source.data = checkpoint.data(weight).data();
  source.type = weight.dtype == DType::F32    ? SourceType::F32
                : weight.dtype == DType::BF16 ? SourceType::BF16
                                              : SourceType::F16;
  bool vector = llvm::StringRef(weight.name).ends_with("norm");
  source.rows = vector ? 1 : weight.rows;
  source.cols = vector ? weight.rows : weight.cols;
  DirectoryEntry entry;
  entry.matrix =
      vector ? PackedMatrix::vector(source.cols)
             : PackedMatrix::plain(Layout::Tile16F32, source.rows, source.cols);
  entry.sources = {weight.name};
  int64_t tile = 0;
  return packFloatMatrix(entry.matrix, source,
                         [&](llvm::ArrayRef<uint8_t> bytes) {
                           llvm::Error error = to.add(entry, tile, bytes);
                           tile += bytes.size() / entry.matrix.tileBytes();
                           return error;
                         });
}

} // namespace

TEST(Dequantize, ShardsHoldAllTensors) {
  auto checkpoint = Checkpoint::open(goldenPath("base"));
  ASSERT_TRUE(bool(checkpoint));
  uint64_t largest = 0;
  for (const LogicalWeight &weight : checkpoint->weights())
    largest = std::max<uint64_t>(largest, weight.rows * weight.cols * 4);
  Target target;
  auto out = CheckpointExport::create(*checkpoint, goldenPath("base"),
                                      target.path(), true, largest);
  ASSERT_TRUE(bool(out)) << llvm::toString(out.takeError());
  for (const LogicalWeight &weight : checkpoint->weights())
    ASSERT_FALSE(bool(addWeight(**out, *checkpoint, weight))) << weight.name;
  EXPECT_FALSE(fs::exists(target.path() + "/config.json"));
  llvm::Error error = (*out)->finish();
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  out->reset();

  auto tensors = TensorSet::open(target.path());
  ASSERT_TRUE(bool(tensors)) << llvm::toString(tensors.takeError());
  EXPECT_GT(tensors->files().size(), 2u);
  for (const SafetensorsFile &file : tensors->files()) {
    uint64_t bytes = 0;
    for (const TensorInfo &info : file.tensors())
      bytes += info.bytes;
    EXPECT_LE(bytes, largest);
  }
  auto again = Checkpoint::open(target.path());
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_FALSE(again->config().tied);
  ASSERT_EQ(again->weights().size(), checkpoint->weights().size() + 1);
  for (const LogicalWeight &weight : again->weights()) {
    const LogicalWeight *before =
        checkpoint->find(weight.name == "lm_head" ? "embedding" : weight.name);
    ASSERT_TRUE(before) << weight.name;
    ASSERT_EQ(weight.bytes, 2 * before->bytes) << weight.name;
    const uint8_t *wide = again->data(weight).data();
    const uint8_t *narrow = checkpoint->data(*before).data();
    for (uint64_t i = 0; i < before->bytes; i += 2) {
      const uint8_t want[] = {0, 0, narrow[i], narrow[i + 1]};
      ASSERT_EQ(std::memcmp(wide + 2 * i, want, 4), 0)
          << weight.name << " element " << i / 2;
    }
  }
}

TEST(Dequantize, MissingRowsAreAnErrorAndNothingIsLeft) {
  auto checkpoint = Checkpoint::open(goldenPath("base"));
  ASSERT_TRUE(bool(checkpoint));
  Target target;
  auto out = CheckpointExport::create(*checkpoint, goldenPath("base"),
                                      target.path(), true);
  ASSERT_TRUE(bool(out));
  for (const LogicalWeight &weight : checkpoint->weights().drop_back())
    ASSERT_FALSE(bool(addWeight(**out, *checkpoint, weight)));
  std::string why = llvm::toString((*out)->finish());
  EXPECT_NE(why.find("model.norm.weight: 0 of"), std::string::npos) << why;
  EXPECT_TRUE(fs::exists(target.path()));
  out->reset();
  EXPECT_FALSE(fs::exists(target.path()));
}

TEST(Dequantize, ADirectoryThatWasThereStays) {
  auto checkpoint = Checkpoint::open(goldenPath("base"));
  ASSERT_TRUE(bool(checkpoint));
  Target target;
  ASSERT_FALSE(fs::create_directory(target.path()));
  {
    auto out = CheckpointExport::create(*checkpoint, goldenPath("base"),
                                        target.path(), true);
    ASSERT_TRUE(bool(out));
  }
  std::error_code error;
  EXPECT_TRUE(fs::is_directory(target.path()));
  EXPECT_EQ(fs::directory_iterator(target.path(), error),
            fs::directory_iterator());
}
