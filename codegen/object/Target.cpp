//===- Target.cpp - The processor a model is compiled for -----------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/Target.h"

#include "sparkc_abi.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

#include <mutex>

using namespace llvm;
using namespace sparkc;

static const char tripleName[] = "x86_64-unknown-linux-gnu";

static Expected<const Target *> lookupX86() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string message;
  const Target *target =
      TargetRegistry::lookupTarget(Triple(tripleName), message);
  if (!target)
    return createStringError("this LLVM cannot generate code for x86-64: " +
                             message);
  return target;
}

/// What the baselines are, by LLVM's names (as far as vectors matter to a
/// reader of an error message; the rest of a baseline came with or before it).
static constexpr const char *v3Features[] = {
    "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe", "popcnt", "xsave"};
static constexpr const char *v4Features[] = {"avx512f", "avx512bw", "avx512cd",
                                             "avx512dq", "avx512vl"};

/// Those of \p wanted that \p subtarget lacks, as text; empty if none.
static std::string missing(const MCSubtargetInfo &subtarget,
                           ArrayRef<const char *> wanted) {
  std::string names;
  for (const char *name : wanted)
    if (!subtarget.checkFeatures(std::string("+") + name))
      names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

Expected<TargetSpec> sparkc::resolveTarget(StringRef mcpu, bool bf16,
                                           bool tiles) {
  Expected<const Target *> target = lookupX86();
  if (!target)
    return target.takeError();

  TargetSpec spec;
  SubtargetFeatures hostFeatures;
  bool native = mcpu == "native";
  spec.cpu = native ? sys::getHostCPUName().str() : mcpu.str();
  if (native)
    for (const auto &feature : sys::getHostCPUFeatures())
      hostFeatures.AddFeature(feature.getKey(), feature.getValue());

  // An unknown name would only be a warning below: ask for it first, of a
  // subtarget that is surely good.
  Triple triple(tripleName);
  std::unique_ptr<MCSubtargetInfo> any(
      (*target)->createMCSubtargetInfo(triple, "x86-64", ""));
  if (spec.cpu.empty() || !any->isCPUStringValid(spec.cpu))
    return createStringError("unknown CPU '" + spec.cpu +
                             "' (names are those of LLVM, such as x86-64-v3, "
                             "haswell, x86-64-v4, sapphirerapids, znver5)");
  std::unique_ptr<MCSubtargetInfo> subtarget((*target)->createMCSubtargetInfo(
      triple, spec.cpu, hostFeatures.getString()));

  if (std::string lacks = missing(*subtarget, v3Features); !lacks.empty())
    return createStringError("CPU '" + spec.cpu + "' lacks " + lacks +
                             ": sparkc needs AVX2, FMA and F16C (x86-64-v3)");

  auto has = [&](ArrayRef<const char *> wanted) {
    return missing(*subtarget, wanted).empty();
  };
  if (!has(v4Features)) {
    spec.baseline = "x86-64-v3";
    spec.preferVectorWidth = 256;
    spec.isa = SPARKC_ISA_AVX2;
    if (has({"avxvnni"})) {
      spec.isa = SPARKC_ISA_AVXVNNI;
      spec.features = "+avxvnni";
    }
    return spec;
  }

  spec.baseline = "x86-64-v4";
  spec.preferVectorWidth = 512;
  spec.isa = SPARKC_ISA_AVX512;
  SubtargetFeatures features;
  if (has({"avx512vnni"})) {
    spec.isa = SPARKC_ISA_AVX512VNNI;
    features.AddFeature("avx512vnni");
    if (tiles && has({"amx-tile", "amx-int8", "amx-bf16"})) {
      spec.isa = SPARKC_ISA_AMX;
      for (const char *name : {"amx-tile", "amx-int8", "amx-bf16"})
        features.AddFeature(name);
    }
  }
  if (has({"avx512vbmi"})) {
    spec.abiFeatures |= SPARKC_CPU_AVX512VBMI;
    features.AddFeature("avx512vbmi");
  }
  if (bf16 && has({"avx512vnni", "avx512bf16"})) {
    spec.abiFeatures |= SPARKC_CPU_AVX512BF16;
    features.AddFeature("avx512bf16");
  }
  spec.features = features.getString();
  return spec;
}

WeightStreams sparkc::weightStreams(StringRef cpu) {
  // Measured (docs/design.md). Zen 4 loses a quarter by any prefetch. Past
  // the L2 cache Zen 5 gains most, and Intel's processors lose half: what reads
  // ahead there on its own does so from the L2 cache. It stays within a page of
  // 4 KiB, and prefetches a page ahead are worth 6 % less than some before that.
  if (cpu == "znver4")
    return {0, /*once=*/false, /*serial=*/true};
  if (cpu == "znver5")
    return {7168, /*once=*/true, /*serial=*/true};
  return {3072};
}

/// The instruction sets by name: what builds on what, and the machine that the
/// code is scheduled for.
static constexpr struct {
  const char *name;
  uint32_t isa;
  const char *tuning;
  const char *baseline;
  const char *features;
  unsigned width;
  bool automatic;
} isaTargets[] = {
    {"amx", SPARKC_ISA_AMX, "sapphirerapids", "x86-64-v4",
     "+avx512vnni,+amx-tile,+amx-int8,+amx-bf16", 512, true},
    {"avx512vnni", SPARKC_ISA_AVX512VNNI, "icelake-server", "x86-64-v4",
     "+avx512vnni", 512, true},
    {"avx512", SPARKC_ISA_AVX512, "skylake-avx512", "x86-64-v4", "", 512,
     false},
    {"avxvnni", SPARKC_ISA_AVXVNNI, "alderlake", "x86-64-v3", "+avxvnni", 256,
     true},
    {"avx2", SPARKC_ISA_AVX2, "haswell", "x86-64-v3", "", 256, true},
};

Expected<SmallVector<TargetSpec>> sparkc::resolveIsas(StringRef list,
                                                      bool bf16) {
  SmallVector<StringRef> names;
  list.split(names, ',');
  for (size_t i = 0; i < names.size(); ++i) {
    StringRef name = names[i];
    bool known = list == "auto";
    for (auto &row : isaTargets)
      known |= name == row.name;
    if (!known)
      return createStringError(
          "--isa: unknown instruction set '" + name +
          "' (auto, or some of amx, avx512vnni, avx512, avxvnni, avx2, by "
          "commas)");
    if (is_contained(ArrayRef(names).take_front(i), name))
      return createStringError("--isa: '" + name + "' is named twice");
  }
  SmallVector<TargetSpec> specs;
  for (auto &row : isaTargets) {
    if (list == "auto" ? !row.automatic : !is_contained(names, row.name))
      continue;
    TargetSpec spec;
    spec.cpu = row.tuning;
    spec.baseline = row.baseline;
    spec.features = row.features;
    spec.isa = row.isa;
    spec.preferVectorWidth = row.width;
    spec.prefix = std::string(row.name) + ".";
    // Every machine with AMX has AVX512-BF16, of the others some.
    if (bf16 && row.isa >= SPARKC_ISA_AVX512VNNI) {
      TargetSpec more = spec;
      more.features += ",+avx512bf16";
      more.abiFeatures |= SPARKC_CPU_AVX512BF16;
      if (row.isa == SPARKC_ISA_AMX) {
        spec = std::move(more);
      } else {
        more.prefix = "avx512bf16.";
        specs.push_back(std::move(more));
      }
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string sparkc::targetName(ArrayRef<TargetSpec> specs) {
  if (specs.size() == 1 && specs[0].prefix.empty())
    return specs[0].cpu;
  return join(map_range(specs,
                        [](const TargetSpec &spec) {
                          return StringRef(spec.prefix).drop_back().str();
                        }),
              ", ");
}

Expected<std::unique_ptr<TargetMachine>>
sparkc::createTargetMachine(const TargetSpec &spec) {
  Expected<const Target *> target = lookupX86();
  if (!target)
    return target.takeError();
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  std::unique_ptr<TargetMachine> machine((*target)->createTargetMachine(
      Triple(tripleName), spec.baseline, spec.features, options, Reloc::PIC_,
      CodeModel::Small, CodeGenOptLevel::Aggressive));
  if (!machine)
    return createStringError("LLVM made no code generator for " + spec.cpu);
  return machine;
}

void sparkc::applyTarget(Module &module, ArrayRef<TargetSpec> specs,
                         TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(PICLevel::BigPIC);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    const TargetSpec *own = find_if(specs, [&](const TargetSpec &spec) {
      return function.getName().starts_with(spec.prefix);
    });
    const TargetSpec &spec = own == specs.end() ? specs.back() : *own;
    function.addFnAttr("target-cpu", spec.baseline);
    function.addFnAttr("tune-cpu", spec.cpu);
    // Those of the machine are another's where there are several.
    if (!spec.features.empty() || specs.size() > 1)
      function.addFnAttr("target-features", spec.features);
    function.addFnAttr("prefer-vector-width", utostr(spec.preferVectorWidth));
    // No idiom becomes a call of memset or memcpy: there is nobody to call.
    function.addFnAttr("no-builtins");
    // Nothing throws; tables for unwinding are for debuggers and profilers.
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.setUWTableKind(UWTableKind::Async);
  }
}
