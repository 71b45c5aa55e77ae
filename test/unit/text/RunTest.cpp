//===- RunTest.cpp - sparkc-run writes text -------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tool over the hand-written model: what it makes of its options. The
// model's tokens are nonsense, its likeliest ones the same each time.
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/ToyText.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sys/wait.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {

struct Result {
  int status;
  std::string out, err;
};

class Run : public testing::Test {
protected:
  TempDir dir;
  std::string so = writeToyText(dir, sparkTinySections());

  Result shell(const std::string &command) {
    int status = std::system(
        (command + " >" + (dir / "out") + " 2>" + (dir / "err")).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readFile(dir / "out"),
            readFile(dir / "err")};
  }

  Result run(const std::string &arguments, const std::string &before = "") {
    return shell(before + " " SPARKC_RUN " " + so + " " + arguments);
  }

  void expectError(const std::string &arguments, const std::string &message) {
    Result result = run(arguments);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "sparkc-run: error: " + message + "\n");
  }
};

bool startsWith(const std::string &text, const std::string &start) {
  return text.compare(0, start.size(), start) == 0;
}

} // namespace

TEST_F(Run, GoesOnFromThePrompt) {
  Result result = run("-p 'My dear Jane, I' -n 8 --ignore-eos");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(startsWith(result.out, "My dear Jane, I")) << result.out;
  EXPECT_GT(result.out.size(), 16u);
  EXPECT_EQ(result.out.back(), '\n');
  EXPECT_TRUE(startsWith(result.err, "prompt 5 tokens, ")) << result.err;
  EXPECT_NE(result.err.find("; generation 8 tokens, "), std::string::npos);
  EXPECT_EQ(result.err.find("seed"), std::string::npos);
  // Without the echo it is the rest of it; with more threads the same.
  Result rest = run("-p 'My dear Jane, I' -n 8 --ignore-eos --no-echo -t 3");
  EXPECT_EQ("My dear Jane, I" + rest.out, result.out);
}

TEST_F(Run, ReadsThePromptFromAFileOrFromStandardInput) {
  const std::string expected = run("-p 'Call me' -n 4 --ignore-eos").out;
  writeFile(dir / "prompt", "Call me\n");
  EXPECT_EQ(run("-n 4 --ignore-eos -f " + (dir / "prompt")).out, expected);
  const std::string pipe = "printf 'Call me\\n' |";
  EXPECT_EQ(run("-n 4 --ignore-eos -f -", pipe).out, expected);
  EXPECT_EQ(run("-n 4 --ignore-eos", pipe).out, expected);
}

TEST_F(Run, ASeedFixesTheText) {
  const std::string how = "-p a -n 20 --ignore-eos --temp 100 --top-p 1 ";
  Result first = run(how + "--seed 7");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.err.find("; seed 7\n"), std::string::npos) << first.err;
  EXPECT_EQ(run(how + "--seed 7").out, first.out);
  EXPECT_NE(run(how + "--seed 8").out, first.out);
  EXPECT_EQ(run(how + "--seed 7 --top-k 1").out,
            run("-p a -n 20 --ignore-eos").out);
}

TEST_F(Run, OnlyThePromptIfNoTokensAreWanted) {
  Result result = run("-p 'Call me' -n 0");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "Call me\n");
}

TEST_F(Run, SpecialTokensInThePrompt) {
  EXPECT_TRUE(startsWith(run("-p '<think>' -n 0").err, "prompt 1 tokens"));
  EXPECT_TRUE(
      startsWith(run("-p '<think>' -n 0 --plain").err, "prompt 4 tokens"));
}

TEST_F(Run, BosIsAddedIfTheConfigSaysSo) {
  Sections sections = sparkTinySections();
  std::string &config = sections[SPARKC_SECTION_TOKENIZER_CONFIG];
  const std::string off = "\"add_bos_token\": false";
  config.replace(config.find(off), off.size(), "\"add_bos_token\": true");
  so = writeToyText(dir, sections);
  Result result = run("-p 'Call me' -n 0");
  EXPECT_TRUE(startsWith(result.err, "prompt 4 tokens")) << result.err;
  EXPECT_EQ(result.out, "Call me\n");
  EXPECT_TRUE(
      startsWith(run("-p 'Call me' -n 0 --no-bos").err, "prompt 3 tokens"));
  EXPECT_TRUE(startsWith(run("-p '<｜start▁of▁sentence｜>Call me' -n 0").err,
                         "prompt 4 tokens"));
}

TEST_F(Run, StopsWhereTheContextEnds) {
  Result result = run("-p 'Call me' -n -1 --context 16 --ignore-eos");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("generation 14 tokens"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("; context full\n"), std::string::npos);
}

TEST_F(Run, AnInterruptEndsTheAnswer) {
  Result result = run("-p 'Call me' -n -1 --context 100000 --ignore-eos",
                      "timeout --foreground -s INT 1");
  EXPECT_EQ(result.status, 124); // timeout's; the tool's own is 130
  EXPECT_TRUE(startsWith(result.out, "Call me"));
  EXPECT_EQ(result.out.back(), '\n');
  EXPECT_NE(result.err.find("; interrupted\n"), std::string::npos)
      << result.err;
}

TEST_F(Run, ErrorsAreOneLine) {
  expectError("-p ''", "the prompt is empty");
  expectError("-n 4 </dev/null", "the prompt is empty");
  expectError("-f " + (dir / "none"),
              (dir / "none") + ": No such file or directory");
  expectError("-f " + dir.path, dir.path + ": Is a directory");
  expectError("-p a --top-p 0", "--top-p must be above 0 and at most 1");
  expectError("-p a --temp -1", "the temperature must be in 0 .. 1000000");
  so = writeToyText(dir, {});
  expectError("-p a", (dir / "model.weights") +
                          ": the model was compiled without a tokenizer");
}

TEST_F(Run, AFullDiskIsAnError) {
  Result result =
      shell("sh -c '" SPARKC_RUN " " + so + " -p a -n 4 >/dev/full'");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "sparkc-run: error: standard output: No space left on device\n");
}
