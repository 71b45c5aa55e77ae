//===- Certificate.cpp - What a build is worth, measured ------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sparkc/Certificate.h"
#include "codegen/calibrate/CodeFile.h"
#include "codegen/weights/WeightFile.h"
#include "dialect/import/ImportError.h"
#include "tools/sparkc-eval/Evaluation.h"
#include "tools/sparkc/CalibrationText.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace sparkc;

std::string Certificate::summary() const {
  return figures.getString("summary").value_or("").str();
}

static std::string summaryOf(const eval::Result &result,
                             const std::string &text) {
  const eval::Summary &s = result.scores;
  std::string line;
  llvm::raw_string_ostream(line)
      << llvm::format("KL %.5f, perplexity %+.2f %% (%.3f to %.3f), top-1 %.3f",
                      s.kl.value, 100 * s.increase.value,
                      s.referencePerplexity.value, s.perplexity.value,
                      s.top1.value)
      << ", " << s.tokens << " tokens of " << text << ", against "
      << result.referenceScheme;
  return line;
}

llvm::Expected<Certificate> sparkc::certify(const std::string &model,
                                            const std::string &reference,
                                            const CertifyOptions &options) {
  auto text = llvm::MemoryBuffer::getFile(options.text, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!text)
    return importError(options.text, text.getError().message());
  eval::Options wanted;
  wanted.model = model;
  wanted.reference = reference;
  (holdsTokens((*text)->getBuffer()) ? wanted.tokens : wanted.text) =
      options.text;
  wanted.windows = options.windows;
  wanted.greedy = 0;
  wanted.quiet = options.quiet;
  eval::Result result;
  std::string why;
  if (!eval::evaluate(wanted, result, why))
    return llvm::createStringError("certificate: " + why);
  auto parsed = llvm::json::parse(eval::jsonText(wanted, result));
  if (!parsed)
    return parsed.takeError();
  Certificate certificate{std::move(*parsed->getAsObject())};
  llvm::json::Object &figures = certificate.figures;
  // Of the two builds' files nothing is left that a path would name.
  figures.erase("model");
  figures.erase("reference");
  figures.erase("greedy_agreement");
  figures.erase("greedy_stderr");
  const std::string name = llvm::sys::path::filename(options.text).str();
  llvm::SmallString<256> weights(model);
  llvm::sys::path::replace_extension(weights, ".weights");
  auto file = WeightFileReader::open(weights);
  if (!file)
    return file.takeError();
  figures["text"] = llvm::json::fixUTF8(name);
  figures["text_digest"] =
      llvm::toHex(digestOf((*text)->getBuffer()), /*LowerCase=*/true);
  figures["weights_digest"] =
      llvm::toHex(llvm::ArrayRef((*file)->header().digest), /*LowerCase=*/true);
  figures["compiler"] = "sparkc " SPARKC_VERSION;
  figures["summary"] = llvm::json::fixUTF8(summaryOf(result, name));
  const double kl = result.scores.kl.value;
  if (options.maxKl && !(kl <= *options.maxKl))
    return importError(
        options.text,
        llvm::formatv("the mean KL is {0:f6}, above the --max-kl of {1:f6}; "
                      "nothing is written",
                      kl, *options.maxKl)
            .str());
  return certificate;
}
