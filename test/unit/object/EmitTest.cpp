//===- EmitTest.cpp - LLVM dialect to machine code -----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/object/TestModules.h"

#include "llvm/Object/ELFObjectFile.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

using namespace sparkc;
using namespace sparkc::test;

namespace {

std::string assemblyOf(const char *text, const char *cpu,
                       llvm::ArrayRef<llvm::StringRef> exports) {
  TestModule module(text);
  auto assembly = compileToAssembly(*module, target(cpu), exports);
  if (!assembly)
    return "error: " + messageOf(assembly.takeError());
  return *assembly;
}

bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

TEST(Emit, RunsAndCallsItsPrivateFunctions) {
  TestModule module(addOneText);
  LoadedObject object(*module, target("x86-64-v3"), {"add_one"});
  ASSERT_EQ(object.error, "");
  auto *addOne = object.get<int64_t(int64_t)>("add_one");
  ASSERT_NE(addOne, nullptr);
  EXPECT_EQ(addOne(41), 42);
  EXPECT_EQ(object.get<int64_t(int64_t)>("step_phase_0"), nullptr);
}

TEST(Emit, SymbolTableNamesPrivateFunctions) {
  TestModule module(addOneText);
  auto bytes = compileToObject(*module, target("x86-64-v3"), {"add_one"});
  ASSERT_TRUE(bool(bytes)) << messageOf(bytes.takeError());
  auto object =
      llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(
          llvm::StringRef(bytes->data(), bytes->size()), "test"));
  ASSERT_TRUE(bool(object)) << messageOf(object.takeError());
  std::map<std::string, unsigned> binding;
  for (const llvm::object::ELFSymbolRef symbol :
       static_cast<llvm::object::ELFObjectFileBase &>(**object).symbols())
    binding[llvm::cantFail(symbol.getName()).str()] = symbol.getBinding();
  ASSERT_EQ(binding.count("add_one"), 1u);
  EXPECT_EQ(binding["add_one"], unsigned(llvm::ELF::STB_GLOBAL));
  // Of "internal" and of "private" linkage alike.
  for (const char *name : {"step_phase_0", "step_phase_1"}) {
    ASSERT_EQ(binding.count(name), 1u) << name;
    EXPECT_EQ(binding[name], unsigned(llvm::ELF::STB_LOCAL)) << name;
  }
}

TEST(Emit, SameBytesTwice) {
  for (const char *cpu : {"x86-64-v3", "znver5"}) {
    std::string bytes[2];
    for (std::string &out : bytes) {
      TestModule module(addOneText);
      auto object = compileToObject(*module, target(cpu), {"add_one"});
      ASSERT_TRUE(bool(object)) << messageOf(object.takeError());
      out.assign(object->begin(), object->end());
    }
    EXPECT_FALSE(bytes[0].empty());
    EXPECT_EQ(bytes[0], bytes[1]);
  }
}

TEST(Emit, LoopsThatClearOrCopyStayLoops) {
  for (const char *cpu : {"x86-64-v3", "x86-64-v4"}) {
    std::string assembly = assemblyOf(memoryText, cpu, {"clear", "copy"});
    EXPECT_FALSE(contains(assembly, "memset")) << assembly;
    EXPECT_FALSE(contains(assembly, "memcpy")) << assembly;
    EXPECT_FALSE(contains(assembly, "memmove")) << assembly;
    EXPECT_FALSE(contains(assembly, "call")) << assembly;
  }
  TestModule module(memoryText);
  LoadedObject object(*module, target("x86-64-v3"), {"clear", "copy"});
  ASSERT_EQ(object.error, "");
  std::vector<int64_t> from(1000), to(1000, -1);
  std::iota(from.begin(), from.end(), 1);
  object.get<void(void *, const void *, int64_t)>("copy")(to.data(),
                                                          from.data(), 999);
  EXPECT_EQ(to[998], 999);
  EXPECT_EQ(to[999], -1);
  object.get<void(void *, int64_t)>("clear")(to.data(), 999);
  EXPECT_EQ(std::accumulate(to.begin(), to.end(), int64_t(0)), -1);
}

TEST(Emit, VectorWidthFollowsTheTarget) {
  for (const char *cpu : {"x86-64-v4", "skylake-avx512", "znver5"})
    EXPECT_TRUE(contains(assemblyOf(scaleText, cpu, {"scale"}), "%zmm")) << cpu;
  for (const char *cpu : {"x86-64-v3", "haswell"}) {
    std::string assembly = assemblyOf(scaleText, cpu, {"scale"});
    EXPECT_FALSE(contains(assembly, "%zmm")) << cpu;
    EXPECT_TRUE(contains(assembly, "%ymm")) << cpu;
  }
}

TEST(Emit, NothingIsContracted) {
  std::string assembly = assemblyOf(scaleText, "x86-64-v4", {"scale"});
  EXPECT_TRUE(contains(assembly, "vmulps"));
  EXPECT_TRUE(contains(assembly, "vaddps"));
  EXPECT_FALSE(contains(assembly, "vfmadd")) << assembly;
}

TEST(Emit, TextNamesNoPathAndNoHost) {
  std::string assembly = assemblyOf(addOneText, "native", {"add_one"});
  EXPECT_TRUE(contains(assembly, ".file\t\"sparkc\"")) << assembly;
  EXPECT_FALSE(contains(assembly, ".ident")) << assembly;
}

TEST(Emit, RefusesAMissingExport) {
  TestModule module(addOneText);
  auto object = compileToObject(*module, target("x86-64-v3"));
  ASSERT_FALSE(bool(object));
  EXPECT_EQ(messageOf(object.takeError()),
            "the module does not define the symbol 'sparkc_model_descriptor' "
            "that it must export");
}

TEST(Emit, RefusesOtherDialects) {
  TestModule module("func.func @f() { return }");
  auto object = compileToObject(*module, target("x86-64-v3"), {"f"});
  ASSERT_FALSE(bool(object));
  std::string message = messageOf(object.takeError());
  EXPECT_EQ(message.find("translation to LLVM IR failed: "), 0u) << message;
  EXPECT_TRUE(contains(message, "func.func")) << message;
}

} // namespace
