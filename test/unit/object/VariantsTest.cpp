//===- VariantsTest.cpp - Code for several instruction sets ---------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/Variants.h"
#include "test/unit/object/TestModules.h"

#include "llvm/Target/TargetMachine.h"

#include <gtest/gtest.h>

using namespace sparkc;
using namespace sparkc::test;

namespace {

std::vector<std::string> namesOf(llvm::ArrayRef<TargetSpec> specs) {
  std::vector<std::string> names;
  for (const TargetSpec &spec : specs)
    names.push_back(spec.prefix);
  return names;
}

using Names = std::vector<std::string>;

/// Programs of one context: code moves between them.
class Programs {
public:
  Programs() { context.loadDialect<mlir::LLVM::LLVMDialect>(); }
  mlir::ModuleOp add(const char *text, const char *prefix) {
    modules.push_back(mlir::parseSourceString<mlir::ModuleOp>(text, &context));
    prefixSymbols(*modules.back(), prefix);
    return *modules.back();
  }

private:
  mlir::MLIRContext context;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

TEST(Variants, ListsBestFirst) {
  auto all = resolveIsas("auto");
  ASSERT_TRUE(bool(all)) << messageOf(all.takeError());
  EXPECT_EQ(namesOf(*all), (Names{"amx.", "avx512vnni.", "avxvnni.", "avx2."}));
  EXPECT_EQ(targetName(*all), "amx, avx512vnni, avxvnni, avx2");
  auto some = resolveIsas("avx2,avx512,amx");
  ASSERT_TRUE(bool(some)) << messageOf(some.takeError());
  EXPECT_EQ(namesOf(*some), (Names{"amx.", "avx512.", "avx2."}));
  EXPECT_EQ((*some)[0].isa, uint32_t(SPARKC_ISA_AMX));
  EXPECT_EQ((*some)[1].preferVectorWidth, 512u);
  // Each runs on any machine with the instruction set: no further features.
  for (const TargetSpec &spec : *all) {
    EXPECT_EQ(spec.abiFeatures, 0u) << spec.prefix;
    EXPECT_TRUE(bool(resolveTarget(spec.cpu))) << spec.cpu;
    auto machine = createTargetMachine(spec);
    EXPECT_TRUE(bool(machine)) << messageOf(machine.takeError());
  }
  EXPECT_EQ(targetName(target("haswell")), "haswell");
}

TEST(Variants, TellMachinesWithBF16Apart) {
  auto all = resolveIsas("auto", /*bf16=*/true);
  ASSERT_TRUE(bool(all)) << messageOf(all.takeError());
  EXPECT_EQ(namesOf(*all), (Names{"amx.", "avx512bf16.", "avx512vnni.",
                                  "avxvnni.", "avx2."}));
  for (const TargetSpec &spec : *all) {
    bool has = spec.prefix == "amx." || spec.prefix == "avx512bf16.";
    EXPECT_EQ(spec.abiFeatures, has ? uint32_t(SPARKC_CPU_AVX512BF16) : 0u)
        << spec.prefix;
    EXPECT_EQ(spec.features.find("avx512bf16") != std::string::npos, has)
        << spec.prefix;
    auto machine = createTargetMachine(spec);
    EXPECT_TRUE(bool(machine)) << messageOf(machine.takeError());
  }
  EXPECT_EQ((*all)[1].isa, uint32_t(SPARKC_ISA_AVX512VNNI));
  auto some = resolveIsas("avx512,avx2", /*bf16=*/true);
  ASSERT_TRUE(bool(some)) << messageOf(some.takeError());
  EXPECT_EQ(namesOf(*some), (Names{"avx512.", "avx2."}));
}

TEST(Variants, RefusesOtherLists) {
  for (const char *list :
       {"", "sse2", "avx2,", ",avx2", "avx2,avx2", "auto,avx2", "avx2 "}) {
    auto specs = resolveIsas(list);
    ASSERT_FALSE(bool(specs)) << list;
    EXPECT_EQ(messageOf(specs.takeError()).find("--isa: "), 0u) << list;
  }
}

TEST(Variants, EachFunctionHasItsTarget) {
  std::string assembly;
  {
    Programs programs;
    mlir::ModuleOp one = programs.add(scaleText, "avx512."),
                   two = programs.add(scaleText, "avx2.");
    moveCode(two, one);
    auto specs = resolveIsas("avx512,avx2");
    ASSERT_TRUE(bool(specs)) << messageOf(specs.takeError());
    auto text = compileToAssembly(one, *specs, {"avx512.scale", "avx2.scale"});
    ASSERT_TRUE(bool(text)) << messageOf(text.takeError());
    assembly = *text;
  }
  size_t wide = assembly.find("avx512.scale:"), narrow = assembly.find("avx2.scale:");
  ASSERT_LT(wide, narrow);
  ASSERT_NE(narrow, std::string::npos) << assembly;
  EXPECT_NE(assembly.substr(wide, narrow - wide).find("%zmm"), std::string::npos);
  EXPECT_EQ(assembly.substr(narrow).find("%zmm"), std::string::npos) << assembly;
  EXPECT_NE(assembly.substr(narrow).find("%ymm"), std::string::npos) << assembly;
}

TEST(Variants, CallsStayInside) {
  // Two programs with functions of the same names: what is called, and the
  // result, is each one's own.
  std::string other = addOneText;
  other.replace(other.find("constant(1 "), 11, "constant(5 ");
  Programs programs;
  mlir::ModuleOp one = programs.add(addOneText, "avxvnni."),
                 two = programs.add(other.c_str(), "avx2.");
  moveCode(two, one);
  EXPECT_TRUE(two.getBody()->empty());
  auto specs = resolveIsas("avxvnni,avx2");
  ASSERT_TRUE(bool(specs)) << messageOf(specs.takeError());
  LoadedObject object(one, *specs, {"avxvnni.add_one", "avx2.add_one"});
  ASSERT_EQ(object.error, "");
  EXPECT_EQ(object.get<int64_t(int64_t)>("avxvnni.add_one")(41), 42);
  EXPECT_EQ(object.get<int64_t(int64_t)>("avx2.add_one")(41), 46);
}

TEST(Variants, DeclarationsAreShared) {
  Programs programs;
  mlir::ModuleOp one = programs.add(undefinedText, "a."),
                 two = programs.add(undefinedText, "b.");
  moveCode(two, one);
  int count = 0;
  for (mlir::Operation &op : *one.getBody())
    count += mlir::isa<mlir::LLVM::LLVMFuncOp>(op);
  EXPECT_EQ(count, 3); // elsewhere, a.calls, b.calls
}

} // namespace
