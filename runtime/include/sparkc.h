/*===- sparkc.h - Running compiled models -------------------------*- C -*-===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * sparkc makes two files of a checkpoint: `model.so`, whose step function
 * computes the next token's logits, and `model.weights`, which is mapped and
 * never copied. This header opens such a pair and runs it. Plain C11; link
 * `libsparkc` (CMake: `find_package(sparkc)`, `sparkc::sparkc`).
 *
 *     #include <sparkc.h>
 *     #include <stdio.h>
 *     #include <stdlib.h>
 *
 *     int main(void) {
 *       const int32_t prompt[] = {0, 310, 42};
 *       sparkc_error why;
 *       sparkc_model *model;
 *       if (sparkc_open("model.so", NULL, NULL, &model, &why) != SPARKC_OK)
 *         return fprintf(stderr, "%s\n", why.message), 1;
 *       sparkc_model_info info = {.struct_size = sizeof info};
 *       sparkc_info(model, &info);
 *       float *logits = malloc(info.vocab * sizeof *logits);
 *       sparkc_session *session;
 *       if (sparkc_session_create(model, NULL, &session, &why) != SPARKC_OK)
 *         return fprintf(stderr, "%s\n", why.message), 1;
 *       sparkc_status s = sparkc_prefill(session, prompt, 3, 0, logits);
 *       for (int i = 0; s == SPARKC_OK && i < 32; ++i) {
 *         int32_t token = 0; // the likeliest
 *         for (uint32_t v = 1; v < info.vocab; ++v)
 *           if (logits[v] > logits[token]) token = (int32_t)v;
 *         printf("%d\n", token);
 *         s = sparkc_decode(session, token, logits);
 *       }
 *       sparkc_session_destroy(session);
 *       sparkc_close(model);
 *     }
 *
 * Conventions
 *
 *  - Every call that can fail returns a sparkc_status; nothing is thrown, no
 *    process-wide state is kept, nothing is printed. A call that fails leaves
 *    its session as it was (a cancelled one: see sparkc_session_set_progress).
 *  - `sparkc_error *` parameters may be NULL. They are written on failure, and
 *    set to SPARKC_OK and "" on success.
 *  - Option structs begin with `struct_size = sizeof(the struct)`; all other
 *    fields zero mean the defaults. NULL means all defaults.
 *  - A token is an int32_t in [0, vocab). Logits are rows of `vocab` float32,
 *    natural units (no softmax, no scaling), in the caller's memory.
 *  - Sizes are in bytes, positions and contexts in tokens.
 *
 * Threads
 *
 *  - A model never changes after it was opened: any number of threads may use
 *    it, and any number of sessions share it. Its memory goes when it was
 *    closed and its last session destroyed, in whichever order.
 *  - A session is one sequence. One thread at a time may use it; different
 *    sessions may run at the same time on different threads.
 *  - The default driver runs each step as one OpenMP parallel region. Workers
 *    of GNU's libgomp poll for 5 to 15 ms after the last step before they
 *    sleep; OMP_WAIT_POLICY=passive in the environment ends that. Where OpenMP
 *    gives fewer threads than asked for, the step runs on those. A host with
 *    threads of its own uses sparkc_spmd_begin and needs no OpenMP thread.
 *  - The logits do not depend on the number of threads: they have the same
 *    bits on 1 and on 7, by prefill and by decode.
 *  - An entry that uses AMX configures tiles on each thread that multiplies
 *    with them and releases them before it returns: a host must not keep live
 *    tiles across a call. (Those of a thread without work stay as they were.)
 *
 *===----------------------------------------------------------------------===*/
#ifndef SPARKC_H
#define SPARKC_H

#include "sparkc_abi.h"

#include <stddef.h>
#include <stdint.h>

#ifndef SPARKC_API
#define SPARKC_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------===*
 * Status and errors
 *===----------------------------------------------------------------------===*/

typedef enum sparkc_status {
  SPARKC_OK = 0,
  SPARKC_INVALID_ARGUMENT = 1,   /**< a null, a bad size, a wrong order */
  SPARKC_IO = 2,                 /**< the system refused to read or write */
  SPARKC_FORMAT = 3,             /**< not a file of ours, or a broken one */
  SPARKC_MISMATCH = 4,           /**< two good files that are not a pair */
  SPARKC_NEWER_VERSION = 5,      /**< made by a newer sparkc than this one */
  SPARKC_UNSUPPORTED_CPU = 6,    /**< the machine lacks what the code needs */
  SPARKC_OUT_OF_MEMORY = 7,      /**< the system has no memory for this */
  SPARKC_TOKEN_OUT_OF_RANGE = 8, /**< a token id outside [0, vocab) */
  SPARKC_CONTEXT_FULL = 9,  /**< more tokens than the context has room for */
  SPARKC_EMPTY_PROMPT = 10, /**< no tokens were given */
  SPARKC_NO_TOKENIZER = 11, /**< the model was compiled without one */
  SPARKC_CANCELLED = 12,    /**< the host's progress callback said so */
  SPARKC_CORRUPT = 13,      /**< contents do not have their checksum */
  SPARKC_INTERNAL = 14,     /**< a fault in sparkc itself */
  SPARKC_NO_CHAT_TEMPLATE = 15, /**< the model has none, or an unknown one */
  /** No status: gives the type room for those of later versions. */
  SPARKC_STATUS_LAST = 0x7fffffff
} sparkc_status;

/** What a status means, in English; never NULL, never freed. */
SPARKC_API const char *sparkc_status_string(sparkc_status status);

/** Why a call failed: one line, without a newline, cut to fit. */
typedef struct sparkc_error {
  sparkc_status status;
  char message[504];
} sparkc_error;

/** Version of this library, "0.1.0". */
SPARKC_API const char *sparkc_version(void);

/*===----------------------------------------------------------------------===*
 * Models
 *===----------------------------------------------------------------------===*/

/** A compiled model: code and mapped weights. Immutable. */
typedef struct sparkc_model sparkc_model;

enum sparkc_open_flags {
  /** Read all of the weights file and compare its checksums (seconds). */
  SPARKC_OPEN_VERIFY = 1u << 0,
  /** Read no weights file: fill memory of its size with fixed small numbers, to
   *  time the code alone. `weights` must be NULL; there is no tokenizer. Takes
   *  as much memory as the weights, in huge pages where the system has them. */
  SPARKC_OPEN_SYNTHETIC = 1u << 1
};

typedef struct sparkc_open_options {
  size_t struct_size;
  uint32_t flags; /**< sparkc_open_flags */
  uint32_t reserved;
} sparkc_open_options;

/**
 * Opens the compiled model `so` over the file `weights` (NULL: beside it,
 * `model.so` -> `model.weights`). Takes a few milliseconds and reads no
 * weights. The pair is refused, with the reason, unless the file is whole, of
 * a known version, and the very one that the object was compiled with.
 *
 * The entry for the best instruction set of this machine is chosen here, once.
 * SPARKC_ISA=amx|avx512vnni|avx512|avxvnni|avx2 in the environment forces one
 * (SPARKC_UNSUPPORTED_CPU if the object or the machine has it not).
 *
 * A model compiled with --prefill-gemm=onednn also loads libsparkc-onednn.so,
 * from beside this library or where the system looks (SPARKC_IO without it).
 *
 * Loading a shared object runs code: open only those whose origin you trust.
 */
SPARKC_API sparkc_status sparkc_open(const char *so, const char *weights,
                                     const sparkc_open_options *options,
                                     sparkc_model **model, sparkc_error *error);

/** Closes a model (NULL: nothing). Its sessions stay usable. */
SPARKC_API void sparkc_close(sparkc_model *model);

/** What is known of a model. Strings live as long as the model does. */
typedef struct sparkc_model_info {
  size_t struct_size;       /**< set by the caller */
  const char *compiler;     /**< "sparkc 0.1.0" */
  const char *target;       /**< CPU it was compiled for */
  const char *scheme;       /**< weights in words: "bf16", "q4 g64, ..." */
  const char *isa;          /**< entry in use: "avx512vnni" */
  const char *isa_reason;   /**< why that one */
  const char *object_path;  /**< the shared object */
  const char *weights_path; /**< the mapped file; "" if synthetic */
  char digest[40];          /**< of the weights: 32 hex digits */
  uint32_t vocab;           /**< floats in a row of logits */
  uint32_t hidden;
  uint32_t intermediate;
  uint32_t layers;
  uint32_t full_layers; /**< of them with full attention */
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t window;         /**< keys a sliding layer sees, itself included */
  uint32_t ring_positions; /**< positions a sliding layer keeps */
  uint32_t kv_type;        /**< sparkc_kv_type */
  /** Most tokens of one SPMD job; 1 where the object has no prefill entry. */
  uint32_t prefill_block;
  uint32_t barriers_per_step; /**< at positions below fold_threshold */
  uint32_t fold_layers;       /**< barriers more from there on */
  uint64_t fold_threshold;
  uint64_t max_context;      /**< tokens: the model's limit */
  uint64_t default_context;  /**< tokens: a session's, unless it says so */
  uint64_t payload_bytes;    /**< mapped weights */
  uint64_t bytes_per_step;   /**< weight bytes that one step streams */
  uint64_t linear_weights;   /**< weights of the linears, head included */
  double bits_per_weight;    /**< bytes_per_step * 8 / linear_weights */
  uint64_t default_kv_bytes; /**< of a session with default_context */
  uint64_t default_arena_bytes;
  uint32_t has_tokenizer; /**< 1 if a tokenizer travels with the model */
  uint32_t has_prefill;   /**< 1 if the object has a prefill entry */
  /** sparkc_session_set_profile works for sparkc_decode ... */
  uint32_t has_step_profile;
  uint32_t has_prefill_profile; /**< ... and for sparkc_prefill */
  /** What `sparkc --certify` measured, a JSON object; "" if it did not. */
  const char *certificate;
} sparkc_model_info;

/** Fills the first info->struct_size bytes of *info. */
SPARKC_API sparkc_status sparkc_info(const sparkc_model *model,
                                     sparkc_model_info *info);

/**
 * The phases that profile events name by index: *n of them, living as long as
 * the model; NULL and 0 where the object has no profile entries.
 */
SPARKC_API const sparkc_phase *sparkc_phases(const sparkc_model *model,
                                             uint32_t *n);

/*===----------------------------------------------------------------------===*
 * Sessions
 *===----------------------------------------------------------------------===*/

/** One sequence: its KV cache, its scratch memory, its tokens. */
typedef struct sparkc_session sparkc_session;

/** What a thread does at a barrier once it has polled for a while. */
typedef enum sparkc_wait {
  /** YIELD with more threads than processors, else FUTEX. */
  SPARKC_WAIT_AUTO = 0,
  SPARKC_WAIT_FUTEX = 1, /**< sleep in the kernel */
  SPARKC_WAIT_YIELD = 2, /**< poll, offering the processor each time */
  SPARKC_WAIT_SPIN = 3   /**< poll; a processor for each thread, or be slow */
} sparkc_wait;

typedef struct sparkc_session_options {
  size_t struct_size;
  uint64_t context; /**< most tokens it can hold; 0: the compiled default */
  uint32_t threads; /**< of the OpenMP driver; 0: sparkc_default_threads() */
  uint32_t wait;    /**< sparkc_wait */
  /** Tokens between two progress callbacks; 0 or more than the compiled
   *  prefill block: that block. The logits are the same bits for any value. */
  uint32_t prefill_chunk;
  uint32_t reserved;
} sparkc_session_options;

/**
 * Makes a session. Its KV cache and scratch memory are reserved here, zeroed,
 * and become resident as they are first written.
 */
SPARKC_API sparkc_status sparkc_session_create(
    const sparkc_model *model, const sparkc_session_options *options,
    sparkc_session **session, sparkc_error *error);

/** Destroys a session (NULL: nothing). */
SPARKC_API void sparkc_session_destroy(sparkc_session *session);

enum sparkc_prefill_flags {
  /** `logits` gets n rows, one for each token, rather than the last one's. */
  SPARKC_PREFILL_ALL_LOGITS = 1u << 0,
  /** sparkc_spmd_begin only: take the entry that writes ctx->profile. */
  SPARKC_SPMD_PROFILE = 1u << 8
};

/**
 * Appends n >= 1 tokens to the sequence. `logits` gets the last token's row,
 * or all n rows [n, vocab] with SPARKC_PREFILL_ALL_LOGITS; NULL: none are
 * computed. May be called at any position, between decodes, after a rewind.
 */
SPARKC_API sparkc_status sparkc_prefill(sparkc_session *session,
                                        const int32_t *tokens, size_t n,
                                        uint32_t flags, float *logits);

/** Appends one token; `logits` [vocab] are those of the next (NULL: none). */
SPARKC_API sparkc_status sparkc_decode(sparkc_session *session, int32_t token,
                                       float *logits);

/**
 * Makes the sequence exactly these n >= 1 tokens, whatever it was before;
 * `logits` are those after the last (NULL: none). What the session holds of
 * them stays: only what follows the common prefix is computed, or all of it
 * once the sliding layers' rings have lost what that needs (the last token at
 * least, if logits are asked for). Either way the bits are those of a fresh
 * session. `kept` (NULL: not told) gets the number of tokens that were not
 * computed again. So a host can hand over each state of a conversation as a
 * whole and pay for what is new. A cancelled call may be repeated: it goes on
 * where it was. The tokens may be those of sparkc_session_tokens.
 */
SPARKC_API sparkc_status sparkc_prompt(sparkc_session *session,
                                       const int32_t *tokens, size_t n,
                                       float *logits, size_t *kept);

/** Empties the sequence. */
SPARKC_API sparkc_status sparkc_reset(sparkc_session *session);

/**
 * Keeps the first n_tokens of the sequence and forgets the others. Costs
 * nothing while the sliding layers' rings still hold what the next token
 * needs; beyond that the kept tokens are computed again (with progress
 * callbacks). Either way what follows has the bits of a fresh session.
 */
SPARKC_API sparkc_status sparkc_rewind(sparkc_session *session,
                                       size_t n_tokens);

/** Tokens in the sequence: the position of the next one. */
SPARKC_API size_t sparkc_session_position(const sparkc_session *session);

/** Most tokens it can hold. */
SPARKC_API size_t sparkc_session_context(const sparkc_session *session);

/** The tokens themselves: `position` ids, valid until the next call. */
SPARKC_API const int32_t *sparkc_session_tokens(const sparkc_session *session);

/** Why the latest failed call on this session failed: one line; never NULL. */
SPARKC_API const char *sparkc_session_message(const sparkc_session *session);

/** Threads of the OpenMP driver from the next call on; 0: the default. */
SPARKC_API sparkc_status sparkc_session_set_threads(sparkc_session *session,
                                                    uint32_t threads);

/**
 * Takes the profile entries from the next call on (NULL: the plain ones again).
 * They compute the same bits and write when each thread entered and left each
 * phase: `events` has room for threads * capacity of them, thread-major. Before
 * each entry (a decode, a block of a prefill) the room is zeroed, so that after
 * it the events of thread t are those from events[t * capacity] on up to the
 * first whose `end` is 0. Entries write no more than `capacity` to a thread; a
 * step has an event for each of its barriers. The memory must stay until the
 * profile is set anew. `threads` are those the room is for: more of them in a
 * call are refused. Fails where the model has no profile entry of its step.
 */
SPARKC_API sparkc_status sparkc_session_set_profile(
    sparkc_session *session, sparkc_profile_event *events, size_t capacity,
    uint32_t threads);

/** Barriers completed by this session, modulo 2^32. */
SPARKC_API uint32_t sparkc_session_barriers(const sparkc_session *session);

/**
 * Called on the caller's thread after each block of a prefill (or of a rewind
 * that computes again): `done` of `total` tokens. Nonzero cancels what is
 * left: the call returns SPARKC_CANCELLED and the session holds the tokens
 * done so far. Must not use the session.
 */
typedef int (*sparkc_progress_fn)(void *user, size_t done, size_t total);

/** Sets the callback; NULL removes it. */
SPARKC_API void sparkc_session_set_progress(sparkc_session *session,
                                            sparkc_progress_fn fn, void *user);

/**
 * Writes tokens and KV cache to a file, complete or not at all (a temporary
 * name beside it, then renamed). Unused parts of the cache take no space where
 * the file system knows sparse files.
 */
SPARKC_API sparkc_status sparkc_session_save(const sparkc_session *session,
                                             const char *path,
                                             sparkc_error *error);

/**
 * Replaces the session by a saved one. The file must come from the same model
 * (digest, KV type and layout) and a session whose context rounds up to the
 * same capacity; its checksum is compared first. Needs memory for a second KV
 * cache while it runs.
 */
SPARKC_API sparkc_status sparkc_session_restore(sparkc_session *session,
                                                const char *path,
                                                sparkc_error *error);

/*===----------------------------------------------------------------------===*
 * Hosts with threads of their own
 *===----------------------------------------------------------------------===*/

/** One call of the compiled model, ready to run. */
typedef struct sparkc_spmd {
  sparkc_ctx *ctx;
  sparkc_entry_fn entry;
  uint32_t n_threads;
  uint32_t reserved;
} sparkc_spmd;

/**
 * Prepares a call over 1 <= n <= info.prefill_block tokens (copied) for
 * n_threads of the host's threads. Each of them, at the same time, calls
 *
 *     job.entry(job.ctx, tid, job.n_threads)    // tid = 0 .. n_threads - 1
 *
 * and when all have returned, one calls sparkc_spmd_end. `flags` and `logits`
 * are those of sparkc_prefill. Until the end no other call may use the
 * session. The starting thread's writes must be visible to the others, as any
 * hand-over between threads (queue, condition variable) makes them.
 *
 * With SPARKC_SPMD_PROFILE the host sets job.ctx->profile and
 * profile_capacity before the entry is called.
 */
SPARKC_API sparkc_status sparkc_spmd_begin(sparkc_session *session,
                                           const int32_t *tokens, size_t n,
                                           uint32_t flags, float *logits,
                                           uint32_t n_threads,
                                           sparkc_spmd *job);

/**
 * Ends a call: the position moves past its tokens. If the entry was never
 * run, returns SPARKC_INVALID_ARGUMENT and the session is as before the begin:
 * so a host drops a job that it does not want to run.
 */
SPARKC_API sparkc_status sparkc_spmd_end(sparkc_session *session,
                                         sparkc_spmd *job);

/** The waits of the default drivers, of the types of sparkc_ctx. */
SPARKC_API void sparkc_futex_wait(uint32_t *word, uint32_t seen);
SPARKC_API void sparkc_futex_wake(uint32_t *word);
SPARKC_API void sparkc_yield_wait(uint32_t *word, uint32_t seen);
SPARKC_API void sparkc_yield_wake(uint32_t *word);

/**
 * Processors this process may really use, at least 1: its affinity mask, cut
 * to the CPU quota (rounded up) of its cgroups, version 1 or 2.
 */
SPARKC_API uint32_t sparkc_default_threads(void);

/*===----------------------------------------------------------------------===*
 * Text: tokenizer, streaming decoder, sampler
 *===----------------------------------------------------------------------===*/

/*
 * The tokenizer travels in the weights file. The first call that needs it
 * builds it (some tens of milliseconds); the model keeps it. All of these may
 * be called from any thread; decoders and samplers belong to one at a time.
 * Without a tokenizer they return SPARKC_NO_TOKENIZER, with one that is
 * malformed, or asks for what is not implemented, SPARKC_FORMAT.
 */

/** What is known of a model's text side. */
typedef struct sparkc_text_info {
  size_t struct_size; /**< set by the caller */
  uint32_t n_tokens;  /**< one more than the largest id with a text */
  int32_t bos;        /**< starts a sequence, or -1 */
  int32_t eos[8];     /**< each ends one; the first is the usual one */
  uint32_t n_eos;     /**< may be 0 */
  uint32_t adds_bos;  /**< 1 if SPARKC_TOKENIZE_ADD_SPECIAL adds the BOS */
  /** What the model's authors advise for sampling; 1.0, 0.95 and 0 where the
   *  model does not say. A temperature of 0 advises the likeliest token. */
  double temperature;
  double top_p;
  uint32_t top_k; /**< 0: no limit */
  uint32_t reserved;
  const char *chat_template; /**< Jinja text, or NULL; lives as the model */
} sparkc_text_info;

/** Fills the first info->struct_size bytes of *info. */
SPARKC_API sparkc_status sparkc_text_info_get(const sparkc_model *model,
                                              sparkc_text_info *info,
                                              sparkc_error *error);

enum sparkc_tokenize_flags {
  /** Put around the text what the model's config asks for: BOS, EOS, nothing.
   *  A BOS that the text begins with is not doubled. */
  SPARKC_TOKENIZE_ADD_SPECIAL = 1u << 0,
  /** Special tokens written in the text become those tokens; else they are
   *  text like any other (what a user typed should not be markup). */
  SPARKC_TOKENIZE_PARSE_SPECIAL = 1u << 1
};

/**
 * Writes the tokens of `text` (`bytes` bytes, at most 1 GiB, any content: each
 * byte that is not UTF-8 counts as a U+FFFD) to `tokens`, at most `capacity`
 * of them, and to *n_tokens how many there are: if that is more than
 * `capacity`, call again with room for them. `tokens` may be NULL if
 * `capacity` is 0.
 */
SPARKC_API sparkc_status sparkc_tokenize(const sparkc_model *model,
                                         const char *text, size_t bytes,
                                         uint32_t flags, int32_t *tokens,
                                         size_t capacity, size_t *n_tokens,
                                         sparkc_error *error);

/**
 * The bytes that a token stands for, *bytes of them: not a C string, and not
 * always whole characters. Of a special token its name. NULL if there is no
 * such token (or no tokenizer). Valid as long as the model.
 */
SPARKC_API const char *sparkc_token_text(const sparkc_model *model,
                                         int32_t token, size_t *bytes);

/** 1 if `token` ends a sequence, else 0. */
SPARKC_API int sparkc_token_is_eos(const sparkc_model *model, int32_t token);

/** Turns tokens into text as they come. */
typedef struct sparkc_decoder sparkc_decoder;

enum sparkc_decoder_flags {
  /** Special tokens give their names; else nothing. */
  SPARKC_DECODER_SHOW_SPECIAL = 1u << 0
};

SPARKC_API sparkc_status sparkc_decoder_create(const sparkc_model *model,
                                               uint32_t flags,
                                               sparkc_decoder **decoder,
                                               sparkc_error *error);

/** Destroys a decoder (NULL: nothing). */
SPARKC_API void sparkc_decoder_destroy(sparkc_decoder *decoder);

/**
 * Takes the next token and gives the text that is complete with it: *bytes
 * bytes at *text (then a 0), well-formed UTF-8, often none. Bytes that may
 * still become a character are held back; bytes that cannot are replaced by
 * U+FFFD. Valid until the next call on this decoder, even after the model was
 * closed.
 */
SPARKC_API sparkc_status sparkc_decoder_add(sparkc_decoder *decoder,
                                            int32_t token, const char **text,
                                            size_t *bytes);

/** Gives what is held back, replaced; the decoder can be used again. */
SPARKC_API sparkc_status sparkc_decoder_finish(sparkc_decoder *decoder,
                                               const char **text,
                                               size_t *bytes);

/** Chooses tokens from logits. Needs no model. */
typedef struct sparkc_sampler sparkc_sampler;

typedef struct sparkc_sampler_options {
  size_t struct_size;
  double temperature; /**< logits are divided by it; 0: the likeliest token */
  double top_p;   /**< keep the likeliest that reach this sum; 0 or 1: all */
  uint32_t top_k; /**< keep the k likeliest; 0: all */
  uint32_t reserved;
  uint64_t seed; /**< same seed, same logits: same tokens, on any machine */
} sparkc_sampler_options;

SPARKC_API sparkc_status
sparkc_sampler_create(const sparkc_sampler_options *options,
                      sparkc_sampler **sampler, sparkc_error *error);

/** Destroys a sampler (NULL: nothing). */
SPARKC_API void sparkc_sampler_destroy(sparkc_sampler *sampler);

/**
 * Chooses one of `vocab` tokens: temperature, then top-k, then top-p. Equal
 * logits: the lower id first. NaN counts as minus infinity; if no logit is
 * above that, returns SPARKC_INVALID_ARGUMENT.
 */
SPARKC_API sparkc_status sparkc_sample(sparkc_sampler *sampler,
                                       const float *logits, size_t vocab,
                                       int32_t *token);

/*===----------------------------------------------------------------------===*
 * Chat
 *===----------------------------------------------------------------------===*/

/*
 * A chat is a sequence of tokens like any other; these calls write the markup
 * between its turns, as the model's own chat template would, to the byte. The
 * template is a program (Jinja); it is not run but recognised, and a model with
 * one that is not known here is refused rather than talked to in another
 * model's markup.
 *
 *     // the conversation so far, as tokens: what was rendered and sampled
 *     sparkc_message turn = {.role = SPARKC_ROLE_USER, .content = "Hello!"};
 *     sparkc_chat_options how = {.struct_size = sizeof how};
 *     sparkc_chat_tokenize(model, &turn, 1, &how, tokens, room, &n, &why);
 *     sparkc_prompt(session, tokens, n, logits, NULL);
 *     // sample and sparkc_decode until sparkc_token_is_eos; keep the tokens
 *     how.flags = SPARKC_CHAT_CONTINUE; // the next turns: append
 *     sparkc_chat_tokenize(model, &next, 1, &how, tokens + n, ...);
 *
 * An answer begins with its reasoning, up to the token "</think>", if it was
 * asked to think. Keeping the sampled tokens, rather than rendering the whole
 * conversation anew, is what lets sparkc_prompt compute new turns only: text
 * that is tokenized again need not give the tokens that were sampled.
 */

typedef enum sparkc_role {
  SPARKC_ROLE_SYSTEM = 0,
  SPARKC_ROLE_USER = 1,
  SPARKC_ROLE_ASSISTANT = 2,
  SPARKC_ROLE_TOOL = 3 /**< the result of a tool call; some in a row: a turn */
} sparkc_role;

typedef struct sparkc_tool_call {
  const char *name;
  const char *arguments; /**< a JSON object; NULL: {} */
} sparkc_tool_call;

/** One message. Strings are UTF-8, NULL is the empty one. What looks like
 *  markup in them stays text. */
typedef struct sparkc_message {
  uint32_t role;                 /**< sparkc_role */
  uint32_t n_calls;              /**< of an assistant */
  const char *content;           /**< what was said, or what a tool gave */
  const char *reasoning;         /**< of an assistant */
  const sparkc_tool_call *calls; /**< of an assistant */
} sparkc_message;

enum sparkc_chat_flags {
  /** The messages follow an answer: end its turn, and write no first block. */
  SPARKC_CHAT_CONTINUE = 1u << 0,
  /** End after the last message, not where an answer is to begin. */
  SPARKC_CHAT_NO_ANSWER = 1u << 1
};

typedef enum sparkc_thinking {
  SPARKC_THINKING_DEFAULT = 0, /**< the template's */
  SPARKC_THINKING_ON = 1,
  SPARKC_THINKING_OFF = 2
} sparkc_thinking;

typedef struct sparkc_chat_options {
  size_t struct_size;
  uint32_t flags;           /**< sparkc_chat_flags */
  uint32_t thinking;        /**< sparkc_thinking, of the answer to come */
  const char *const *tools; /**< n_tools JSON objects: name, description, ... */
  size_t n_tools;
  /** A template by its name, whatever the model says: "spark" is that of the
   *  published models, "spark-tiny" that of the example. NULL: the model's. */
  const char *template_name;
} sparkc_chat_options;

/**
 * Writes the tokens of n_messages messages, as sparkc_tokenize does those of a
 * text. They begin with the BOS that belongs to the first turn: no other one is
 * to be added. A first message of the system joins the block that every
 * conversation begins with. SPARKC_NO_CHAT_TEMPLATE if the model has no
 * template or one that is not known; SPARKC_FORMAT if its tokenizer lacks the
 * template's tokens; SPARKC_INVALID_ARGUMENT for what the template cannot say.
 */
SPARKC_API sparkc_status sparkc_chat_tokenize(
    const sparkc_model *model, const sparkc_message *messages,
    size_t n_messages, const sparkc_chat_options *options, int32_t *tokens,
    size_t capacity, size_t *n_tokens, sparkc_error *error);

#ifdef __cplusplus
}
#endif

#endif /* SPARKC_H */
