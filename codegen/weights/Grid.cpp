//===- Grid.cpp - Names of weight grids -----------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Grid.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include <cassert>

namespace sparkc {

Layout GridSpec::layout() const {
  assert(form != ScaleForm::Symmetric && (!symmetric || form == ScaleForm::Zero));
  if (std::optional<Layout> layout = layoutOf(
          bits, symmetric ? ScaleForm::Symmetric : form))
    return *layout;
  llvm_unreachable("no layout for this grid");
}

GridSpec GridSpec::of(Layout layout, int64_t group) {
  ScaleForm form = scaleForm(layout);
  return {int(bitsPerWeight(layout)), int(group), form == ScaleForm::Symmetric,
          isPlain(form) ? ScaleForm::Zero : form};
}

namespace {
/// Schemes by the names of GGUF's types.
struct NamedGrid {
  const char *name;
  GridSpec grid;
};
} // namespace

static constexpr NamedGrid namedGrids[] = {
    {"q4_0", {4, 32, true}},
    {"q4_1", {4, 32, false, ScaleForm::Minimum}},
    {"q5_0", {5, 32, true}},
    {"q5_1", {5, 32, false, ScaleForm::Minimum}},
    {"q8_0", {8, 32, true}},
    {"q4k", {4, 32, false, ScaleForm::SuperMinimum}},
    {"q5k", {5, 32, false, ScaleForm::SuperMinimum}},
    {"q6k", {6, 16, false, ScaleForm::Super}},
};

Layout WeightScheme::tileLayout() const {
  switch (kind) {
  case F32:
    return Layout::Tile16F32;
  case BF16:
    return Layout::Tile16BF16;
  case Grid:
    return grid.layout();
  }
  llvm_unreachable("unknown scheme");
}

llvm::Expected<WeightScheme> WeightScheme::parse(llvm::StringRef text) {
  WeightScheme scheme;
  for (const NamedGrid &named : namedGrids)
    if (text == named.name) {
      scheme.grid = named.grid;
      return scheme;
    }
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, ':');
  scheme.grid.bits = llvm::StringSwitch<int>(parts[0])
                         .Case("q4", 4)
                         .Case("q5", 5)
                         .Case("q6", 6)
                         .Case("q8", 8)
                         .Default(0);
  if (!scheme.grid.bits) {
    if (text == "f32" || text == "bf16") {
      scheme.kind = text == "f32" ? F32 : BF16;
      scheme.grid = {};
      return scheme;
    }
    return llvm::createStringError(
        "unknown weight scheme '" + text +
        "'; expected f32, bf16, q4, q5, q6 or q8, grids also with :g32, :g64, "
        ":g128 and :sym; or q4k, q5k, q6k, q4_0, q4_1, q5_0, q5_1, q8_0");
  }
  bool hasGroup = false;
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_front()) {
    if (part == "sym" && !scheme.grid.symmetric) {
      scheme.grid.symmetric = true;
      continue;
    }
    if (part == "sym" || (hasGroup && part.starts_with("g")))
      return llvm::createStringError("second ':" + part +
                                     "' in weight scheme '" + text + "'");
    if (!part.consume_front("g"))
      return llvm::createStringError("unknown part ':" + part +
                                     "' in weight scheme '" + text +
                                     "'; expected :g32, :g64, :g128 or :sym");
    hasGroup = true;
    if (part != "32" && part != "64" && part != "128")
      return llvm::createStringError("group of '" + part +
                                     "' in weight scheme '" + text +
                                     "'; expected 32, 64 or 128");
    part.getAsInteger(10, scheme.grid.group);
  }
  return scheme;
}

std::string WeightScheme::str() const {
  if (kind != Grid)
    return kind == F32 ? "f32" : "bf16";
  if (grid.form != ScaleForm::Zero)
    for (const NamedGrid &named : namedGrids)
      if (grid == named.grid)
        return named.name;
  return ("q" + llvm::Twine(grid.bits) + ":g" + llvm::Twine(grid.group) +
          (grid.symmetric ? ":sym" : ""))
      .str();
}

} // namespace sparkc
