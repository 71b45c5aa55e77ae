//===- WeightPolicy.h - Which tensor gets which grid ------------*- C++ -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef SPARKC_CODEGEN_WEIGHTS_WEIGHTPOLICY_H
#define SPARKC_CODEGEN_WEIGHTS_WEIGHTPOLICY_H

#include "codegen/weights/Grid.h"
#include "llvm/Support/GlobPattern.h"

#include <optional>

namespace sparkc {

/// A scheme for all tensors, and rules for some: a glob over logical names
/// (without ".weight"; "lm_head" also where it is tied) and a scheme. The last
/// rule that matches a name decides.
class WeightPolicy {
public:
  explicit WeightPolicy(WeightScheme scheme = {}) : scheme(scheme) {}

  /// Adds a rule as `--weights-for` takes it: "lm_head=q6", "*.gate_proj=q5".
  llvm::Error addRule(llvm::StringRef text);

  WeightScheme schemeFor(llvm::StringRef name) const;
  /// What a rule says of a name; none where no rule matches it.
  std::optional<WeightScheme> ruleFor(llvm::StringRef name) const;
  /// An error for the first rule whose glob matches none of `names`.
  llvm::Error checkAllUsed(llvm::ArrayRef<std::string> names) const;
  /// In words: "q4:g64, lm_head=q6:g64".
  std::string str() const;

private:
  struct Rule {
    std::string text;
    llvm::GlobPattern glob;
    WeightScheme scheme;
  };
  WeightScheme scheme;
  std::vector<Rule> rules;
};

} // namespace sparkc

#endif // SPARKC_CODEGEN_WEIGHTS_WEIGHTPOLICY_H
