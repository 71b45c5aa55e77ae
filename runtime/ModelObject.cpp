//===- ModelObject.cpp - Loading a shared object, choosing its entry ------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Cpu.h"
#include "runtime/ElfCheck.h"
#include "runtime/Model.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>

using namespace sparkc;

ModelObject::~ModelObject() {
  if (handle)
    dlclose(handle);
}

bool sparkc::affineBytes(sparkc_affine size, uint64_t capacity,
                         uint64_t &bytes) {
  return !__builtin_mul_overflow(size.b, capacity, &bytes) &&
         !__builtin_add_overflow(bytes, size.a, &bytes) &&
         bytes <= uint64_t(INT64_MAX) / 2;
}

/// What is wrong with a descriptor of the right version; null if nothing.
static const char *descriptorFault(const sparkc_descriptor &d) {
  if (!d.compiler || !d.target || !d.scheme)
    return "a missing string";
  if (!d.layouts || !d.n_layouts || d.n_layouts > SPARKC_WEIGHTS_MAX_LAYOUTS)
    return "no list of layouts";
  if (!d.entries || !d.n_entries || d.n_entries > 64)
    return "no entries";
  for (uint32_t i = 0; i < d.n_entries; ++i)
    if (!d.entries[i].step)
      return "an entry without a step";
  if (!d.payload_bytes)
    return "no weights";
  if (!d.vocab || d.vocab > uint32_t(INT32_MAX))
    return "an empty vocabulary";
  if (!d.hidden || !d.layers || !d.heads || !d.kv_heads || !d.head_dim)
    return "an empty model";
  if (d.full_layers > d.layers)
    return "more full layers than layers";
  if (d.full_layers < d.layers && (!d.window || d.ring_positions < d.window))
    return "a ring shorter than its window";
  if (!d.max_context || !d.default_context ||
      d.default_context > d.max_context || d.max_context > uint64_t(INT64_MAX))
    return "an empty context";
  if (!d.capacity_multiple)
    return "no capacity multiple";
  for (uint32_t i = 0; i < d.n_entries; ++i)
    if (d.entries[i].prefill && !d.prefill_block)
      return "a prefill entry without a block size";
  if (!d.kv_bytes.a && !d.kv_bytes.b)
    return "no KV cache";
  if (d.n_phases && !d.phases)
    return "a missing table of phases";
  return nullptr;
}

Failure sparkc::checkDescriptor(const sparkc_descriptor &d, const char *name) {
  if (d.magic != SPARKC_DESCRIPTOR_MAGIC)
    return fail(SPARKC_FORMAT, "%s: not a compiled model (descriptor magic)",
                name);
  if (d.abi_version > SPARKC_ABI_VERSION)
    return fail(SPARKC_NEWER_VERSION,
                "%s: compiled for interface version %u; this runtime has %u",
                name, d.abi_version, SPARKC_ABI_VERSION);
  if (d.abi_version < SPARKC_ABI_VERSION)
    return fail(SPARKC_MISMATCH,
                "%s: compiled for interface version %u, this runtime has %u; "
                "compile the model again",
                name, d.abi_version, SPARKC_ABI_VERSION);
  if (d.bytes != sizeof(sparkc_descriptor) ||
      d.entry_bytes != sizeof(sparkc_entry))
    return fail(SPARKC_FORMAT,
                "%s: descriptor of %u bytes with entries of %u; expected %zu "
                "and %zu",
                name, d.bytes, d.entry_bytes, sizeof(sparkc_descriptor),
                sizeof(sparkc_entry));
  if (const char *fault = descriptorFault(d))
    return fail(SPARKC_FORMAT, "%s: broken descriptor: %s", name, fault);
  return success();
}

Failure ModelObject::open(const std::string &path) {
  file = path;
  if (Failure failure = checkElf(path))
    return failure;
  // Without a slash dlopen would search the library path.
  char *full = realpath(path.c_str(), nullptr);
  if (!full)
    return failErrno("%s: cannot open", path.c_str());
  handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
  free(full);
  if (!handle) {
    const char *why = dlerror();
    return fail(SPARKC_FORMAT, "%s: cannot load: %s", path.c_str(),
                why ? why : "unknown reason");
  }
  desc = static_cast<const sparkc_descriptor *>(
      dlsym(handle, SPARKC_DESCRIPTOR_SYMBOL));
  if (!desc)
    return fail(SPARKC_FORMAT, "%s: not a compiled model (no symbol %s)",
                path.c_str(), SPARKC_DESCRIPTOR_SYMBOL);
  return checkDescriptor(*desc, path.c_str());
}

static std::string nameOf(const sparkc_entry &entry) {
  const char *name = nameOfIsa(entry.isa);
  std::string text = name ? name : "unknown";
  // Two entries may differ in it alone.
  if (entry.features & SPARKC_CPU_AVX512BF16)
    text += " with bf16";
  return text;
}

static std::string listed(const sparkc_descriptor &d) {
  std::string names;
  for (uint32_t i = 0; i < d.n_entries; ++i)
    names += (i ? ", " : "") + nameOf(d.entries[i]);
  return names;
}

Failure ModelObject::choose(const char *forced) {
  uint32_t only = 0;
  if (forced && *forced) {
    only = isaOfName(forced);
    if (!only)
      return fail(SPARKC_INVALID_ARGUMENT,
                  "SPARKC_ISA=%s: unknown instruction set (amx, avx512vnni, "
                  "avx512, avxvnni, avx2)",
                  forced);
  }
  uint32_t cpu = sparkc_cpu_query();
  std::string refused;
  bool present = false;
  for (uint32_t i = 0; i < desc->n_entries; ++i) {
    const sparkc_entry &entry = desc->entries[i];
    if (only && entry.isa != only)
      continue;
    present = true;
    if (!cpuRuns(cpu, entry.isa, entry.features)) {
      refused += (refused.empty() ? "" : ", ") + nameOf(entry) +
                 ": not on this machine";
      continue;
    }
    if (entry.isa == SPARKC_ISA_AMX && !sparkc_cpu_permit_amx()) {
      refused += std::string(refused.empty() ? "" : ", ") +
                 "amx: the system does not permit tile state";
      continue;
    }
    chosen = &entry;
    if (only)
      reason = std::string("forced by SPARKC_ISA");
    else if (desc->n_entries == 1)
      reason = "the only one compiled in";
    else
      reason = "best of those compiled in (" + listed(*desc) + ")";
    if (!refused.empty())
      reason += "; " + refused;
    if (entry.features & SPARKC_NEEDS_GEMM)
      reason += "; prefill multiplies with oneDNN";
    return success();
  }
  if (!present)
    return fail(SPARKC_UNSUPPORTED_CPU,
                "%s: no code for SPARKC_ISA=%s; compiled for %s", file.c_str(),
                forced, listed(*desc).c_str());
  if (forced && *forced)
    return fail(SPARKC_UNSUPPORTED_CPU,
                "%s: this machine cannot run its code for SPARKC_ISA=%s (%s)",
                file.c_str(), forced, refused.c_str());
  return fail(SPARKC_UNSUPPORTED_CPU,
              "%s: this machine cannot run any of its code (%s)", file.c_str(),
              refused.c_str());
}
