/*===- sparkc_abi.h - What a compiled model and its host agree on -*- C -*-===*
 *
 * Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * A compiled model is two files. The shared object exports one symbol, the
 * descriptor (`sparkc_model_descriptor`); the weights file is mapped and never
 * repacked. This header fixes both, in plain C11, for x86-64 little-endian.
 *
 * Hosts that use the runtime (sparkc.h) only need `sparkc_ctx` and
 * `sparkc_entry_fn` from here, and those only if they bring their own threads.
 *
 *===----------------------------------------------------------------------===*/
#ifndef SPARKC_ABI_H
#define SPARKC_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Raised by every incompatible change of anything in this header. */
#define SPARKC_ABI_VERSION 1u
/** First word of a descriptor: "SPKD". */
#define SPARKC_DESCRIPTOR_MAGIC 0x444b5053u
/** The one symbol a compiled model exports. */
#define SPARKC_DESCRIPTOR_SYMBOL "sparkc_model_descriptor"

/*===----------------------------------------------------------------------===*
 * The step's view of a session
 *===----------------------------------------------------------------------===*/

/** Flags of an entry call. */
enum sparkc_ctx_flags {
  /** Compute no logits at all: `logits` is not touched. */
  SPARKC_CTX_NO_LOGITS = 1u << 0,
  /** Prefill only: write a row of logits for every token, not just the last. */
  SPARKC_CTX_ALL_LOGITS = 1u << 1
};

/**
 * The words of the barrier of one session, alone on their cache lines.
 * All zero before the first call. `generation` grows by one at each barrier,
 * so its difference over a call is the number of barriers that ran.
 */
typedef struct sparkc_barrier {
  uint32_t arrived; /**< threads that have arrived at the current barrier */
  uint32_t pad0[15];
  uint32_t generation; /**< barriers completed, modulo 2^32: the futex word */
  uint32_t pad1[15];
  uint32_t sleepers; /**< threads inside ctx->wait */
  uint32_t pad2[15];
  uint32_t claimed; /**< pieces of the phase's end that threads have taken */
  uint32_t pad3[15];
} sparkc_barrier;

/** One timestamp pair of a profile entry, in TSC cycles. */
typedef struct sparkc_profile_event {
  uint32_t phase;   /**< index into the descriptor's phase table */
  uint32_t layer;   /**< layer, or UINT32_MAX outside layers */
  uint64_t begin;   /**< the thread entered the phase */
  uint64_t end;     /**< its work was done: it arrived at the barrier */
  uint64_t resumed; /**< it left the barrier */
} sparkc_profile_event;

/**
 * The host's product of tiles of floats and a block of tokens: row r of tile i,
 * r < 16, times token t goes to float 16 i + r of the row that begins at byte
 * t * out_row of `out`. The tiles lie one behind the other. x is quads of four
 * tokens, each 16 * (cols rounded up to 128) bytes: column k of token t of a
 * quad is its float 4 k + t. Called by each thread of an entry for itself, under
 * the default MXCSR, with other operands; may not fail.
 */
typedef void (*sparkc_gemm_fn)(const uint8_t *tiles,
                               uint32_t layout, /**< TILE16_F32 or _BF16 */
                               uint64_t n_tiles, /**< 1 to 6 */
                               uint64_t cols, const float *x,
                               uint64_t tokens, /**< a multiple of 4 */
                               float *out, uint64_t out_row);

/**
 * What one call of an entry reads and writes. A session owns one; all threads
 * of a call get the same pointer. `weights`, `kv`, `arena` are 64-byte aligned.
 */
typedef struct sparkc_ctx {
  const uint8_t *weights; /**< payload of the weights file */
  uint8_t *kv;            /**< descriptor.kv_bytes(capacity) bytes */
  uint8_t *arena; /**< descriptor.arena_bytes(capacity) bytes, zeroed once */
  const int32_t *tokens; /**< n_tokens ids, each in [0, vocab) */
  uint32_t n_tokens; /**< 1 for a step, 1..prefill_block for a prefill */
  uint32_t flags;    /**< sparkc_ctx_flags */
  uint64_t pos;      /**< position of tokens[0]; pos + n_tokens <= capacity */
  uint64_t capacity; /**< positions of full layers, a multiple of
                          descriptor.capacity_multiple */
  float *logits;     /**< [rows, vocab] float32, or null with NO_LOGITS */
  sparkc_barrier *barrier;
  /** Sleep until *word != seen (spurious returns allowed). Null: spin only. */
  void (*wait)(uint32_t *word, uint32_t seen);
  /** Wake every thread that sleeps on word. Null if and only if wait is. */
  void (*wake)(uint32_t *word);
  /** Profile entries only: n arrays of profile_capacity events, thread-major. */
  sparkc_profile_event *profile;
  uint64_t profile_capacity;
  /** Of entries that ask for it (SPARKC_NEEDS_GEMM); else never looked at. */
  sparkc_gemm_fn gemm;
  /** Looks at a barrier before ctx->wait is called; 0: about 2000. Few where
   * threads outnumber processors. */
  uint64_t spins;
  uint64_t reserved[4];
} sparkc_ctx;

/**
 * An entry: run by n >= 1 threads at once, each with its own tid in [0, n).
 * Returns, on every thread, after all threads have arrived at its last
 * barrier; so the next entry may be called at once. Allocates nothing, makes
 * no syscall, calls nothing but ctx->wait and ctx->wake (and ctx->gemm, if its
 * features say so); saves MXCSR, computes under the default one, restores it.
 * Scratch lies on the thread's stack: 300 KB in a prefill, 50 KB in a step, and
 * a few times the widest activation in floats. 256 KB are not enough.
 */
typedef void (*sparkc_entry_fn)(sparkc_ctx *ctx, uint32_t tid, uint32_t n);

/*===----------------------------------------------------------------------===*
 * The descriptor
 *===----------------------------------------------------------------------===*/

/** A size that depends on a session's context: a + b * capacity bytes. */
typedef struct sparkc_affine {
  uint64_t a;
  uint64_t b;
} sparkc_affine;

/** Instruction sets an entry may need; each includes what its name implies. */
enum sparkc_isa {
  SPARKC_ISA_AVX2 = 1,       /**< x86-64-v3: AVX2, FMA, F16C, BMI2 */
  SPARKC_ISA_AVXVNNI = 2,    /**< v3 + AVX-VNNI */
  SPARKC_ISA_AVX512 = 3,     /**< x86-64-v4: AVX-512 F, BW, CD, DQ, VL */
  SPARKC_ISA_AVX512VNNI = 4, /**< v4 + AVX512-VNNI */
  /** v4 + VNNI + AMX-TILE, AMX-INT8, AMX-BF16. A host that does not open models
      through libsparkc asks Linux for tiles itself, once a process, before it
      calls such an entry: arch_prctl(ARCH_REQ_XCOMP_PERM, 18). Without it a
      prefill ends by SIGILL. */
  SPARKC_ISA_AMX = 5
};

/** What an entry needs beyond what its isa says (bit mask); a host refuses an
 * entry with a bit that it does not know. */
enum sparkc_cpu_feature {
  SPARKC_CPU_AVX512VBMI = 1u << 0,
  SPARKC_CPU_AVX512BF16 = 1u << 1,
  SPARKC_CPU_AVX512FP16 = 1u << 2,
  /** Not of the CPU: prefill calls ctx->gemm (`sparkc --prefill-gemm`). */
  SPARKC_NEEDS_GEMM = 1u << 16
};

/** The one symbol of libsparkc-onednn.so: a sparkc_gemm_fn. The number is that
 * of its signature and of what it is passed. */
#define SPARKC_ONEDNN_SYMBOL "sparkc_onednn_gemm_1"

typedef struct sparkc_entry {
  uint32_t isa;      /**< sparkc_isa */
  uint32_t features; /**< sparkc_cpu_feature */
  sparkc_entry_fn step;
  sparkc_entry_fn prefill; /**< null: call step for each token */
  sparkc_entry_fn step_profile;
  sparkc_entry_fn prefill_profile;
} sparkc_entry;

/** What a phase of the profile is, for reports. */
enum sparkc_phase_kind {
  SPARKC_PHASE_LINEAR = 0,
  SPARKC_PHASE_ATTENTION = 1,
  SPARKC_PHASE_OTHER = 2
};

typedef struct sparkc_phase {
  const char *name;
  uint32_t kind; /**< sparkc_phase_kind */
  uint32_t reserved;
  uint64_t bytes; /**< weight bytes that one execution streams */
} sparkc_phase;

/** Element type of a KV cache; Q8: int8, and an f16 scale for each 16 dims of a
 * key or a value. */
enum sparkc_kv_type { SPARKC_KV_F32 = 0, SPARKC_KV_F16 = 1, SPARKC_KV_Q8 = 2 };

typedef struct sparkc_descriptor {
  uint32_t magic;       /**< SPARKC_DESCRIPTOR_MAGIC */
  uint32_t abi_version; /**< SPARKC_ABI_VERSION */
  uint32_t bytes;       /**< sizeof(sparkc_descriptor) */
  uint32_t entry_bytes; /**< sizeof(sparkc_entry) */
  const char *compiler; /**< "sparkc 0.1.0" */
  const char *target;   /**< CPU it was compiled for, "x86-64-v4" */
  const char *scheme;   /**< weights in words: "bf16", "q4 g64, lm_head q6" */
  uint8_t digest[16];   /**< of the weights payload: must equal the file's */
  uint64_t payload_bytes;
  const uint32_t *layouts; /**< layout ids the code can read */
  uint32_t n_layouts;
  uint32_t kv_type;
  uint32_t vocab;
  uint32_t hidden;
  uint32_t intermediate;
  uint32_t layers;
  uint32_t full_layers;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t window; /**< keys a sliding layer sees, itself included */
  uint32_t ring_positions; /**< positions a sliding layer keeps; 0: no such layer */
  uint64_t max_context;     /**< the model's */
  uint64_t default_context; /**< a session's, unless it says otherwise */
  uint32_t prefill_block;   /**< most tokens of one prefill call, M_max */
  uint32_t capacity_multiple;
  sparkc_affine kv_bytes;
  sparkc_affine arena_bytes;
  uint64_t bytes_per_step;    /**< weight bytes that one step streams */
  uint64_t linear_weights;    /**< weights of the linears, head included */
  uint32_t barriers_per_step; /**< below fold_threshold */
  uint32_t fold_layers; /**< extra barriers of a step at pos >= fold_threshold */
  uint64_t fold_threshold; /**< position; UINT64_MAX: never */
  const sparkc_phase *phases;
  uint32_t n_phases;
  uint32_t n_entries;
  const sparkc_entry *entries; /**< best first */
} sparkc_descriptor;

/*===----------------------------------------------------------------------===*
 * The weights file
 *===----------------------------------------------------------------------===*/

/** First bytes of a weights file. */
#define SPARKC_WEIGHTS_MAGIC "SPKCWGT\n"
#define SPARKC_WEIGHTS_VERSION 1u

/** What a section of a weights file holds. */
enum sparkc_section_kind {
  /** Packed weights, in the order a step reads them; starts on 4096. */
  SPARKC_SECTION_PAYLOAD = 1,
  /** JSON: {"tensors":[{name, layout, rows, cols, offset, bytes, rowmap}..]} */
  SPARKC_SECTION_DIRECTORY = 2,
  SPARKC_SECTION_TOKENIZER = 3,         /**< tokenizer.json, verbatim */
  SPARKC_SECTION_TOKENIZER_CONFIG = 4,  /**< tokenizer_config.json, verbatim */
  SPARKC_SECTION_GENERATION_CONFIG = 5, /**< generation_config.json, verbatim */
  SPARKC_SECTION_CHAT_TEMPLATE = 6,     /**< the template's text */
  SPARKC_SECTION_CERTIFICATE = 7        /**< JSON */
};

typedef struct sparkc_section {
  uint32_t kind; /**< sparkc_section_kind; unknown kinds are skipped */
  uint32_t reserved;
  uint64_t offset; /**< from the start of the file, a multiple of 64 */
  uint64_t bytes;
  /** XXH3-64 (seed 0) of the section; the payload's is 0 (see digest). */
  uint64_t hash;
} sparkc_section;

#define SPARKC_WEIGHTS_MAX_SECTIONS 16
#define SPARKC_WEIGHTS_MAX_LAYOUTS 32

/** At offset 0. Little-endian. */
typedef struct sparkc_weights_header {
  char magic[8];
  uint32_t version;      /**< SPARKC_WEIGHTS_VERSION */
  uint32_t header_bytes; /**< sizeof(sparkc_weights_header) */
  uint64_t file_bytes;   /**< size of the whole file */
  uint8_t digest[16];    /**< XXH3-128 (seed 0, canonical) of the payload */
  uint32_t n_sections;
  uint32_t n_layouts;
  uint32_t layouts[SPARKC_WEIGHTS_MAX_LAYOUTS]; /**< layout ids in the file */
  sparkc_section sections[SPARKC_WEIGHTS_MAX_SECTIONS];
  /** XXH3-64 of the header's bytes before this field. */
  uint64_t hash;
} sparkc_weights_header;

/**
 * How bytes of the payload are to be read. Bits that change meaning get a new
 * id. Tiles are 16 rows; see codegen/weights/PackedLayout.h for the equation.
 */
enum sparkc_layout {
  SPARKC_LAYOUT_VECTOR_F32 = 1, /**< plain float32, zero-padded to 64 bytes */
  SPARKC_LAYOUT_ROWS_F32 = 2,   /**< row-major rows, each padded to 64 bytes */
  SPARKC_LAYOUT_ROWS_BF16 = 3,
  SPARKC_LAYOUT_TILE16_F32 = 16,  /**< line = 16 rows x 1 column */
  SPARKC_LAYOUT_TILE16_BF16 = 17, /**< line = 16 rows x 2 columns */
  SPARKC_LAYOUT_TILE16_Q8 = 18,   /**< line = 16 rows x 4 columns */
  SPARKC_LAYOUT_TILE16_Q4 = 19,   /**< line = 16 rows x 8 columns */
  SPARKC_LAYOUT_TILE16_Q5 = 20,
  SPARKC_LAYOUT_TILE16_Q6 = 21,
  SPARKC_LAYOUT_TILE16_Q4M = 22, /**< with a float minimum a group */
  SPARKC_LAYOUT_TILE16_Q5M = 23,
  SPARKC_LAYOUT_TILE16_Q4K = 24, /**< scales and minima of two levels */
  SPARKC_LAYOUT_TILE16_Q5K = 25,
  SPARKC_LAYOUT_TILE16_Q6K = 26, /**< scales of two levels */
  SPARKC_LAYOUT_TILE16_Q4S = 27, /**< zero points are all the middle code */
  SPARKC_LAYOUT_TILE16_Q5S = 28,
  SPARKC_LAYOUT_TILE16_Q6S = 29,
  SPARKC_LAYOUT_TILE16_Q8S = 30
};

#ifdef __cplusplus
}
#endif

#endif /* SPARKC_ABI_H */
