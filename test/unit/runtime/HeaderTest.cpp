//===- HeaderTest.cpp - Runs the host that was compiled as C11 ------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/ToyFiles.h"

#include <gtest/gtest.h>

using namespace sparkc::test;

extern "C" sparkc_status sparkc_c_host(const char *so, char reason[504]);

TEST(HeaderTest, HostInC11Runs) {
  SKIP_UNDER_TSAN();
  TempDir dir;
  std::string so = writePair(dir, objectImage(), weightsImage());
  char reason[504];
  EXPECT_EQ(sparkc_c_host(so.c_str(), reason), SPARKC_OK) << reason;
  EXPECT_EQ(sparkc_c_host("/none.so", reason), SPARKC_IO);
  EXPECT_STRNE(reason, "");
}
