//===- TextApi.cpp - The C interface's text section -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/TextOf.h"
#include "runtime/text/Decoder.h"
#include "runtime/text/Sampler.h"

#include <algorithm>
#include <cstring>

using namespace sparkc;

struct sparkc_decoder {
  sparkc_decoder(TextPtr text, bool showSpecial)
      : text(std::move(text)), decoder(*this->text->tokenizer, showSpecial) {}

  TextPtr text;
  StreamDecoder decoder;
  std::string out;
};

struct sparkc_sampler {
  Sampler sampler;
};

Failure sparkc::textOf(const sparkc_model *handle, TextPtr &text) {
  if (!handle)
    return fail(SPARKC_INVALID_ARGUMENT, "the model is NULL");
  const Model &model = *handle->impl;
  std::lock_guard<std::mutex> lock(model.textMutex);
  if (!model.text) {
    TextFiles files;
    for (auto [kind, bytes] :
         {std::pair(SPARKC_SECTION_TOKENIZER, &files.tokenizer),
          std::pair(SPARKC_SECTION_TOKENIZER_CONFIG, &files.tokenizerConfig),
          std::pair(SPARKC_SECTION_GENERATION_CONFIG, &files.generationConfig),
          std::pair(SPARKC_SECTION_CHAT_TEMPLATE, &files.chatTemplate)})
      if (Failure failure = model.section(kind, *bytes))
        return failure;
    const char *path = model.weightsFile().path().c_str();
    if (files.tokenizer.empty())
      return fail(SPARKC_NO_TOKENIZER,
                  "%s: the model was compiled without a tokenizer", path);
    std::string why;
    TextPtr built = ModelText::load(files, model.descriptor().vocab, why);
    if (!built)
      return fail(SPARKC_FORMAT, "%s: %s", path, why.c_str());
    model.text = std::move(built);
  }
  text = std::static_pointer_cast<const ModelText>(model.text);
  return success();
}

extern "C" sparkc_status sparkc_text_info_get(const sparkc_model *model,
                                              sparkc_text_info *info,
                                              sparkc_error *error) {
  return report(
      guarded([&] {
        if (!info || info->struct_size < sizeof(size_t))
          return fail(SPARKC_INVALID_ARGUMENT,
                      "the info is NULL or has no struct_size");
        TextPtr text;
        if (Failure failure = textOf(model, text))
          return failure;
        const Tokenizer &t = *text->tokenizer;
        sparkc_text_info out = {};
        out.struct_size = info->struct_size;
        out.n_tokens = static_cast<uint32_t>(t.size());
        out.bos = t.bos();
        out.adds_bos = t.addsBos();
        std::fill(std::begin(out.eos), std::end(out.eos), -1);
        out.n_eos =
            static_cast<uint32_t>(std::min(t.eos().size(), std::size(out.eos)));
        std::copy_n(t.eos().begin(), out.n_eos, out.eos);
        out.temperature = text->temperature;
        out.top_p = text->topP;
        out.top_k = text->topK;
        out.chat_template =
            text->chatTemplate.empty() ? nullptr : text->chatTemplate.c_str();
        std::memcpy(info, &out, std::min(info->struct_size, sizeof out));
        return success();
      }),
      error);
}

extern "C" sparkc_status sparkc_tokenize(const sparkc_model *model,
                                         const char *text, size_t bytes,
                                         uint32_t flags, int32_t *tokens,
                                         size_t capacity, size_t *n_tokens,
                                         sparkc_error *error) {
  return report(
      guarded([&] {
        constexpr uint32_t kKnown =
            SPARKC_TOKENIZE_ADD_SPECIAL | SPARKC_TOKENIZE_PARSE_SPECIAL;
        if (!n_tokens || (!text && bytes) || (!tokens && capacity))
          return fail(SPARKC_INVALID_ARGUMENT, "an argument is NULL");
        if (flags & ~kKnown)
          return fail(SPARKC_INVALID_ARGUMENT, "unknown flags");
        TextPtr side;
        if (Failure failure = textOf(model, side))
          return failure;
        EncodeOptions options;
        options.addSpecial = flags & SPARKC_TOKENIZE_ADD_SPECIAL;
        options.parseSpecial = flags & SPARKC_TOKENIZE_PARSE_SPECIAL;
        std::vector<int32_t> ids;
        std::string why;
        if (!side->tokenizer->encode({text, bytes}, options, ids, why))
          return fail(SPARKC_INVALID_ARGUMENT, "%s", why.c_str());
        giveTokens(ids, tokens, capacity, n_tokens);
        return success();
      }),
      error);
}

extern "C" const char *sparkc_token_text(const sparkc_model *model,
                                         int32_t token, size_t *bytes) {
  const char *found = nullptr;
  size_t size = 0;
  Failure failure = guarded([&] {
    TextPtr text;
    if (Failure failure = textOf(model, text))
      return failure;
    if (text->tokenizer->has(token)) {
      std::string_view spelled = text->tokenizer->bytesOf(token);
      found = spelled.data();
      size = spelled.size();
    }
    return success();
  });
  if (bytes)
    *bytes = size;
  return failure ? nullptr : found;
}

extern "C" int sparkc_token_is_eos(const sparkc_model *model, int32_t token) {
  bool is = false;
  Failure failure = guarded([&] {
    TextPtr text;
    if (Failure failure = textOf(model, text))
      return failure;
    is = text->tokenizer->isEos(token);
    return success();
  });
  return !failure && is;
}

extern "C" sparkc_status sparkc_decoder_create(const sparkc_model *model,
                                               uint32_t flags,
                                               sparkc_decoder **decoder,
                                               sparkc_error *error) {
  return report(guarded([&] {
                  if (!decoder)
                    return fail(SPARKC_INVALID_ARGUMENT, "decoder is NULL");
                  *decoder = nullptr;
                  if (flags & ~uint32_t(SPARKC_DECODER_SHOW_SPECIAL))
                    return fail(SPARKC_INVALID_ARGUMENT, "unknown flags");
                  TextPtr text;
                  if (Failure failure = textOf(model, text))
                    return failure;
                  *decoder = new sparkc_decoder(
                      std::move(text), flags & SPARKC_DECODER_SHOW_SPECIAL);
                  return success();
                }),
                error);
}

extern "C" void sparkc_decoder_destroy(sparkc_decoder *decoder) {
  delete decoder;
}

/// Runs `fill` on the decoder's emptied output and hands that out.
template <typename Fill>
static sparkc_status give(sparkc_decoder *decoder, const char **text,
                          size_t *bytes, Fill fill) {
  if (!decoder || !text || !bytes)
    return SPARKC_INVALID_ARGUMENT;
  Failure failure = guarded([&] {
    decoder->out.clear();
    fill();
    *text = decoder->out.c_str();
    *bytes = decoder->out.size();
    return success();
  });
  return failure.status();
}

extern "C" sparkc_status sparkc_decoder_add(sparkc_decoder *decoder,
                                            int32_t token, const char **text,
                                            size_t *bytes) {
  return give(decoder, text, bytes,
              [&] { decoder->decoder.add(token, decoder->out); });
}

extern "C" sparkc_status sparkc_decoder_finish(sparkc_decoder *decoder,
                                               const char **text,
                                               size_t *bytes) {
  return give(decoder, text, bytes,
              [&] { decoder->decoder.finish(decoder->out); });
}

extern "C" sparkc_status
sparkc_sampler_create(const sparkc_sampler_options *options,
                      sparkc_sampler **sampler, sparkc_error *error) {
  return report(guarded([&] {
                  if (!sampler)
                    return fail(SPARKC_INVALID_ARGUMENT, "sampler is NULL");
                  *sampler = nullptr;
                  sparkc_sampler_options given = {};
                  if (options) {
                    if (options->struct_size < sizeof(size_t))
                      return fail(SPARKC_INVALID_ARGUMENT,
                                  "struct_size is not set");
                    std::memcpy(&given, options,
                                std::min(options->struct_size, sizeof given));
                  }
                  SamplerOptions wanted;
                  wanted.temperature = given.temperature;
                  wanted.topP = given.top_p == 0 ? 1.0 : given.top_p;
                  wanted.topK = given.top_k;
                  wanted.seed = given.seed;
                  std::string why;
                  if (!Sampler::check(wanted, why))
                    return fail(SPARKC_INVALID_ARGUMENT, "%s", why.c_str());
                  *sampler = new sparkc_sampler{Sampler(wanted)};
                  return success();
                }),
                error);
}

extern "C" void sparkc_sampler_destroy(sparkc_sampler *sampler) {
  delete sampler;
}

extern "C" sparkc_status sparkc_sample(sparkc_sampler *sampler,
                                       const float *logits, size_t vocab,
                                       int32_t *token) {
  if (!sampler || !logits || !token || vocab == 0 || vocab > INT32_MAX)
    return SPARKC_INVALID_ARGUMENT;
  Failure failure = guarded([&] {
    int32_t chosen = sampler->sampler.sample(logits, vocab);
    if (chosen < 0)
      return fail(SPARKC_INVALID_ARGUMENT, "no logit is a number");
    *token = chosen;
    return success();
  });
  return failure.status();
}
