/*===- main.c - A host in C -----------------------------------------------===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 *     c-host model.so [PROMPT [N]]
 *
 * Goes on from a text by N tokens, the likeliest each time, and prints what is
 * new. A model without a tokenizer takes and prints token ids instead.
 *
 *===----------------------------------------------------------------------===*/
#include <sparkc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what, const char *why) {
  fprintf(stderr, "c-host: error: %s: %s\n", what, why);
  return 1;
}

/* The tokens of a prompt: of its text, or the ids that stand in it. The
   caller frees them. NULL: the reason is in *why. */
static int32_t *prompt_tokens(const sparkc_model *model, int has_text,
                              const char *prompt, size_t *n,
                              sparkc_error *why) {
  size_t room = strlen(prompt) + 8; /* a token has a byte at least */
  int32_t *tokens = malloc(room * sizeof *tokens);
  *n = 0;
  if (!tokens)
    return NULL;
  if (!has_text) {
    char *end;
    for (long id = strtol(prompt, &end, 10); end != prompt && *n < room;
         id = strtol(prompt, &end, 10)) {
      tokens[(*n)++] = (int32_t)id;
      prompt = end;
    }
    return tokens;
  }
  if (sparkc_tokenize(model, prompt, strlen(prompt),
                      SPARKC_TOKENIZE_ADD_SPECIAL, tokens, room, n,
                      why) == SPARKC_OK &&
      *n <= room)
    return tokens;
  free(tokens);
  return NULL;
}

/* Decodes and prints n tokens from the logits on. */
static sparkc_status generate(sparkc_session *session, sparkc_decoder *decoder,
                              const sparkc_model *model, uint32_t vocab, int n,
                              float *logits) {
  const char *text;
  size_t bytes;
  for (int i = 0; i < n; ++i) {
    int32_t token = 0;
    for (uint32_t v = 1; v < vocab; ++v)
      if (logits[v] > logits[token])
        token = (int32_t)v;
    if (decoder) {
      if (sparkc_token_is_eos(model, token))
        break;
      sparkc_status status = sparkc_decoder_add(decoder, token, &text, &bytes);
      if (status != SPARKC_OK)
        return status;
      fwrite(text, 1, bytes, stdout);
    } else {
      printf("%d ", token);
    }
    fflush(stdout);
    sparkc_status status = sparkc_decode(session, token, logits);
    if (status != SPARKC_OK)
      return status;
  }
  if (decoder && sparkc_decoder_finish(decoder, &text, &bytes) == SPARKC_OK)
    fwrite(text, 1, bytes, stdout);
  putchar('\n');
  return SPARKC_OK;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return failed("usage", "c-host model.so [PROMPT [N]]");
  sparkc_error why = {SPARKC_OK, "out of memory"};
  sparkc_model *model;
  if (sparkc_open(argv[1], NULL, NULL, &model, &why) != SPARKC_OK)
    return failed("open", why.message);
  sparkc_model_info info = {.struct_size = sizeof info};
  sparkc_info(model, &info);
  sparkc_session *session;
  if (sparkc_session_create(model, NULL, &session, &why) != SPARKC_OK)
    return failed("session", why.message);
  sparkc_decoder *decoder = NULL;
  if (info.has_tokenizer &&
      sparkc_decoder_create(model, 0, &decoder, &why) != SPARKC_OK)
    return failed("tokenizer", why.message);

  size_t n;
  const char *prompt = argc > 2 ? argv[2] : "Once upon a time";
  int32_t *tokens =
      prompt_tokens(model, (int)info.has_tokenizer, prompt, &n, &why);
  float *logits = malloc(info.vocab * sizeof *logits);
  if (!tokens || !logits)
    return failed("prompt", why.message);
  sparkc_status status = sparkc_prefill(session, tokens, n, 0, logits);
  if (status == SPARKC_OK)
    status = generate(session, decoder, model, info.vocab,
                      argc > 3 ? atoi(argv[3]) : 32, logits);
  if (status != SPARKC_OK)
    failed(sparkc_status_string(status), sparkc_session_message(session));

  free(logits);
  free(tokens);
  sparkc_decoder_destroy(decoder);
  sparkc_session_destroy(session);
  sparkc_close(model);
  return status == SPARKC_OK ? 0 : 1;
}
