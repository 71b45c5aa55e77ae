//===- BenchTest.cpp - The benchmark tool on the hand-written model -------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc-bench/Bench.h"
#include "test/unit/runtime/ToyFiles.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace sparkc::bench;
using namespace sparkc::test;
using Json = nlohmann::json;

namespace {

/// What the documentation promises of every row.
const char *const keys[] = {"test",
                            "threads",
                            "isa",
                            "stddev",
                            "tokens_per_second",
                            "bytes_per_token",
                            "ceiling_share",
                            "read_ceiling_gbps",
                            "read_sustained_gbps",
                            "sustained_share",
                            "barriers",
                            "share_linear",
                            "share_attention",
                            "share_other",
                            "profile_slowdown"};

class BenchTest : public testing::Test {
protected:
  void SetUp() override {
    SKIP_UNDER_TSAN();
    options.prompt = 2 * TOY_BLOCK + 1;
    options.generate = 6;
    options.repetitions = 1;
    options.threads = 2;
    options.ceilingMiB = 8;
  }
  Report runOn(Toy kind) {
    options.model = writePair(dir, objectImage(nullptr, kind), weightsImage());
    bench = std::make_unique<Bench>(options);
    Report report;
    EXPECT_TRUE(bench->run(report));
    return report;
  }
  TempDir dir;
  Options options;
  std::unique_ptr<Bench> bench;
};

TEST_F(BenchTest, EveryFigureOfAModelWithProfiles) {
  options.depth = 3;
  Report report = runOn(Toy::Profile);
  Json rows = Json::parse(reportJson(report));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["test"], "tg6");
  EXPECT_EQ(rows[1]["test"], "pp13");
  for (const Json &row : rows) {
    for (const char *key : keys)
      EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_EQ(row["threads"], 2);
    EXPECT_EQ(row["isa"], "avx2");
    EXPECT_GT(row["tokens_per_second"], 0);
    EXPECT_GT(row["read_sustained_gbps"], 0.1);
    EXPECT_GE(row["read_ceiling_gbps"], row["read_sustained_gbps"]);
    EXPECT_GT(row["profile_slowdown"], 0);
    EXPECT_NEAR(double(row["share_linear"]) + double(row["share_attention"]) +
                    double(row["share_other"]),
                1, 1e-9);
    EXPECT_GT(row["share_linear"], 0);
    EXPECT_EQ(row["depth"], 3);
    EXPECT_EQ(row["logits_finite"], true);
    EXPECT_EQ(row["samples"].size(), 1u);
  }
  EXPECT_EQ(rows[0]["barriers"], TOY_BARRIERS);
  EXPECT_EQ(rows[1]["barriers"], 13 * TOY_BARRIERS);
  double kv = 0; // positions 3 to 8: one full layer, three of window 5
  for (int pos = 3; pos < 9; ++pos)
    kv += 2 * 2 * 16 * 2 * (pos + 1 + 3 * std::min(pos + 1, TOY_WINDOW)) / 6.0;
  EXPECT_DOUBLE_EQ(rows[0]["bytes_per_token"], TOY_PAYLOAD + kv);
  EXPECT_TRUE(rows[0]["ceiling_share"].is_number());
  EXPECT_GE(rows[0]["sustained_share"], rows[0]["ceiling_share"])
      << "of one repetition";
  EXPECT_FALSE(rows[0].contains("peak_tops"));
  EXPECT_TRUE(rows[1]["bytes_per_token"].is_null());
  for (const char *key : {"peak_tops", "peak_share", "peak_share_linear"})
    EXPECT_TRUE(rows[1][key].is_number()) << key;

  // Three steps, and all of the prompt's blocks: 6 + 6 + 1 tokens.
  Json trace = Json::parse(traceJson(bench->tracedCalls(), bench->phaseTable(),
                                     bench->cyclesPerSecond()));
  std::vector<std::string> calls;
  int phases = 0, barriers = 0, heads = 0;
  double before = 0;
  for (const Json &event : trace["traceEvents"]) {
    if (event["name"] == "process_name")
      calls.push_back(event["args"]["name"]);
    if (event["ph"] != "X")
      continue;
    EXPECT_GE(event["dur"], 0);
    EXPECT_LT(event["ts"], 60e6);
    if (event["name"] == "barrier") {
      EXPECT_NEAR(event["ts"], before, 1e-3) << "a wait follows its phase";
      ++barriers;
      continue;
    }
    ++phases;
    before = double(event["ts"]) + double(event["dur"]);
    EXPECT_TRUE(event["args"].contains("barrier_us"));
    if (event["name"] == "head") {
      ++heads;
      EXPECT_EQ(event["args"]["bytes"], TOY_PAYLOAD);
      EXPECT_EQ(event["args"]["kind"], "linear");
      EXPECT_FALSE(event["args"].contains("layer"));
    } else {
      EXPECT_EQ(event["args"]["layer"], 0);
    }
  }
  ASSERT_EQ(calls.size(), 6u);
  EXPECT_EQ(calls[0], "tg6 step");
  EXPECT_EQ(calls[5], "pp13 tokens 12 to 12");
  int threads = phases / (TOY_BARRIERS * (3 + 13));
  EXPECT_TRUE(threads == 1 || threads == 2);
  EXPECT_EQ(phases, threads * TOY_BARRIERS * (3 + 13));
  EXPECT_EQ(barriers, phases);
  EXPECT_EQ(heads * TOY_BARRIERS, phases);
}

TEST_F(BenchTest, AbsentFiguresAreNull) {
  options.generate = 0;
  Report report = runOn(Toy::StepOnly);
  Json rows = Json::parse(reportJson(report));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["test"], "pp13");
  EXPECT_TRUE(rows[0]["bytes_per_token"].is_null());
  EXPECT_TRUE(rows[0]["ceiling_share"].is_null());
  EXPECT_TRUE(rows[0]["sustained_share"].is_null());
  std::string table = reportMarkdown(report);
  EXPECT_EQ(table.find("tok/s |"), table.rfind("tok/s |")) << "one table";
}

TEST_F(BenchTest, SaysWhatIsMissing) {
  options.prompt = 0;
  options.threads = 1;
  // The toy without an entry that writes phases: its table is empty.
  Report report = runOn(Toy::Prefill);
  Json rows = Json::parse(reportJson(report));
  ASSERT_EQ(rows.size(), 1u);
  for (const char *key :
       {"share_linear", "share_attention", "share_other", "profile_slowdown"})
    EXPECT_TRUE(rows[0][key].is_null()) << key;
  EXPECT_NE(reportMarkdown(report).find("no profile entries in this model"),
            std::string::npos);
}

TEST_F(BenchTest, ATimelineNeedsProfileEntries) {
  options.profile = dir / "trace.json";
  options.model = writePair(dir, objectImage(), weightsImage());
  Report report;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(Bench(options).run(report));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "sparkc-bench: error: " + options.model +
                ": no profile entries in this model, so no timeline\n");
}

TEST_F(BenchTest, SyntheticWeights) {
  options.prompt = 0;
  options.synthetic = true;
  options.model = dir / "alone.so";
  writeFile(options.model, objectImage(nullptr, Toy::Profile));
  Report report;
  Bench bench(options);
  ASSERT_TRUE(bench.run(report));
  EXPECT_EQ(Json::parse(reportJson(report))[0]["synthetic_weights"], true);
}

} // namespace
