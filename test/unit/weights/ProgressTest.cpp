//===- ProgressTest.cpp - The progress bar --------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Progress.h"
#include <gtest/gtest.h>

using sparkc::Progress;

TEST(Progress, Renders) {
  EXPECT_EQ(
      Progress::render("packing", "lm_head", 500000000, 2000000000, 3, 200),
      "packing [######------------------]  25%  0.5 GB  9 s left  "
      "lm_head");
  EXPECT_EQ(Progress::render("packing", "", 1, 1, 3, 200),
            "packing [########################] 100%  0.0 GB");
  EXPECT_EQ(Progress::render("packing", "", 0, 0, 0, 12), "packing [###");
}

TEST(Progress, SilentWithoutATerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress("packing", 10);
    progress.advance(5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}
