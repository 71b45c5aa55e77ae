//===- BudgetTest.cpp - Which grid for which matrix -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/calibrate/Budget.h"
#include "gtest/gtest.h"
#include <random>

using namespace sparkc;

namespace {

std::vector<GridUnit> someUnits() {
  // The second choice of "a" is dominated, the third of "b" is above the line
  // between its neighbours.
  return {{{"a"}, {{"q4", 100, 8}, {"q4x", 120, 9}, {"q6", 150, 2}}},
          {{"b", "c"}, {{"q4", 200, 1}, {"q5", 250, 0.5}, {"q6", 300, 0.4},
                        {"q8", 350, 0.0}}}};
}

TEST(Budget, FrontStepsByWorth) {
  std::vector<FrontPoint> front = gridFront(someUnits());
  ASSERT_EQ(front.size(), 4u);
  std::vector<std::vector<size_t>> chosen;
  std::vector<uint64_t> bytes;
  for (const FrontPoint &point : front) {
    chosen.push_back(point.chosen);
    bytes.push_back(point.bytes);
  }
  EXPECT_EQ(bytes, (std::vector<uint64_t>{300, 350, 400, 500}));
  EXPECT_EQ(chosen, (std::vector<std::vector<size_t>>{
                        {0, 0}, {2, 0}, {2, 1}, {2, 3}}));
  EXPECT_DOUBLE_EQ(front.front().kl, 9);
  EXPECT_DOUBLE_EQ(front.back().kl, 2);
}

TEST(Budget, TakesWhatFits) {
  std::vector<GridUnit> units = someUnits();
  for (auto [bytes, wanted] :
       {std::pair<uint64_t, std::vector<size_t>>{300, {0, 0}},
        {349, {0, 0}},
        {350, {2, 0}},
        {399, {2, 0}},
        {400, {2, 1}},
        {1 << 20, {2, 3}}}) {
    auto best = bestWithin(units, bytes);
    ASSERT_TRUE(bool(best)) << bytes;
    EXPECT_EQ(best->chosen, wanted) << bytes;
    EXPECT_LE(best->bytes, bytes);
  }
  auto none = bestWithin(units, 299);
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(llvm::toString(none.takeError()), "needs at least 300 bytes");
}

TEST(Budget, SpendsABudgetBest) {
  // The step that gains most a byte does not fit; two others do.
  std::vector<GridUnit> units = {{{"a"}, {{"q4", 100, 10}, {"q6", 160, 1}}},
                                 {{"b"}, {{"q4", 100, 5}, {"q5", 125, 2}}},
                                 {{"c"}, {{"q4", 100, 5}, {"q5", 125, 3}}}};
  auto best = bestWithin(units, 350);
  ASSERT_TRUE(bool(best));
  EXPECT_EQ(best->chosen, (std::vector<size_t>{0, 1, 1}));
  EXPECT_EQ(best->bytes, 350u);
  EXPECT_DOUBLE_EQ(best->kl, 15);
  // Against all combinations.
  std::mt19937 random(2);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<GridUnit> some(4);
    uint64_t least = 0;
    for (GridUnit &unit : some) {
      uint64_t few = 1000;
      for (int i = 0; i < 4; ++i) {
        unit.choices.push_back(
            {"", 10 + random() % 40, 1e-3 * double(random() % 99)});
        few = std::min(few, unit.choices.back().bytes);
      }
      least += few;
    }
    for (uint64_t bytes : {least, least + 10, least + 60}) {
      double wanted = 1e9;
      for (size_t all = 0; all < 256; ++all) {
        uint64_t sum = 0;
        double kl = 0;
        for (size_t u = 0; u < 4; ++u) {
          sum += some[u].choices[all >> 2 * u & 3].bytes;
          kl += some[u].choices[all >> 2 * u & 3].kl;
        }
        if (sum <= bytes)
          wanted = std::min(wanted, kl);
      }
      auto within = bestWithin(some, bytes);
      ASSERT_TRUE(bool(within));
      EXPECT_LE(within->bytes, bytes);
      EXPECT_NEAR(within->kl, wanted, 1e-12);
    }
  }
}

TEST(Budget, NoPointOfTheFrontIsBeaten) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<GridUnit> units(3);
    for (GridUnit &unit : units)
      for (int i = 0; i < 4; ++i)
        unit.choices.push_back({"", 10 + random() % 40, 1e-3 * (random() % 99)});
    std::vector<FrontPoint> front = gridFront(units);
    for (size_t i = 1; i < front.size(); ++i) {
      EXPECT_GT(front[i].bytes, front[i - 1].bytes);
      EXPECT_LT(front[i].kl, front[i - 1].kl);
    }
    for (size_t all = 0; all < 64; ++all) {
      uint64_t bytes = 0;
      double kl = 0;
      for (size_t u = 0; u < 3; ++u) {
        bytes += units[u].choices[all >> 2 * u & 3].bytes;
        kl += units[u].choices[all >> 2 * u & 3].kl;
      }
      for (const FrontPoint &point : front)
        EXPECT_FALSE(bytes <= point.bytes && kl < point.kl - 1e-12);
    }
  }
}

TEST(Pareto, DrawsWhatItIsGiven) {
  ParetoPicture picture;
  picture.title = "bits <&> KL";
  picture.front = {{4.2, 0.01}, {4.5, 0.006}, {5.2, 0.003}};
  picture.chosen = {{4.5, 0.006}};
  picture.measured = {{4.5, 0.0064}};
  std::string svg = picture.svg();
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_NE(svg.find("bits &lt;&amp;&gt; KL"), std::string::npos);
  EXPECT_NE(svg.find("<polyline"), std::string::npos);
  EXPECT_NE(svg.find("KL 0.00640"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(ParetoPicture().svg().find("nan"), std::string::npos);
}

} // namespace
