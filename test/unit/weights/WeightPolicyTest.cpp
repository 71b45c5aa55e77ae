//===- WeightPolicyTest.cpp - Rules for tensors ---------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/WeightPolicy.h"
#include <gtest/gtest.h>

using namespace sparkc;

TEST(WeightPolicy, LastMatchDecides) {
  WeightPolicy policy(llvm::cantFail(WeightScheme::parse("q4")));
  EXPECT_EQ(policy.str(), "q4:g64");
  llvm::cantFail(policy.addRule("layers.*.mlp.*=q5"));
  llvm::cantFail(policy.addRule("layers.[01].mlp.down_proj=q8:g32"));
  llvm::cantFail(policy.addRule("lm_head=q6"));
  EXPECT_EQ(policy.schemeFor("layers.12.mlp.gate_proj").str(), "q5:g64");
  EXPECT_EQ(policy.schemeFor("layers.1.mlp.down_proj").str(), "q8:g32");
  EXPECT_EQ(policy.schemeFor("layers.2.mlp.down_proj").str(), "q5:g64");
  EXPECT_EQ(policy.schemeFor("layers.2.self_attn.out_proj").str(), "q4:g64");
  EXPECT_EQ(policy.schemeFor("lm_head").str(), "q6:g64");
  EXPECT_EQ(policy.schemeFor("lm_heads").str(), "q4:g64");
  EXPECT_EQ(policy.str(), "q4:g64, layers.*.mlp.*=q5:g64, "
                          "layers.[01].mlp.down_proj=q8:g32, lm_head=q6:g64");
  std::vector<std::string> names = {"layers.0.mlp.down_proj", "lm_head"};
  EXPECT_EQ(llvm::toString(policy.checkAllUsed(names)), "");
  names.pop_back();
  EXPECT_EQ(llvm::toString(policy.checkAllUsed(names)),
            "no tensor matches 'lm_head'");
}

TEST(WeightPolicy, Refuses) {
  WeightPolicy policy;
  auto error = [&](llvm::StringRef text) {
    return llvm::toString(policy.addRule(text));
  };
  for (const char *bad : {"lm_head", "lm_head=", "=q4", ""})
    EXPECT_EQ(error(bad),
              "expected NAME=SCHEME, found '" + std::string(bad) + "'");
  EXPECT_EQ(error("lm_head=q7").rfind("unknown weight scheme 'q7'", 0), 0u);
  EXPECT_EQ(error("[=q4").rfind("bad pattern '['", 0), 0u);
}
