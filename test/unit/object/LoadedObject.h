//===- LoadedObject.h - IR, compiled, linked and loaded ---------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: takes a module to a shared object by codegen/object, as the
// compiler does, and loads it.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_OBJECT_LOADEDOBJECT_H
#define SPARKC_TEST_UNIT_OBJECT_LOADEDOBJECT_H

#include "codegen/object/Emit.h"
#include "codegen/object/Link.h"
#include "codegen/object/Target.h"
#include "sparkc_abi.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <string>

namespace sparkc::test {

/// A directory that goes away with its contents.
class ScratchDirectory {
public:
  ScratchDirectory() {
    (void)llvm::sys::fs::createUniqueDirectory("sparkc-test", name);
  }
  ~ScratchDirectory() { llvm::sys::fs::remove_directories(name); }
  std::string file(llvm::StringRef leaf) const {
    llvm::SmallString<128> path(name);
    llvm::sys::path::append(path, leaf);
    return std::string(path);
  }
  /// Names of the files in it.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(name, code), end;
         it != end && !code; it.increment(code))
      names.push_back(llvm::sys::path::filename(it->path()).str());
    return names;
  }

private:
  llvm::SmallString<128> name;
};

/// Text of \p error; empty for success.
inline std::string messageOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

/// Whether this host can run code of \p spec; whether tiles are permitted is
/// another question (Machine.h).
inline bool hostRuns(const TargetSpec &spec) {
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl");
  if ((spec.abiFeatures & SPARKC_CPU_AVX512VBMI) &&
      !__builtin_cpu_supports("avx512vbmi"))
    return false;
  if ((spec.abiFeatures & SPARKC_CPU_AVX512BF16) &&
      !__builtin_cpu_supports("avx512bf16"))
    return false;
  switch (spec.isa) {
  case SPARKC_ISA_AVX2:
    return v3;
  case SPARKC_ISA_AVXVNNI:
    return v3 && __builtin_cpu_supports("avxvnni");
  case SPARKC_ISA_AVX512:
    return v4;
  case SPARKC_ISA_AVX512VNNI:
    return v4 && __builtin_cpu_supports("avx512vnni");
  case SPARKC_ISA_AMX: {
    uint32_t a, b, c, d; // leaf 7: AMX-TILE
    return v4 && __builtin_cpu_supports("avx512vnni") &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1);
  }
  default:
    return false;
  }
}

/// A module compiled for its targets and loaded into this process.
class LoadedObject {
public:
  /// Leaves `error` set on failure.
  LoadedObject(mlir::ModuleOp module, llvm::ArrayRef<TargetSpec> specs,
               llvm::ArrayRef<llvm::StringRef> exports) {
    auto object = compileToObject(module, specs, exports);
    if (!object) {
      error = messageOf(object.takeError());
      return;
    }
    std::string path = directory.file("object.so");
    if (llvm::Error failure = linkSharedObject(
            llvm::StringRef(object->data(), object->size()), path)) {
      error = messageOf(std::move(failure));
      return;
    }
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      error = dlerror();
  }
  ~LoadedObject() {
    if (handle)
      dlclose(handle);
  }
  LoadedObject(const LoadedObject &) = delete;
  LoadedObject &operator=(const LoadedObject &) = delete;

  template <typename Function> Function *get(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(handle, name));
  }

  std::string error;

private:
  ScratchDirectory directory;
  void *handle = nullptr;
};

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_OBJECT_LOADEDOBJECT_H
