//===- SparkQuantize.cpp - How each weight is stored ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

namespace sparkc {
#define GEN_PASS_DEF_SPARKQUANTIZE
#include "passes/Passes.h.inc"
} // namespace sparkc

namespace {

/// How matrices are stored.
struct Scheme {
  enum class Kind { Stored, F32, BF16 } kind;

  static std::optional<Scheme> parse(StringRef text) {
    return llvm::StringSwitch<std::optional<Scheme>>(text)
        .Case("stored", Scheme{Kind::Stored})
        .Case("f32", Scheme{Kind::F32})
        .Case("bf16", Scheme{Kind::BF16})
        .Default(std::nullopt);
  }

  /// The type of one matrix, given where it comes from.
  Type elementType(SourceAttr source) const {
    MLIRContext *context = source.getContext();
    bool isBF16 = kind == Kind::BF16 ||
                  (kind == Kind::Stored && source.getDtype() == "BF16");
    return isBF16 ? Type(BFloat16Type::get(context))
                  : Type(Float32Type::get(context));
  }
};

struct SparkQuantize : sparkc::impl::SparkQuantizeBase<SparkQuantize> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

/// A type's name; the grid's where it has one.
static std::string describe(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto grid = dyn_cast_or_null<GridAttr>(type.getEncoding()))
    stream << "q" << grid.getBits() << " g" << grid.getGroup()
           << (grid.getSymmetric() ? " sym" : "");
  else
    stream << type.getElementType();
  return text;
}

void SparkQuantize::runOnOperation() {
  ModuleOp module = getOperation();
  std::optional<Scheme> parsed = Scheme::parse(scheme);
  if (!parsed) {
    module.emitError() << "unknown weight scheme '" << scheme
                       << "'; expected stored, f32 or bf16";
    return signalPassFailure();
  }

  std::string words;
  for (auto weight : module.getOps<WeightOp>()) {
    RankedTensorType type = weight.getTensorType();
    bool isMatrix = type.getRank() == 2;
    Type element = isMatrix ? parsed->elementType(weight.getSource())
                            : Type(Float32Type::get(&getContext()));
    type = RankedTensorType::get(type.getShape(), element);
    weight.setType(type);
    if (!isMatrix)
      continue;
    std::string name = describe(type);
    words = words.empty() || words == name ? name : "mixed";
  }
  for (auto config : module.getOps<ConfigOp>())
    config.setScheme(words.empty() ? "f32" : words);
}
