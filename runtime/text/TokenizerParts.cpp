//===- TokenizerParts.cpp - The small parts of tokenizer.json -------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/TokenizerParts.h"

using namespace sparkc;

namespace {

/// Reads what is left of the file once vocabulary and merges are out.
class Interpreter {
public:
  Interpreter(TokenizerSpec &spec, std::string &error)
      : spec(spec), error(error) {}

  bool run(const Json &root) {
    if (!root.is_object())
      return fail("not an object");
    for (const auto &[key, value] : root.items()) {
      bool good;
      if (key == "model")
        good = model(value);
      else if (key == "added_tokens")
        good = addedTokens(value);
      else if (key == "normalizer")
        good = normalizer(value);
      else if (key == "pre_tokenizer")
        good = preTokenizer(value);
      else if (key == "post_processor")
        good = postProcessor(value);
      else if (key == "decoder")
        good = decoder(value);
      else
        // Truncation and padding are settings of a caller that were saved.
        good = key == "version" || key == "truncation" || key == "padding" ||
               fail("unknown key '" + key + "'");
      if (!good)
        return false;
    }
    if (!sawModel)
      return fail("no model");
    return sawByteLevel ||
           fail("pre_tokenizer: not byte-level (no ByteLevel step)");
  }

private:
  bool fail(const std::string &message) {
    error = message;
    return false;
  }

  static bool isOff(const Json &value) {
    return value.is_null() || value == false || value == "" ||
           (value.is_number() && value == 0);
  }

  bool model(const Json &value) {
    sawModel = true;
    if (!value.is_object())
      return fail("model: not an object");
    for (const auto &[key, v] : value.items()) {
      if (key == "type") {
        if (v != "BPE")
          return fail("model.type: " + shown(v) + " is not \"BPE\"");
      } else if (key == "dropout" || key == "continuing_subword_prefix" ||
                 key == "end_of_word_suffix") {
        if (!isOff(v))
          return fail("model." + key + ": " + shown(v) + " is not supported");
      } else if (key == "ignore_merges") {
        if (!v.is_boolean())
          return fail("model.ignore_merges: not true or false");
        spec.ignoreMerges = v.get<bool>();
      } else if (key != "unk_token" && key != "fuse_unk" &&
                 key != "byte_fallback") {
        // Those three say what to do about unknown characters; a byte-level
        // vocabulary, which has all 256 bytes, knows none.
        return fail("model." + key + ": " +
                    (key == "vocab" || key == "merges" ? "of the wrong type"
                                                       : "unknown key"));
      }
    }
    return true;
  }

  bool addedTokens(const Json &value) {
    if (value.is_null())
      return true;
    if (!value.is_array())
      return fail("added_tokens: not an array");
    for (const Json &entry : value) {
      std::string name =
          "added_tokens[" + std::to_string(spec.added.size()) + "]";
      if (!entry.is_object())
        return fail(name + ": not an object");
      AddedToken token;
      bool sawId = false, sawNormalized = false;
      for (const auto &[key, v] : entry.items()) {
        bool *flag = key == "special"       ? &token.special
                     : key == "normalized"  ? &token.normalized
                     : key == "lstrip"      ? &token.lstrip
                     : key == "rstrip"      ? &token.rstrip
                     : key == "single_word" ? &token.singleWord
                                            : nullptr;
        if (flag) {
          if (!v.is_boolean())
            return fail(name + "." + key + ": not true or false");
          *flag = v.get<bool>();
          sawNormalized |= flag == &token.normalized;
        } else if (key == "content") {
          if (!v.is_string() || v == "")
            return fail(name + ".content: not a string of characters");
          token.text = v.get<std::string>();
        } else if (key == "id") {
          if (!readTokenId(v, token.id))
            return fail(name + ".id: " + shown(v) + " is not a token id");
          sawId = true;
        } else {
          return fail(name + ": unknown key '" + key + "'");
        }
      }
      if (!sawId || token.text.empty())
        return fail(name + ": no " + (sawId ? "content" : "id"));
      if (!sawNormalized)
        token.normalized = !token.special;
      spec.added.push_back(std::move(token));
    }
    return true;
  }

  bool normalizer(const Json &value) {
    if (value.is_null())
      return true;
    if (typeOf(value) == "Sequence" && value.contains("normalizers") &&
        value["normalizers"].is_array() && value["normalizers"].empty())
      return true;
    return fail("normalizer: " + typeOf(value) + " is not supported");
  }

  bool preTokenizer(const Json &value) {
    if (value.is_null())
      return true;
    if (sawByteLevel)
      return fail("pre_tokenizer: a step after ByteLevel is not supported");
    std::string type = typeOf(value);
    if (type == "Sequence") {
      if (!value.contains("pretokenizers") ||
          !value["pretokenizers"].is_array())
        return fail("pre_tokenizer: a Sequence without steps");
      for (const Json &step : value["pretokenizers"])
        if (!preTokenizer(step))
          return false;
      return true;
    }
    if (type == "Split")
      return split(value);
    if (type != "ByteLevel")
      return fail("pre_tokenizer: " + type + " is not supported");
    for (const auto &[key, v] : value.items()) {
      if (key == "add_prefix_space" && v != false)
        return fail("pre_tokenizer: add_prefix_space is not supported");
      if (key != "type" && key != "add_prefix_space" && key != "use_regex" &&
          key != "trim_offsets")
        return fail("pre_tokenizer: unknown key '" + key + "' of ByteLevel");
    }
    if (!value.contains("add_prefix_space"))
      return fail("pre_tokenizer: add_prefix_space is not supported");
    if (!value.contains("use_regex") || value["use_regex"] != false)
      spec.splits.push_back({"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                             " ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
                             false});
    return sawByteLevel = true;
  }

  bool split(const Json &value) {
    SplitSpec out;
    bool sawPattern = false, sawBehavior = false;
    for (const auto &[key, v] : value.items()) {
      if (key == "pattern") {
        if (!v.is_object() || v.size() != 1 || !v.begin()->is_string())
          return fail("pre_tokenizer: Split without a pattern");
        const std::string kind = v.begin().key();
        if (kind != "Regex" && kind != "String")
          return fail("pre_tokenizer: pattern '" + kind + "' is not supported");
        out.pattern = v.begin()->get<std::string>();
        out.literal = kind == "String";
        sawPattern = true;
      } else if (key == "behavior") {
        if (v != "Isolated")
          return fail("pre_tokenizer: behavior " + shown(v) +
                      " is not supported");
        sawBehavior = true;
      } else if (key == "invert") {
        // What matches and what does not are pieces alike when isolated.
        if (!v.is_boolean())
          return fail("pre_tokenizer: invert is not true or false");
      } else if (key != "type") {
        return fail("pre_tokenizer: unknown key '" + key + "' of Split");
      }
    }
    if (!sawPattern || !sawBehavior)
      return fail("pre_tokenizer: Split without a pattern or a behavior");
    spec.splits.push_back(std::move(out));
    return true;
  }

  bool postProcessor(const Json &value) {
    if (value.is_null())
      return true;
    std::string type = typeOf(value);
    if (type == "ByteLevel") // moves offsets, not ids
      return true;
    if (type == "Sequence") {
      if (!value.contains("processors") || !value["processors"].is_array())
        return fail("post_processor: a Sequence without steps");
      for (const Json &step : value["processors"])
        if (!postProcessor(step))
          return false;
      return true;
    }
    if (type != "TemplateProcessing")
      return fail("post_processor: " + type + " is not supported");
    if (!spec.prefix.empty() || !spec.suffix.empty())
      return fail("post_processor: two templates are not supported");
    return templateProcessing(value);
  }

  bool templateProcessing(const Json &value) {
    if (!value.contains("single") || !value["single"].is_array())
      return fail("post_processor: a template without 'single'");
    bool sawText = false;
    for (const Json &item : value["single"]) {
      if (!item.is_object() || item.size() != 1)
        return fail("post_processor: an item of 'single' is malformed");
      const Json &body = *item.begin();
      if (item.begin().key() == "Sequence") {
        if (sawText)
          return fail("post_processor: the text stands twice in 'single'");
        sawText = true;
        continue;
      }
      if (item.begin().key() != "SpecialToken" || !body.is_object() ||
          !body.contains("id") || !body["id"].is_string())
        return fail("post_processor: an item of 'single' is malformed");
      const std::string name = body["id"].get<std::string>();
      const Json *ids = find(value, {"special_tokens", name, "ids"});
      if (!ids || !ids->is_array())
        return fail("post_processor: no ids for '" + name + "'");
      for (const Json &id : *ids) {
        uint32_t number;
        if (!readTokenId(id, number))
          return fail("post_processor: " + shown(id) + " is not a token id");
        (sawText ? spec.suffix : spec.prefix).push_back(number);
      }
    }
    return sawText || fail("post_processor: the text is not in 'single'");
  }

  bool decoder(const Json &value) {
    std::string type = typeOf(value);
    return value.is_null() || type == "ByteLevel" ||
           fail("decoder: " + type + " is not supported");
  }

  TokenizerSpec &spec;
  std::string &error;
  bool sawModel = false, sawByteLevel = false;
};

} // namespace

bool sparkc::readTokenizerParts(const Json &root, TokenizerSpec &spec,
                                std::string &error) {
  return Interpreter(spec, error).run(root);
}
