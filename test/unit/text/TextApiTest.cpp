//===- TextApiTest.cpp - The C interface's text section -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/text/ToyText.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <thread>

using namespace sparkc;
using namespace sparkc::test;

namespace {

class TextApi : public testing::Test {
protected:
  TempDir dir;
  sparkc_error why = {};

  ModelPtr open(const Sections &sections = sparkTinySections(),
                uint32_t vocab = 4096) {
    std::string so = writeToyText(dir, sections, vocab);
    sparkc_model *model = nullptr;
    EXPECT_EQ(sparkc_open(so.c_str(), nullptr, nullptr, &model, &why),
              SPARKC_OK)
        << why.message;
    return ModelPtr(model);
  }

  std::vector<int32_t> tokens(const ModelPtr &model, std::string_view text,
                              uint32_t flags = SPARKC_TOKENIZE_PARSE_SPECIAL) {
    std::vector<int32_t> ids(text.size() + 8);
    size_t count = 0;
    EXPECT_EQ(sparkc_tokenize(model.get(), text.data(), text.size(), flags,
                              ids.data(), ids.size(), &count, &why),
              SPARKC_OK)
        << why.message;
    ids.resize(count);
    return ids;
  }
};

using Ids = std::vector<int32_t>;

} // namespace

TEST_F(TextApi, Tokenizes) {
  ModelPtr model = open();
  EXPECT_EQ(tokens(model, "My dear Jane, I"), (Ids{3349, 1807, 2341, 20, 315}));
  EXPECT_EQ(tokens(model, "<think>"), (Ids{6}));
  EXPECT_GT(tokens(model, "<think>", 0).size(), 1u);
  EXPECT_EQ(tokens(model, ""), Ids());
}

TEST_F(TextApi, TellsHowMuchRoomIsNeeded) {
  ModelPtr model = open();
  size_t count = 0;
  EXPECT_EQ(sparkc_tokenize(model.get(), "My dear Jane, I", 15, 0, nullptr, 0,
                            &count, &why),
            SPARKC_OK);
  EXPECT_EQ(count, 5u);
  int32_t ids[3] = {-1, -1, -1};
  EXPECT_EQ(sparkc_tokenize(model.get(), "My dear Jane, I", 15, 0, ids, 2,
                            &count, &why),
            SPARKC_OK);
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(ids[1], 1807);
  EXPECT_EQ(ids[2], -1);
}

TEST_F(TextApi, RefusesBadArguments) {
  ModelPtr model = open();
  size_t count;
  int32_t id;
  EXPECT_EQ(sparkc_tokenize(nullptr, "a", 1, 0, &id, 1, &count, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_tokenize(model.get(), nullptr, 1, 0, &id, 1, &count, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_tokenize(model.get(), "a", 1, 0, nullptr, 1, &count, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_tokenize(model.get(), "a", 1, 0, &id, 1, nullptr, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_tokenize(model.get(), "a", 1, 64, &id, 1, &count, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_STREQ(why.message, "unknown flags");
  sparkc_decoder *decoder;
  EXPECT_EQ(sparkc_decoder_create(model.get(), 64, &decoder, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(sparkc_decoder_create(nullptr, 0, &decoder, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(decoder, nullptr);
  sparkc_text_info info = {};
  EXPECT_EQ(sparkc_text_info_get(model.get(), &info, &why),
            SPARKC_INVALID_ARGUMENT);
  sparkc_decoder_destroy(nullptr);
  sparkc_sampler_destroy(nullptr);
}

TEST_F(TextApi, KnowsWhatTheFilesSay) {
  ModelPtr model = open();
  sparkc_text_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(sparkc_text_info_get(model.get(), &info, &why), SPARKC_OK);
  EXPECT_EQ(info.n_tokens, 4096u);
  EXPECT_EQ(info.bos, 0);
  EXPECT_EQ(info.n_eos, 1u);
  EXPECT_EQ(info.eos[0], 1);
  EXPECT_EQ(info.eos[1], -1);
  EXPECT_EQ(info.adds_bos, 0u);
  EXPECT_EQ(info.temperature, 0.0); // its config says do_sample: false
  EXPECT_EQ(info.top_p, 0.95);
  ASSERT_NE(info.chat_template, nullptr);
  EXPECT_EQ(std::string_view(info.chat_template).substr(0, 6), "{%- se");
  EXPECT_EQ(sparkc_token_is_eos(model.get(), 1), 1);
  EXPECT_EQ(sparkc_token_is_eos(model.get(), 0), 0);
  EXPECT_EQ(sparkc_token_is_eos(nullptr, 1), 0);
  // An older caller's smaller struct is not overrun.
  info.bos = -7;
  info.n_tokens = 0;
  info.struct_size = offsetof(sparkc_text_info, bos);
  ASSERT_EQ(sparkc_text_info_get(model.get(), &info, &why), SPARKC_OK);
  EXPECT_EQ(info.n_tokens, 4096u);
  EXPECT_EQ(info.bos, -7);
}

TEST_F(TextApi, GivesTheTextOfAToken) {
  ModelPtr model = open();
  size_t bytes = 0;
  const char *text = sparkc_token_text(model.get(), 2341, &bytes);
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(std::string_view(text, bytes), " Jane");
  text = sparkc_token_text(model.get(), 6, &bytes);
  EXPECT_EQ(std::string_view(text, bytes), "<think>");
  EXPECT_EQ(sparkc_token_text(model.get(), 4096, &bytes), nullptr);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(sparkc_token_text(model.get(), -1, nullptr), nullptr);
}

TEST_F(TextApi, DecodesAsAStream) {
  ModelPtr model = open();
  sparkc_decoder *decoder;
  ASSERT_EQ(sparkc_decoder_create(model.get(), SPARKC_DECODER_SHOW_SPECIAL,
                                  &decoder, &why),
            SPARKC_OK);
  const std::string whole = "<think>é 😀";
  Ids ids = tokens(model, whole);
  model.reset(); // a decoder needs it no more
  std::string out;
  const char *text;
  size_t bytes;
  for (int32_t id : ids) {
    ASSERT_EQ(sparkc_decoder_add(decoder, id, &text, &bytes), SPARKC_OK);
    EXPECT_EQ(text[bytes], '\0');
    out.append(text, bytes);
  }
  EXPECT_EQ(out, whole);
  ids.pop_back();
  for (int32_t id : ids)
    ASSERT_EQ(sparkc_decoder_add(decoder, id, &text, &bytes), SPARKC_OK);
  ASSERT_EQ(sparkc_decoder_finish(decoder, &text, &bytes), SPARKC_OK);
  EXPECT_EQ(std::string_view(text, bytes), "\xef\xbf\xbd");
  EXPECT_EQ(sparkc_decoder_add(nullptr, 1, &text, &bytes),
            SPARKC_INVALID_ARGUMENT);
  sparkc_decoder_destroy(decoder);
}

TEST_F(TextApi, Samples) {
  sparkc_sampler *sampler;
  ASSERT_EQ(sparkc_sampler_create(nullptr, &sampler, &why), SPARKC_OK);
  const float logits[] = {0, 3, 3, NAN};
  int32_t token = -1;
  EXPECT_EQ(sparkc_sample(sampler, logits, 4, &token), SPARKC_OK);
  EXPECT_EQ(token, 1);
  const float none[] = {NAN, -INFINITY};
  EXPECT_EQ(sparkc_sample(sampler, none, 2, &token), SPARKC_INVALID_ARGUMENT);
  EXPECT_EQ(token, 1);
  EXPECT_EQ(sparkc_sample(sampler, logits, 0, &token), SPARKC_INVALID_ARGUMENT);
  sparkc_sampler_destroy(sampler);

  // Seed 0 draws from the top, then the second, then the first quarter.
  sparkc_sampler_options options = {};
  options.struct_size = sizeof options;
  options.temperature = 1;
  ASSERT_EQ(sparkc_sampler_create(&options, &sampler, &why), SPARKC_OK);
  const float equal[] = {1, 1, 1, 1};
  for (int32_t expected : {3, 1, 0}) {
    EXPECT_EQ(sparkc_sample(sampler, equal, 4, &token), SPARKC_OK);
    EXPECT_EQ(token, expected);
  }
  sparkc_sampler_destroy(sampler);

  options.temperature = -1;
  EXPECT_EQ(sparkc_sampler_create(&options, &sampler, &why),
            SPARKC_INVALID_ARGUMENT);
  EXPECT_STREQ(why.message, "the temperature must be in 0 .. 1000000");
  EXPECT_EQ(sampler, nullptr);
}

TEST_F(TextApi, AModelWithoutATokenizer) {
  ModelPtr model = open({});
  size_t count;
  EXPECT_EQ(sparkc_tokenize(model.get(), "a", 1, 0, nullptr, 0, &count, &why),
            SPARKC_NO_TOKENIZER);
  EXPECT_NE(std::string_view(why.message)
                .find("model.weights: the model was compiled without a "
                      "tokenizer"),
            std::string_view::npos);
  EXPECT_EQ(sparkc_token_text(model.get(), 1, nullptr), nullptr);
}

TEST_F(TextApi, ATokenizerThatIsNotUnderstood) {
  Sections sections = sparkTinySections();
  sections[SPARKC_SECTION_TOKENIZER] = "{\"model\": 1}";
  ModelPtr model = open(sections);
  sparkc_text_info info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(sparkc_text_info_get(model.get(), &info, &why), SPARKC_FORMAT);
  EXPECT_NE(std::string_view(why.message)
                .find("model.weights: tokenizer.json: model: not an object"),
            std::string_view::npos);
  // More tokens than logits. (Files in use must not be written over.)
  model.reset();
  model = open(sparkTinySections(), 4095);
  EXPECT_EQ(sparkc_text_info_get(model.get(), &info, &why), SPARKC_FORMAT);
}

TEST_F(TextApi, ManyThreadsMayAskFirst) {
  ModelPtr model = open();
  std::vector<std::thread> threads;
  std::vector<size_t> counts(4);
  for (size_t &count : counts)
    threads.emplace_back([&] {
      sparkc_tokenize(model.get(), "My dear Jane, I", 15, 0, nullptr, 0, &count,
                      nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(counts, (std::vector<size_t>{5, 5, 5, 5}));
}
