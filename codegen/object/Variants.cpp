//===- Variants.cpp - Code for several instruction sets -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/object/Variants.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace sparkc;

static bool isDeclaration(Operation &op) {
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
    return function.isExternal();
  auto global = cast<LLVM::GlobalOp>(op);
  return !global.getValueAttr() && !global.getInitializerBlock();
}

void sparkc::prefixSymbols(ModuleOp module, llvm::StringRef prefix) {
  llvm::StringMap<FlatSymbolRefAttr> renamed;
  for (Operation &op : *module.getBody())
    if (isa<LLVM::LLVMFuncOp, LLVM::GlobalOp>(op) && !isDeclaration(op)) {
      StringAttr old = SymbolTable::getSymbolName(&op);
      auto name =
          StringAttr::get(module.getContext(), prefix + old.getValue());
      renamed[old] = FlatSymbolRefAttr::get(name);
      SymbolTable::setSymbolName(&op, name);
    }
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](SymbolRefAttr ref)
          -> std::optional<std::pair<mlir::Attribute, WalkResult>> {
        auto found = renamed.find(ref.getRootReference());
        if (found == renamed.end())
          return std::nullopt;
        return std::pair<mlir::Attribute, WalkResult>(
            found->second, WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true);
}

void sparkc::moveCode(ModuleOp from, ModuleOp into) {
  for (Operation &op : llvm::make_early_inc_range(*from.getBody())) {
    if (!isa<LLVM::LLVMFuncOp, LLVM::GlobalOp>(op))
      continue;
    if (isDeclaration(op) &&
        into.lookupSymbol(SymbolTable::getSymbolName(&op)))
      continue;
    op.moveBefore(into.getBody(), into.getBody()->end());
  }
}
