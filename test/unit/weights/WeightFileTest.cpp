//===- WeightFileTest.cpp - Writing and reading weights files -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/WeightFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>

using namespace sparkc;

namespace {
class WeightFile : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> name;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("weights", name));
    dir = name.str().str();
    path = dir + "/m.weights";
  }
  void TearDown() override { llvm::sys::fs::remove_directories(dir); }

  int files() const {
    int n = 0;
    std::error_code ec;
    for (llvm::sys::fs::directory_iterator it(dir, ec), end; it != end && !ec;
         it.increment(ec))
      ++n;
    return n;
  }

  static DirectoryEntry entry(llvm::StringRef name, PackedMatrix matrix,
                              uint64_t offset) {
    std::vector<std::string> sources;
    for (const RowRun &run : matrix.runs)
      while (static_cast<int>(sources.size()) <=
             std::max(run.weightA, run.weightB))
        sources.push_back((name + "." + llvm::Twine(sources.size())).str());
    return {name.str(), std::move(matrix), std::move(sources), offset};
  }

  /// Three tensors of random bytes, tokenizer and template.
  void writeSample(WeightFileWriter &writer) {
    std::mt19937 rng(3);
    uint64_t offset = 0;
    for (auto &[name, matrix] : sample) {
      ASSERT_EQ(llvm::toString(writer.beginTensor(entry(name, matrix, offset))),
                "");
      std::vector<uint8_t> bytes(matrix.bytes());
      for (uint8_t &b : bytes)
        b = rng();
      size_t split = bytes.size() / 3;
      llvm::ArrayRef<uint8_t> all(bytes);
      ASSERT_EQ(llvm::toString(writer.append(all.take_front(split))), "");
      ASSERT_EQ(llvm::toString(writer.append(all.drop_front(split))), "");
      payload.insert(payload.end(), bytes.begin(), bytes.end());
      offset += bytes.size();
    }
    ASSERT_FALSE(llvm::errorToBool(
        writer.addSection(SPARKC_SECTION_TOKENIZER, "{\"model\": 1}")));
    ASSERT_FALSE(llvm::errorToBool(
        writer.addSection(SPARKC_SECTION_CHAT_TEMPLATE, "hello")));
  }

  void write() {
    auto writer = llvm::cantFail(WeightFileWriter::create(path));
    writeSample(*writer);
    ASSERT_EQ(llvm::toString(writer->finish()), "");
  }

  std::string openError() {
    auto reader = WeightFileReader::open(path);
    return reader ? "" : llvm::toString(reader.takeError());
  }

  std::string readAll() {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void writeAll(const std::string &bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string dir, path;
  std::vector<uint8_t> payload;
  std::vector<std::pair<std::string, PackedMatrix>> sample = {
      {"norm", PackedMatrix::vector(20)},
      {"layers.0.gate_up", PackedMatrix::tiled(Layout::Tile16Q4, 100, 64,
                                               {{1, 24, 0, 0, 0, 1, 8}})},
      {"lm_head", PackedMatrix::plain(Layout::Tile16BF16, 515, 2048)}};
};
} // namespace

TEST_F(WeightFile, RoundTrip) {
  write();
  EXPECT_EQ(files(), 1);
  auto opened = WeightFileReader::open(path);
  ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
  WeightFileReader &reader = **opened;
  EXPECT_EQ(reader.header().n_layouts, 3u);
  EXPECT_EQ(reader.header().layouts[0], SPARKC_LAYOUT_VECTOR_F32);
  EXPECT_EQ(reader.header().layouts[2], SPARKC_LAYOUT_TILE16_Q4);
  EXPECT_EQ(reader.header().sections[0].offset, 4096u);
  EXPECT_TRUE(reader.payload() == llvm::ArrayRef<uint8_t>(payload));
  EXPECT_EQ(reader.section(SPARKC_SECTION_TOKENIZER), "{\"model\": 1}");
  EXPECT_EQ(reader.section(SPARKC_SECTION_CHAT_TEMPLATE), "hello");
  EXPECT_EQ(reader.section(SPARKC_SECTION_CERTIFICATE), "");
  ASSERT_EQ(reader.directory().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const DirectoryEntry &e = reader.directory()[i];
    EXPECT_EQ(e.name, sample[i].first);
    EXPECT_EQ(e.matrix.layout, sample[i].second.layout);
    EXPECT_EQ(e.matrix.cols, sample[i].second.cols);
    EXPECT_EQ(e.matrix.group, sample[i].second.group);
    EXPECT_TRUE(e.matrix.runs == sample[i].second.runs);
  }
  EXPECT_EQ(
      reader.find("layers.0.gate_up")->sources,
      (std::vector<std::string>{"layers.0.gate_up.0", "layers.0.gate_up.1"}));
  EXPECT_EQ(reader.find("nothing"), nullptr);
  EXPECT_EQ(llvm::toString(reader.verifyDigest()), "");
}

// The digest is XXH3-128 in canonical (big-endian) order, as the ABI says, by
// an implementation other than the writer's.
TEST_F(WeightFile, DigestIsCanonicalXXH3) {
  auto writer = WeightFileWriter::createDigestOnly();
  writeSample(*writer);
  WeightDigest digest = llvm::cantFail(writer->finishPayload());
  EXPECT_EQ(llvm::toString(writer->finish()), "");
  llvm::XXH128_hash_t want = llvm::xxh3_128bits(payload);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(digest[i], uint8_t(want.high64 >> (56 - 8 * i)));
    EXPECT_EQ(digest[8 + i], uint8_t(want.low64 >> (56 - 8 * i)));
  }
  payload.clear();
  write();
  auto reader = llvm::cantFail(WeightFileReader::open(path));
  EXPECT_EQ(std::memcmp(reader->header().digest, digest.data(), 16), 0);
}

TEST_F(WeightFile, UnfinishedLeavesNothing) {
  {
    auto writer = llvm::cantFail(WeightFileWriter::create(path));
    writeSample(*writer);
    EXPECT_EQ(files(), 1); // under its temporary name
    EXPECT_FALSE(llvm::sys::fs::exists(path));
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(WeightFile, FailureKeepsTheOldFile) {
  writeAll("old");
  {
    auto writer = llvm::cantFail(WeightFileWriter::create(path));
    writeSample(*writer);
  }
  EXPECT_EQ(readAll(), "old");
  write();
  EXPECT_EQ(openError(), "");
}

TEST_F(WeightFile, PlanIsChecked) {
  auto writer = llvm::cantFail(WeightFileWriter::create(path));
  std::vector<uint8_t> bytes(64);
  EXPECT_EQ(llvm::toString(writer->append(bytes)),
            path + ": more bytes than planned for tensor ''");
  EXPECT_EQ(llvm::toString(
                writer->beginTensor(entry("a", PackedMatrix::vector(16), 64))),
            path + ": tensor 'a' is planned at 64, but the payload is at 0");
  ASSERT_FALSE(llvm::errorToBool(
      writer->beginTensor(entry("a", PackedMatrix::vector(32), 0))));
  ASSERT_FALSE(llvm::errorToBool(writer->append(bytes)));
  EXPECT_EQ(llvm::toString(writer->finish()),
            path + ": tensor 'a' is 64 bytes short");
  ASSERT_FALSE(llvm::errorToBool(writer->append(bytes)));
  EXPECT_EQ(llvm::toString(writer->append(bytes)),
            path + ": more bytes than planned for tensor 'a'");
  ASSERT_FALSE(
      llvm::errorToBool(writer->addSection(SPARKC_SECTION_TOKENIZER, "x")));
  EXPECT_TRUE(
      llvm::errorToBool(writer->addSection(SPARKC_SECTION_TOKENIZER, "y")));
  EXPECT_EQ(llvm::toString(writer->finish()), "");
}

TEST_F(WeightFile, WriteErrorsNameTheFile) {
  auto writer = WeightFileWriter::create(dir + "/no/such/m.weights");
  EXPECT_FALSE(static_cast<bool>(writer));
  EXPECT_EQ(llvm::toString(writer.takeError()),
            dir +
                "/no/such/m.weights: cannot write: No such file or directory");
  // The target becomes a directory meanwhile: only the rename can find out.
  auto other = llvm::cantFail(WeightFileWriter::create(path));
  writeSample(*other);
  ASSERT_FALSE(llvm::sys::fs::create_directory(path));
  EXPECT_EQ(llvm::toString(other->finish()),
            path + ": cannot write: Is a directory");
  other.reset();
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(llvm::toString(WeightFileWriter::create(path).takeError()),
            path + ": cannot write: not a regular file");
}

// A full disk, by way of a limit on the size of files.
TEST_F(WeightFile, FullDisk) {
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {1 << 20, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string error;
  {
    auto writer = llvm::cantFail(WeightFileWriter::create(path));
    writeSample(*writer);
    error = llvm::toString(writer->finish());
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(error, path + ": cannot write: File too large");
  EXPECT_EQ(files(), 0);
}

TEST_F(WeightFile, ReaderRefuses) {
  EXPECT_EQ(openError(), path + ": No such file or directory");
  write();
  std::string good = readAll();
  for (size_t n : {size_t(0), size_t(695), size_t(4096), good.size() / 2,
                   good.size() - 1}) {
    writeAll(good.substr(0, n));
    EXPECT_NE(openError().find(n < sizeof(sparkc_weights_header)
                                   ? "too short for a weights file"
                                   : "truncated: "),
              std::string::npos)
        << n;
  }
  auto flipped = [&](size_t at) {
    std::string bad = good;
    bad[at] ^= 1;
    writeAll(bad);
    return openError().substr(path.size() + 2);
  };
  EXPECT_EQ(flipped(0), "not a weights file");
  EXPECT_EQ(flipped(8), "weights file version 0, expected 1");
  EXPECT_EQ(flipped(30), "damaged header");
  EXPECT_EQ(flipped(sizeof(sparkc_weights_header) - 1), "damaged header");
  EXPECT_EQ(flipped(good.size() - 1), "section 6 is damaged");
  writeAll(good);
  EXPECT_EQ(openError(), "");
  std::string bad = good;
  bad[5000] ^= 1;
  writeAll(bad);
  auto reader = llvm::cantFail(WeightFileReader::open(path));
  EXPECT_EQ(llvm::toString(reader->verifyDigest()),
            path + ": the payload is damaged: its digest differs");
}

TEST(Directory, RefusesWhatDoesNotFit) {
  auto error = [](llvm::StringRef text, uint64_t payload = 1 << 20) {
    auto entries = directoryFromJSON(text, payload);
    return entries ? "" : llvm::toString(entries.takeError());
  };
  std::string good =
      R"({"tensors":[{"name":"a","layout":16,"rows":16,"cols":4,"group":0,)"
      R"("offset":64,"bytes":256,"sources":["a"],"rowmap":)"
      R"([{"heads":1,"width":16,"stride":0,"a":[0,0]}]}]})";
  EXPECT_EQ(error(good), "");
  EXPECT_EQ(error(good, 319),
            "bad directory: tensor 'a' lies outside the payload");
  auto with = [&](llvm::StringRef from, llvm::StringRef to) {
    std::string text = good;
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos);
    return error(text.replace(at, from.size(), to.str()));
  };
  EXPECT_NE(with("\"layout\":16", "\"layout\":99"), "");
  EXPECT_NE(with("\"offset\":64", "\"offset\":65"), "");
  EXPECT_NE(with("\"offset\":64", "\"offset\":-64"), "");
  EXPECT_NE(with("\"offset\":64", "\"offset\":9223372036854775744"), "");
  EXPECT_NE(with("\"cols\":4", "\"cols\":2147483648"), "");
  EXPECT_NE(with("\"width\":16", "\"width\":2147483648"), "");
  EXPECT_NE(with("\"heads\":1", "\"heads\":0"), "");
  EXPECT_NE(with("[0,0]", "[1,0]"), "");
  EXPECT_NE(with("[0,0]", "[0,-1]"), "");
  EXPECT_NE(with("[0,0]", "[0]"), "");
  EXPECT_NE(with("\"rowmap\"", "\"rows\""), "");
  EXPECT_NE(error("{"), "");
  EXPECT_NE(error("[]"), "");
}
