//===- SparkQuantize.cpp - How each weight is stored ----------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/GridOf.h"
#include "codegen/weights/WeightPolicy.h"
#include "passes/Passes.h"
#include "passes/TiedHead.h"

#include "llvm/ADT/MapVector.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace sparkc;
using namespace sparkc::spark;

namespace sparkc {
#define GEN_PASS_DEF_SPARKQUANTIZE
#include "passes/Passes.h.inc"
} // namespace sparkc

/// The scheme that stores a matrix as its file does (f16 widened to f32).
static WeightScheme storedScheme(SourceAttr source) {
  WeightScheme scheme;
  if (std::optional<GridSpec> grid = storedGrid(source)) {
    scheme.grid = *grid;
    return scheme;
  }
  scheme.kind =
      source.getDtype() == "BF16" ? WeightScheme::BF16 : WeightScheme::F32;
  return scheme;
}

static RankedTensorType typeOf(ArrayRef<int64_t> shape,
                               const WeightScheme &scheme, MLIRContext *context) {
  if (scheme.kind == WeightScheme::F32)
    return RankedTensorType::get(shape, Float32Type::get(context));
  if (scheme.kind == WeightScheme::BF16)
    return RankedTensorType::get(shape, BFloat16Type::get(context));
  return RankedTensorType::get(shape,
                               IntegerType::get(context, scheme.grid.bits),
                               attrOf(context, scheme.grid));
}

/// The one of two schemes that loses less.
static WeightScheme finer(const WeightScheme &x, const WeightScheme &y) {
  auto rank = [](const WeightScheme &s) {
    int bits = s.kind == WeightScheme::F32    ? 32
               : s.kind == WeightScheme::BF16 ? 16
                                              : s.grid.bits;
    return std::tuple(bits, -s.group(), !s.grid.symmetric);
  };
  return rank(x) < rank(y) ? y : x;
}

/// A type's name; the grid's where it has one.
static std::string describe(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto grid = dyn_cast_or_null<GridAttr>(type.getEncoding());
  if (grid && grid.getForm() != GridForm::zero)
    stream << WeightScheme{WeightScheme::Grid, gridOf(grid)}.str();
  else if (grid)
    stream << "q" << grid.getBits() << " g" << grid.getGroup()
           << (grid.getSymmetric() ? " sym" : "");
  else
    stream << type.getElementType();
  return text;
}

namespace {

struct SparkQuantize : sparkc::impl::SparkQuantizeBase<SparkQuantize> {
  using Base::Base;
  void runOnOperation() override;

private:
  llvm::Error readOptions();
  void separateTiedHead();
  llvm::Error chooseSchemes();
  WeightScheme schemeFor(WeightOp weight, StringRef name) {
    if (auto rule = policy.ruleFor(name))
      return *rule;
    return keeps(weight) ? storedScheme(weight.getSource()) : *fallback;
  }
  /// Whether a matrix that no rule names stays as its file has it.
  bool keeps(WeightOp weight) {
    return !fallback || (keepCodes && storedGrid(weight.getSource()));
  }

  /// Of `scheme`; none: as stored.
  std::optional<WeightScheme> fallback;
  WeightPolicy policy;
  /// What each weight that a linear reads is called in rules, in order.
  llvm::MapVector<StringAttr, std::string> linears;
};

} // namespace

llvm::Error SparkQuantize::readOptions() {
  if (scheme != "stored") {
    auto parsed = WeightScheme::parse(scheme);
    if (!parsed)
      return parsed.takeError();
    fallback = *parsed;
  }
  policy = WeightPolicy(fallback.value_or(WeightScheme()));
  SmallVector<StringRef> parts;
  StringRef(rules).split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (llvm::Error error = policy.addRule(part.trim()))
      return error;
  return llvm::Error::success();
}

/// Where the head reads the embedding but is to be stored otherwise, it gets a
/// weight of its own with the same source.
void SparkQuantize::separateTiedHead() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  module.walk([&](EmbedOp embed) {
    auto table = symbols.lookup<WeightOp>(embed.getWeightAttr().getAttr());
    for (LinearOp linear : tiedHeads(embed)) {
      linears[table.getSymNameAttr()] = "lm_head";
      WeightScheme head = schemeFor(table, "lm_head");
      WeightScheme rows = fallback && fallback->kind != WeightScheme::Grid
                              ? *fallback
                              : storedScheme(table.getSource());
      if (head == rows)
        continue;
      linears.erase(table.getSymNameAttr());
      untie(linear, table);
    }
  });
}

llvm::Error SparkQuantize::chooseSchemes() {
  ModuleOp module = getOperation();
  module.walk([&](LinearOp linear) {
    StringAttr name = linear.getWeightAttr().getAttr();
    linears.try_emplace(name, name.getValue().str());
  });
  module.walk([&](FusedLinearOp linear) {
    for (auto name : linear.getSegments().getAsRange<FlatSymbolRefAttr>())
      linears.try_emplace(name.getAttr(), name.getValue().str());
  });
  std::vector<std::string> names;
  for (auto &[symbol, name] : linears)
    names.push_back(name);
  if (llvm::Error error = policy.checkAllUsed(names))
    return error;

  DenseMap<StringAttr, WeightScheme> schemes;
  for (auto weight : module.getOps<WeightOp>()) {
    StringAttr symbol = weight.getSymNameAttr();
    auto linear = linears.find(symbol);
    WeightScheme chosen =
        linear != linears.end() ? schemeFor(weight, linear->second)
        : fallback && fallback->kind != WeightScheme::Grid
            ? *fallback
            : storedScheme(weight.getSource());
    schemes[symbol] = chosen;
  }
  SymbolTable symbols(module);
  auto keepsCodes = [&](LinearOp linear) {
    auto weight = symbols.lookup<WeightOp>(linear.getWeightAttr().getAttr());
    return weight && storedGrid(weight.getSource()) && keeps(weight);
  };
  auto isAsked = [&](LinearOp linear) {
    return policy.ruleFor(linear.getWeight());
  };
  // Rows that meet in a pair of tiles have one grid.
  module.walk([&](GegluOp geglu) {
    auto gate = geglu.getGate().getDefiningOp<LinearOp>();
    auto up = geglu.getUp().getDefiningOp<LinearOp>();
    if (!gate || !up)
      return;
    WeightScheme &a = schemes[gate.getWeightAttr().getAttr()];
    WeightScheme &b = schemes[up.getWeightAttr().getAttr()];
    if (a == b)
      return;
    // Codes that are to stay as they are beside something else: floats can hold
    // either.
    if ((keepsCodes(gate) || keepsCodes(up)) && !isAsked(gate) &&
        !isAsked(up)) {
      a = b = WeightScheme();
      a.kind = b.kind = WeightScheme::F32;
    } else {
      a = b = finer(a, b);
    }
  });
  for (auto weight : module.getOps<WeightOp>()) {
    ArrayRef<int64_t> shape = weight.getTensorType().getShape();
    weight.setType(shape.size() == 2
                       ? typeOf(shape, schemes[weight.getSymNameAttr()],
                                &getContext())
                       : RankedTensorType::get(shape, Float32Type::get(&getContext())));
  }
  return llvm::Error::success();
}

void SparkQuantize::runOnOperation() {
  ModuleOp module = getOperation();
  if (llvm::Error error = readOptions()) {
    module.emitError() << llvm::toString(std::move(error));
    return signalPassFailure();
  }
  separateTiedHead();
  if (llvm::Error error = chooseSchemes()) {
    module.emitError() << llvm::toString(std::move(error));
    return signalPassFailure();
  }
  std::string words;
  for (auto weight : module.getOps<WeightOp>()) {
    RankedTensorType type = weight.getTensorType();
    if (type.getRank() != 2)
      continue;
    std::string name = describe(type);
    words = words.empty() || words == name ? name : "mixed";
  }
  if (!rules.empty() || (fallback && fallback->kind == WeightScheme::Grid))
    words = (keepCodes ? "stored codes, " : "") +
            (fallback ? policy.str() : "stored, " + rules);
  if (words.empty())
    words = "f32";
  if (llvm::any_of(module.getOps<WeightOp>(),
                   [](WeightOp w) { return bool(w.getTransforms()); }))
    words += ", rotated";
  for (auto config : module.getOps<ConfigOp>())
    config.setScheme(words);
}
