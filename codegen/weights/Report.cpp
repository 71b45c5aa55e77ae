//===- Report.cpp - What a compile made of the weights --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
using namespace sparkc;

WeightReport WeightReport::of(mlir::ModuleOp module,
                              std::vector<PackedTensor> packs) {
  WeightReport report;
  for (auto config : module.getOps<spark::ConfigOp>())
    report.scheme = config.getSchemeInWords();
  for (auto info : module.getOps<step::DescriptorOp>()) {
    report.bytesPerStep = info.getBytesPerStep();
    report.linearWeights = info.getLinearWeights();
    report.payloadBytes = info.getPayload();
  }
  report.packs = std::move(packs);
  return report;
}

double WeightReport::bitsPerWeight() const {
  return linearWeights ? 8.0 * bytesPerStep / linearWeights : 0;
}

static double bitsOf(const PackedSource &source) {
  return 8.0 * source.bytes / (double(source.rows) * source.cols);
}

llvm::json::Value WeightReport::json() const {
  llvm::json::Array tensors;
  for (const PackedTensor &pack : packs)
    for (const PackedSource &source : pack.sources) {
      llvm::json::Value sqnr = nullptr;
      if (source.sqnr)
        sqnr = *source.sqnr;
      tensors.push_back(llvm::json::Object{
          {"name", source.name},
          {"pack", pack.name},
          {"grid", source.scheme},
          {"rows", source.rows},
          {"cols", source.cols},
          {"bytes", int64_t(source.bytes)},
          {"bits_per_weight", bitsOf(source)},
          {"sqnr_db", std::move(sqnr)},
      });
    }
  llvm::json::Object all{
      {"scheme", scheme},
      {"bits_per_weight", bitsPerWeight()},
      {"bytes_per_token", bytesPerStep},
      {"linear_weights", linearWeights},
      {"payload_bytes", payloadBytes},
      {"tensors", std::move(tensors)},
  };
  if (certificate)
    all["certificate"] = llvm::json::Object(*certificate);
  return all;
}

namespace {
/// Matrices of one kind and one grid, from all layers.
struct Kind {
  std::string name, scheme;
  int64_t count = 0;
  double weights = 0, bytes = 0, sqnr = 0;
  const PackedSource *worst = nullptr;
};
} // namespace

/// "layers.3.down_proj" -> "*.down_proj": the layers' matrices of one kind.
static std::string kindName(llvm::StringRef name) {
  size_t dot = name.rfind('.');
  return dot == llvm::StringRef::npos ? name.str()
                                      : ("*" + name.substr(dot)).str();
}

std::string WeightReport::table() const {
  std::vector<Kind> kinds;
  auto kindOf = [&](const PackedSource &source) -> Kind & {
    std::string name = kindName(source.name);
    for (Kind &kind : kinds)
      if (kind.name == name && kind.scheme == source.scheme)
        return kind;
    Kind kind;
    kind.name = name;
    kind.scheme = source.scheme;
    return kinds.emplace_back(kind);
  };
  for (const PackedTensor &pack : packs)
    for (const PackedSource &source : pack.sources) {
      if (pack.layout == Layout::VectorF32)
        continue;
      Kind &kind = kindOf(source);
      ++kind.count;
      kind.weights += double(source.rows) * source.cols;
      kind.bytes += source.bytes;
      if (!source.sqnr)
        continue;
      kind.sqnr += *source.sqnr;
      if (!kind.worst || *source.sqnr < *kind.worst->sqnr)
        kind.worst = &source;
    }
  std::string text;
  llvm::raw_string_ostream os(text);
  auto cell = [](llvm::StringRef s, int width) {
    return llvm::left_justify(s, width);
  };
  os << cell("weights", 16) << cell("grid", 14)
     << "    n      MB   bits   SQNR  worst\n";
  for (const Kind &kind : kinds) {
    os << cell(kind.name, 16) << cell(kind.scheme, 14)
       << llvm::format("%5d %7.2f %6.3f", int(kind.count), kind.bytes / 1e6,
                       8 * kind.bytes / kind.weights);
    if (kind.worst)
      os << llvm::format(" %6.2f  ", kind.sqnr / kind.count)
         << kind.worst->name
         << llvm::format(" %.2f", *kind.worst->sqnr);
    os << "\n";
  }
  os << llvm::format("%.3f bits a weight, %.2f MB a token", bitsPerWeight(),
                     bytesPerStep / 1e6)
     << " (" << scheme << ")\n";
  if (certificate)
    os << "measured: " << certificate->getString("summary").value_or("") << "\n";
  return text;
}

std::string WeightReport::text() const {
  return llvm::formatv("{0:2}\n", json()).str();
}
