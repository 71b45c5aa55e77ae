//===- SessionFileTest.cpp - Saved sessions -------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/ToyFiles.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sparkc::test;

namespace {

class SessionFileTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(sparkc_prefill(session.get(), tokens.data(), 40, 0, nullptr),
              SPARKC_OK);
    ASSERT_EQ(sparkc_session_save(session.get(), file.c_str(), &why), SPARKC_OK)
        << why.message;
  }
  /// Decodes tokens[from, to) and compares with what decode gives from 0.
  void continues(const SessionPtr &s, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      std::vector<float> logits(TOY_VOCAB);
      ASSERT_EQ(sparkc_decode(s.get(), tokens[i], logits.data()), SPARKC_OK);
      ASSERT_EQ(memcmp(logits.data(), &expected[i * TOY_VOCAB],
                       TOY_VOCAB * sizeof(float)),
                0)
          << i;
    }
  }
  sparkc_status restore(const SessionPtr &s, const std::string &path) {
    return sparkc_session_restore(s.get(), path.c_str(), &why);
  }

  TempDir dir;
  ModelPtr model = openToy(dir);
  std::vector<int32_t> tokens = someTokens(90);
  std::vector<float> expected = reference(model, tokens);
  SessionPtr session = newSession(model);
  std::string file = dir / "saved";
  sparkc_error why;
};

TEST_F(SessionFileTest, RestoredGoesOnAlike) {
  SessionPtr other = newSession(model);
  ASSERT_EQ(sparkc_decode(other.get(), 1, nullptr), SPARKC_OK);
  ASSERT_EQ(restore(other, file), SPARKC_OK) << why.message;
  ASSERT_EQ(sparkc_session_position(other.get()), 40u);
  EXPECT_EQ(memcmp(sparkc_session_tokens(other.get()), tokens.data(), 160), 0);
  continues(other, 40, 60);
  continues(session, 40, 60); // saving changed nothing
}

TEST_F(SessionFileTest, RestoredKnowsWhatItsRingHolds) {
  // Rewound before the save: 33 may go on, but 31 must be computed again.
  ASSERT_EQ(sparkc_rewind(session.get(), 33), SPARKC_OK);
  ASSERT_EQ(sparkc_session_save(session.get(), file.c_str(), &why), SPARKC_OK);
  SessionPtr other = newSession(model);
  ASSERT_EQ(restore(other, file), SPARKC_OK) << why.message;
  uint32_t before = sparkc_session_barriers(other.get());
  ASSERT_EQ(sparkc_rewind(other.get(), 31), SPARKC_OK);
  EXPECT_NE(sparkc_session_barriers(other.get()), before);
  continues(other, 31, 50);
}

TEST_F(SessionFileTest, RestoredRewindsForFreeWhereItsRingServes) {
  SessionPtr other = newSession(model);
  ASSERT_EQ(restore(other, file), SPARKC_OK) << why.message;
  uint32_t before = sparkc_session_barriers(other.get());
  ASSERT_EQ(sparkc_rewind(other.get(), 34), SPARKC_OK);
  EXPECT_EQ(sparkc_session_barriers(other.get()), before);
  continues(other, 34, 50);
}

TEST_F(SessionFileTest, EmptySession) {
  ASSERT_EQ(sparkc_reset(session.get()), SPARKC_OK);
  ASSERT_EQ(sparkc_session_save(session.get(), file.c_str(), &why), SPARKC_OK);
  SessionPtr other = newSession(model);
  ASSERT_EQ(restore(other, file), SPARKC_OK) << why.message;
  continues(other, 0, 20);
}

TEST_F(SessionFileTest, RefusedLeavesTheSessionAsItWas) {
  const std::string good = readFile(file);
  SessionPtr other = newSession(model);
  ASSERT_EQ(sparkc_prefill(other.get(), tokens.data(), 10, 0, nullptr),
            SPARKC_OK);
  auto refused = [&](const std::string &bytes, sparkc_status status) {
    writeFile(dir / "bad", bytes);
    EXPECT_EQ(restore(other, dir / "bad"), status) << why.message;
    EXPECT_STRNE(why.message, "");
    EXPECT_EQ(sparkc_session_position(other.get()), 10u);
  };
  refused("", SPARKC_FORMAT);
  refused(good.substr(0, 50), SPARKC_FORMAT);
  refused(good.substr(0, good.size() - 1), SPARKC_FORMAT);
  refused(good + "x", SPARKC_FORMAT);
  for (size_t i = 0; i < 96; i += 5) { // any byte of the header
    std::string tampered = good;
    tampered[i] ^= 4;
    writeFile(dir / "bad", tampered);
    EXPECT_NE(restore(other, dir / "bad"), SPARKC_OK) << i;
  }
  for (size_t at : {size_t(100), size_t(260), size_t(4096), size_t(4200)}) {
    std::string tampered = good;
    tampered[at] ^= 1;
    refused(tampered, SPARKC_CORRUPT);
  }
  EXPECT_EQ(restore(other, dir / "none"), SPARKC_IO);
  continues(other, 10, 30);
}

TEST_F(SessionFileTest, TruncatedAnywhere) {
  SessionPtr other = newSession(model);
  ASSERT_EQ(sparkc_prefill(other.get(), tokens.data(), 10, 0, nullptr),
            SPARKC_OK);
  for (off_t size = off_t(readFile(file).size()) - 1; size >= 0; --size) {
    ASSERT_EQ(truncate(file.c_str(), size), 0);
    ASSERT_EQ(restore(other, file), SPARKC_FORMAT) << size;
    ASSERT_EQ(strncmp(why.message, file.c_str(), file.size()), 0) << size;
  }
  continues(other, 10, 30);
}

TEST_F(SessionFileTest, OtherModelOrCapacity) {
  auto openAltered = [&](const char *name, auto alter, auto alterWeights) {
    std::string so =
        writePair(dir, objectImage(alter), weightsImage(alterWeights), name);
    sparkc_model *m = nullptr;
    EXPECT_EQ(sparkc_open(so.c_str(), nullptr, nullptr, &m, &why), SPARKC_OK)
        << why.message;
    return ModelPtr(m);
  };
  ModelPtr foreign = openAltered(
      "foreign", [](auto &d) { d.digest[0] ^= 1; },
      [](auto &h) { h.digest[0] ^= 1; });
  SessionPtr a = newSession(foreign);
  EXPECT_EQ(restore(a, file), SPARKC_MISMATCH);
  EXPECT_NE(strstr(why.message, "another model"), nullptr) << why.message;
  ModelPtr other = openAltered(
      "kv", [](auto &d) { d.kv_type = SPARKC_KV_F32; }, [](auto &) {});
  SessionPtr b = newSession(other);
  EXPECT_EQ(restore(b, file), SPARKC_MISMATCH);
  SessionPtr wider = newSession(model, 300);
  EXPECT_EQ(restore(wider, file), SPARKC_MISMATCH);
  SessionPtr same = newSession(model, 111); // rounds up to the same 112
  EXPECT_EQ(restore(same, file), SPARKC_OK) << why.message;
}

TEST_F(SessionFileTest, WrittenWholeOrNotAtAll) {
  const std::string before = readFile(file);
  EXPECT_EQ(sparkc_session_save(session.get(), (dir / "no/such").c_str(), &why),
            SPARKC_IO);
  // A folder in the way: the rename fails, nothing is left behind.
  std::filesystem::create_directories(dir / "folder/inside");
  EXPECT_EQ(sparkc_session_save(session.get(), (dir / "folder").c_str(), &why),
            SPARKC_IO);
  size_t files = 0;
  for (auto &entry : std::filesystem::directory_iterator(dir.path))
    files += entry.path().string().find("folder.") != std::string::npos;
  EXPECT_EQ(files, 0u);
  EXPECT_EQ(readFile(file), before);
}

TEST_F(SessionFileTest, UnusedCacheTakesNoSpace) {
  SessionPtr large = newSession(model, 1 << 20); // 4 MiB of cache
  ASSERT_EQ(sparkc_prefill(large.get(), tokens.data(), 40, 0, nullptr),
            SPARKC_OK);
  ASSERT_EQ(sparkc_session_save(large.get(), file.c_str(), &why), SPARKC_OK);
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_GT(info.st_size, 4 << 20);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
}

} // namespace
