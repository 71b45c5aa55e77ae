/*===- HeaderTest.c - The public headers, seen by a C11 compiler ----------===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 * Compiled with -std=c11 -pedantic -Wall -Wextra -Werror.
 *===----------------------------------------------------------------------===*/
#include "runtime/include/sparkc.h"

/* What compiled models and hosts rely on, in numbers: a change of any of these
   is a new SPARKC_ABI_VERSION. */
_Static_assert(SPARKC_ABI_VERSION == 1, "then look at the numbers below");
_Static_assert(sizeof(sparkc_barrier) == 256, "four cache lines");
_Static_assert(offsetof(sparkc_barrier, generation) == 64, "futex word");
_Static_assert(offsetof(sparkc_barrier, sleepers) == 128, "sleepers");
_Static_assert(offsetof(sparkc_barrier, claimed) == 192, "claimed");
_Static_assert(offsetof(sparkc_ctx, tokens) == 24, "ctx");
_Static_assert(offsetof(sparkc_ctx, pos) == 40, "ctx");
_Static_assert(offsetof(sparkc_ctx, logits) == 56, "ctx");
_Static_assert(offsetof(sparkc_ctx, wait) == 72, "ctx");
_Static_assert(sizeof(sparkc_ctx) == 152, "ctx");
_Static_assert(sizeof(sparkc_entry) == 40, "entry");
_Static_assert(sizeof(sparkc_weights_header) ==
                   48 + 4 * SPARKC_WEIGHTS_MAX_LAYOUTS +
                       32 * SPARKC_WEIGHTS_MAX_SECTIONS + 8,
               "no padding in the file");
_Static_assert(sizeof(sparkc_error) == 508, "status and message");
_Static_assert(SPARKC_OK == 0, "zero is success");

sparkc_status sparkc_c_host(const char *so, char reason[504]);

/* A host in C: every type and call of the basic path. */
sparkc_status sparkc_c_host(const char *so, char reason[504]) {
  sparkc_error why = {SPARKC_OK, ""};
  sparkc_model *model = NULL;
  sparkc_session *session = NULL;
  sparkc_open_options open = {.struct_size = sizeof open};
  sparkc_session_options make = {.struct_size = sizeof make, .threads = 2};
  sparkc_model_info info = {.struct_size = sizeof info};
  float logits[256];
  int32_t prompt[] = {1, 2, 3};
  sparkc_status status = sparkc_open(so, NULL, &open, &model, &why);
  if (status == SPARKC_OK)
    status = sparkc_info(model, &info);
  if (status == SPARKC_OK && info.vocab > 256)
    status = SPARKC_INTERNAL;
  if (status == SPARKC_OK)
    status = sparkc_session_create(model, &make, &session, &why);
  if (status == SPARKC_OK)
    status = sparkc_prefill(session, prompt, 3, 0, logits);
  if (status == SPARKC_OK)
    status = sparkc_decode(session, 4, logits);
  if (status == SPARKC_OK && sparkc_session_position(session) != 4)
    status = SPARKC_INTERNAL;
  if (status == SPARKC_OK)
    status = sparkc_prompt(session, prompt, 2, logits, NULL);
  if (status == SPARKC_OK) { /* the toy has no tokenizer that is understood */
    sparkc_message said = {.role = SPARKC_ROLE_USER, .content = "Hello!"};
    sparkc_chat_options how = {.struct_size = sizeof how,
                               .thinking = SPARKC_THINKING_OFF};
    size_t n = 0;
    if (sparkc_chat_tokenize(model, &said, 1, &how, NULL, 0, &n, &why) ==
        SPARKC_OK)
      status = SPARKC_INTERNAL;
  }
  for (size_t i = 0; i < sizeof why.message; ++i)
    reason[i] = why.message[i];
  sparkc_session_destroy(session);
  sparkc_close(model);
  return status;
}
