//===- Target.h - The processor a model is compiled for ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CPU name becomes an instruction set of the ABI (`sparkc_isa`), and code is
// generated for exactly that set, scheduled for that CPU: an object never uses
// an instruction that its descriptor does not name, so a host can tell from the
// descriptor alone whether it can run the object.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_OBJECT_TARGET_H
#define SPARKC_CODEGEN_OBJECT_TARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace sparkc {

struct TargetSpec {
  /// LLVM's name of the CPU: tuning, and `target` of the descriptor.
  std::string cpu;
  /// The baseline that `isa` builds on: "x86-64-v3" or "x86-64-v4".
  std::string baseline;
  /// What `isa` and `abiFeatures` add to the baseline: "+avx512vnni,...".
  std::string features;
  /// sparkc_isa.
  uint32_t isa = 0;
  /// sparkc_cpu_feature bits that the code may use: BF16 only where it is asked
  /// for. (FP16 is left out: no kernel needs it, and like those of BF16 its
  /// instructions flush denormals.)
  uint32_t abiFeatures = 0;
  /// Widest vectors in bits, 256 or 512.
  unsigned preferVectorWidth = 0;
  /// In an object for several instruction sets, what the names of this one's
  /// functions and constants begin with: "avx2."; else empty.
  std::string prefix;
};

/// The target of `--mcpu`: "native" (the CPU and the features of this host, a
/// hypervisor's mask included) or an LLVM CPU name. Fails for a name that LLVM
/// does not know and for CPUs below x86-64-v3 (AVX2, FMA, F16C).
/// `bf16`: code may use AVX512-BF16 where the CPU has it. Without `tiles` it
/// does without AMX.
llvm::Expected<TargetSpec>
resolveTarget(llvm::StringRef mcpu, bool bf16 = false, bool tiles = true);

/// How a thread of a step should read weights.
struct WeightStreams {
  int64_t ahead;       ///< prefetched so many bytes before; 0: not at all
  bool once = false;   ///< past the L2 cache
  bool serial = false; ///< one stream; else two
};

/// What serves \p cpu (an LLVM CPU name) best.
WeightStreams weightStreams(llvm::StringRef cpu);

/// The targets of `--isa`, best first: "auto" (every one of amx, avx512vnni,
/// avxvnni, avx2) or some of these and avx512, by commas. The code of each is
/// for any machine that has the instruction set, whatever this host is. With
/// `bf16` that of amx may use AVX512-BF16, and before avx512vnni comes a target
/// for machines that have both.
llvm::Expected<llvm::SmallVector<TargetSpec>>
resolveIsas(llvm::StringRef list, bool bf16 = false);

/// What the descriptor calls the target: a CPU, or instruction sets.
std::string targetName(llvm::ArrayRef<TargetSpec> specs);

/// A code generator for \p spec: x86-64 Linux ELF, position-independent, small
/// code model, no floating-point contraction.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetSpec &spec);

/// Makes \p module one for \p specs: triple, data layout, and on every function
/// the attributes of its target (the one with the prefix of its name), vector
/// width and "no library calls".
void applyTarget(llvm::Module &module, llvm::ArrayRef<TargetSpec> specs,
                 llvm::TargetMachine &machine);

} // namespace sparkc

#endif // SPARKC_CODEGEN_OBJECT_TARGET_H
