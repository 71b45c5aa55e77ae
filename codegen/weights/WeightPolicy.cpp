//===- WeightPolicy.cpp - Which tensor gets which grid --------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/weights/WeightPolicy.h"
#include "llvm/ADT/STLExtras.h"

namespace sparkc {

llvm::Error WeightPolicy::addRule(llvm::StringRef text) {
  // A glob may hold '=' in brackets; a scheme never does.
  auto [name, schemeText] = text.rsplit('=');
  if (name.empty() || schemeText.empty() || name.size() == text.size())
    return llvm::createStringError("expected NAME=SCHEME, found '" + text +
                                   "'");
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(name);
  if (!glob)
    return llvm::createStringError("bad pattern '" + name +
                                   "': " + llvm::toString(glob.takeError()));
  llvm::Expected<WeightScheme> parsed = WeightScheme::parse(schemeText);
  if (!parsed)
    return parsed.takeError();
  rules.push_back({name.str(), std::move(*glob), *parsed});
  return llvm::Error::success();
}

std::optional<WeightScheme>
WeightPolicy::ruleFor(llvm::StringRef name) const {
  for (const Rule &rule : llvm::reverse(rules))
    if (rule.glob.match(name))
      return rule.scheme;
  return std::nullopt;
}

WeightScheme WeightPolicy::schemeFor(llvm::StringRef name) const {
  return ruleFor(name).value_or(scheme);
}

llvm::Error
WeightPolicy::checkAllUsed(llvm::ArrayRef<std::string> names) const {
  for (const Rule &rule : rules)
    if (llvm::none_of(names, [&](const std::string &name) {
          return rule.glob.match(name);
        }))
      return llvm::createStringError("no tensor matches '" + rule.text + "'");
  return llvm::Error::success();
}

std::string WeightPolicy::str() const {
  std::string text = scheme.str();
  for (const Rule &rule : rules)
    text += ", " + rule.text + "=" + rule.scheme.str();
  return text;
}

} // namespace sparkc
