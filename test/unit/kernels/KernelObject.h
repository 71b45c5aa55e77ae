//===- KernelObject.h - Bodies of kernels, compiled and loaded --*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: functions whose bodies the builders of codegen/microkernels emit,
// taken to a shared object as the compiler takes a model.
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_TEST_UNIT_KERNELS_KERNELOBJECT_H
#define SPARKC_TEST_UNIT_KERNELS_KERNELOBJECT_H

#include "codegen/microkernels/Kernels.h"
#include "test/unit/object/LoadedObject.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace sparkc::test {

/// void name(const void *a, const void *b, void *out).
using KernelFn = void(const void *a, const void *b, void *out);

/// A module of kernels, then an object for one CPU.
class KernelObject {
public:
  using Body = llvm::function_ref<void(Emitter &e, mlir::Value a, mlir::Value b,
                                       mlir::Value out)>;

  KernelObject();
  /// Adds a function whose body \p body emits.
  void add(llvm::StringRef name, Body body);
  /// The text of the error, empty if there is none. Called once.
  std::string compile(const TargetSpec &target);

  KernelFn *get(const std::string &name) const {
    return object->get<KernelFn>(name.c_str());
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::string> names;
  std::unique_ptr<LoadedObject> object;
};

/// Bytes that end where a page without access begins: what reads or writes
/// past them ends the test. Aligned to 64 where the size is a multiple of it.
class GuardedBytes {
public:
  explicit GuardedBytes(size_t size) : bytes(size) {
    size_t page = sysconf(_SC_PAGESIZE);
    mapped = (size + page - 1) / page * page + page;
    base = static_cast<uint8_t *>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base == MAP_FAILED)
      abort();
    mprotect(base + mapped - page, page, PROT_NONE);
    begin = base + mapped - page - size;
  }
  ~GuardedBytes() { munmap(base, mapped); }
  GuardedBytes(const GuardedBytes &) = delete;
  GuardedBytes &operator=(const GuardedBytes &) = delete;

  uint8_t *data() const { return begin; }
  size_t size() const { return bytes; }
  template <typename T> T *as(size_t offset = 0) const {
    return reinterpret_cast<T *>(begin + offset);
  }

private:
  size_t bytes, mapped;
  uint8_t *base, *begin;
};

} // namespace sparkc::test

#endif // SPARKC_TEST_UNIT_KERNELS_KERNELOBJECT_H
