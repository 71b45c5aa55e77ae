//===- PreTokenizer.cpp - Splitting text before merging -------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/RegexSyntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

using namespace sparkc;

namespace {
struct Free {
  void operator()(pcre2_code *p) const { pcre2_code_free(p); }
  void operator()(pcre2_compile_context *p) const {
    pcre2_compile_context_free(p);
  }
  void operator()(pcre2_match_data *p) const { pcre2_match_data_free(p); }
};
using Pattern = std::unique_ptr<pcre2_code, Free>;
} // namespace

struct PreTokenizer::Patterns {
  std::vector<Pattern> list;
};

PreTokenizer::PreTokenizer() : patterns(std::make_unique<Patterns>()) {}
PreTokenizer::~PreTokenizer() = default;

static std::string pcreMessage(int code) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(code, text, sizeof text) < 0)
    return "PCRE2 error " + std::to_string(code);
  return reinterpret_cast<const char *>(text);
}

bool PreTokenizer::compile(const std::vector<SplitSpec> &splits,
                           std::string &error) {
  std::unique_ptr<pcre2_compile_context, Free> context(
      pcre2_compile_context_create(nullptr));
  if (!context)
    throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  patterns->list.clear();
  for (const SplitSpec &split : splits) {
    std::string source = split.pattern;
    if (!split.literal && !translateRegex(split.pattern, source, error))
      return false;
    const uint32_t options =
        PCRE2_UTF |
        (split.literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
    int code;
    PCRE2_SIZE offset;
    Pattern pattern(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()),
                                  source.size(), options, &code, &offset,
                                  context.get()));
    if (!pattern) {
      error = "a pattern does not compile: " + pcreMessage(code);
      return false;
    }
    // Where there is no JIT compiler, or no memory it may write code to,
    // matches are interpreted: slower, and the same.
    pcre2_jit_compile(pattern.get(), PCRE2_JIT_COMPLETE);
    patterns->list.push_back(std::move(pattern));
  }
  return true;
}

/// Matches `pattern` in `text` from `from` on; a PCRE2 result.
static int match(const pcre2_code *pattern, std::string_view text, size_t from,
                 pcre2_match_data *data) {
  auto run = [&](uint32_t options) {
    return pcre2_match(pattern, reinterpret_cast<PCRE2_SPTR>(text.data()),
                       text.size(), from, PCRE2_NO_UTF_CHECK | options, data,
                       nullptr);
  };
  int result = run(0);
  // The interpreter keeps its state on the heap and gets further.
  return result == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : result;
}

/// Appends to `ends` the ends of the pieces of `text`, plus `base`.
static bool splitPiece(const pcre2_code *pattern, std::string_view text,
                       size_t base, pcre2_match_data *data,
                       std::vector<size_t> &ends, std::string &error) {
  const PCRE2_SIZE *found = pcre2_get_ovector_pointer(data);
  size_t from = 0, done = 0;
  while (from < text.size()) {
    int result = match(pattern, text, from, data);
    if (result == PCRE2_ERROR_NOMATCH)
      break;
    if (result < 0) {
      error = "the text cannot be split: " + pcreMessage(result);
      return false;
    }
    const size_t begin = found[0], end = found[1];
    if (begin > done)
      ends.push_back(base + begin);
    if (end > begin)
      ends.push_back(base + end);
    done = end;
    // After an empty match go on behind the next character.
    from = end;
    if (end == begin)
      do
        ++from;
      while (from < text.size() && (text[from] & 0xc0) == 0x80);
  }
  if (done < text.size())
    ends.push_back(base + text.size());
  return true;
}

bool PreTokenizer::split(std::string_view text, std::vector<size_t> &ends,
                         std::string &error) const {
  ends.clear();
  if (text.empty())
    return true;
  ends.push_back(text.size());
  // Room for one pair of offsets: patterns have no captures.
  std::unique_ptr<pcre2_match_data, Free> data(
      pcre2_match_data_create(1, nullptr));
  if (!data)
    throw std::bad_alloc();
  std::vector<size_t> before;
  for (const Pattern &pattern : patterns->list) {
    before.swap(ends);
    ends.clear();
    size_t begin = 0;
    for (size_t end : before) {
      if (!splitPiece(pattern.get(), text.substr(begin, end - begin), begin,
                      data.get(), ends, error))
        return false;
      begin = end;
    }
  }
  return true;
}
