//===- TokenizerJson.cpp - Reading tokenizer.json -------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The vocabulary and the merges, nearly all of the file, go straight into the
/// spec as the parser meets them; what is left becomes a small JSON value and
/// is read from there. So a file of 10 MB takes no more memory than its text.
///
//===----------------------------------------------------------------------===//
#include "runtime/text/Json.h"
#include "runtime/text/TokenizerSpec.h"

using namespace sparkc;

namespace {

/// Builds a JSON value from parser events; refuses duplicate keys.
class ValueBuilder {
public:
  bool atTop() const { return open.empty(); }
  Json take() { return std::move(root); }
  void setKey(std::string &&text) { key = std::move(text); }

  /// Puts a value where it belongs; null if its key is a duplicate.
  Json *put(Json &&value) {
    if (open.empty()) {
      root = std::move(value);
      return &root;
    }
    Json &parent = *open.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    if (parent.contains(key))
      return nullptr;
    return &(parent[key] = std::move(value));
  }

  bool begin(Json &&value) {
    Json *place = put(std::move(value));
    if (place)
      open.push_back(place);
    return place;
  }

  void end() { open.pop_back(); }

private:
  Json root;
  std::vector<Json *> open; ///< each the last element of the one before
  std::string key;
};

/// Receives the parser's events (nlohmann's SAX interface).
class Reader {
public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  Reader(TokenizerSpec &spec, std::string &error) : spec(spec), error(error) {}

  Json rest() { return builder.take(); }

  bool null() { return scalar(Json()); }
  bool boolean(bool value) { return scalar(Json(value)); }
  bool number_integer(number_integer_t value) { return scalar(Json(value)); }
  bool number_float(number_float_t value, const string_t &) {
    return scalar(Json(value));
  }
  bool binary(binary_t &) { return fail("binary data"); }

  bool number_unsigned(number_unsigned_t value) {
    if (where != Vocab)
      return scalar(Json(value));
    if (value > kMaxTokenId)
      return fail("model.vocab: id " + std::to_string(value) + " is too large");
    spec.vocab.push_back({vocabKey, static_cast<uint32_t>(value)});
    return true;
  }

  bool string(string_t &value) {
    switch (where) {
    case Elsewhere:
      return scalar(Json(std::move(value)));
    case Vocab:
      return fail("model.vocab: an id is not a number");
    case Merges: {
      size_t space = value.find(' ');
      if (space == std::string::npos ||
          value.find(' ', space + 1) != std::string::npos)
        return fail("model.merges: entry " +
                    std::to_string(spec.merges.size()) +
                    " is not two tokens with a space between them");
      std::string_view text = value;
      return merge(text.substr(0, space), text.substr(space + 1));
    }
    case MergePair:
      pair.push_back(std::move(value));
      return pair.size() <= 2 || badPair();
    }
    return false;
  }

  bool start_object(size_t) {
    if (++depth > kMaxDepth)
      return fail("nested too deeply");
    if (where == Elsewhere && isModelMember("vocab")) {
      where = Vocab;
      return once(sawVocab, "vocab");
    }
    if (where != Elsewhere)
      return fail(whereName() + ": an object among its entries");
    return begin(Json::object());
  }

  bool key(string_t &value) {
    if (where == Vocab) {
      vocabKey = intern(value);
      return true;
    }
    if (depth == 1) {
      topKey = value;
      modelKey.clear();
    } else if (depth == 2) {
      modelKey = value;
    }
    builder.setKey(std::move(value));
    return true;
  }

  bool end_object() {
    --depth;
    if (where == Vocab)
      where = Elsewhere;
    else
      builder.end();
    return true;
  }

  bool start_array(size_t) {
    if (++depth > kMaxDepth)
      return fail("nested too deeply");
    if (where == Elsewhere && isModelMember("merges")) {
      where = Merges;
      return once(sawMerges, "merges");
    }
    if (where == Merges) {
      where = MergePair;
      pair.clear();
      return true;
    }
    if (where != Elsewhere)
      return fail(whereName() + ": an array among its entries");
    return begin(Json::array());
  }

  bool end_array() {
    --depth;
    if (where == MergePair) {
      where = Merges;
      return pair.size() == 2 ? merge(pair[0], pair[1]) : badPair();
    }
    if (where == Merges)
      where = Elsewhere;
    else
      builder.end();
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const Json::exception &) {
    return fail("not JSON: error at byte " + std::to_string(position));
  }

private:
  static constexpr unsigned kMaxDepth = 64;
  enum Place { Elsewhere, Vocab, Merges, MergePair };

  bool fail(const std::string &message) {
    error = message;
    return false;
  }

  bool badPair() {
    return fail("model.merges: entry " + std::to_string(spec.merges.size()) +
                " is not two strings");
  }

  std::string whereName() const {
    return where == Vocab ? "model.vocab" : "model.merges";
  }

  bool isModelMember(const char *name) const {
    return depth == 3 && topKey == "model" && modelKey == name;
  }

  bool once(bool &seen, const char *name) {
    if (seen)
      return fail("duplicate key '" + std::string(name) + "'");
    return seen = true;
  }

  bool scalar(Json &&value) {
    if (where != Elsewhere)
      return fail(whereName() + (where == Vocab
                                     ? ": an id is not a number in range"
                                     : ": an entry is not a string"));
    return builder.put(std::move(value)) || duplicate();
  }

  bool begin(Json &&value) {
    return builder.begin(std::move(value)) || duplicate();
  }

  bool duplicate() { return fail("duplicate key in '" + topKey + "'"); }

  PoolString intern(std::string_view text) {
    PoolString s{static_cast<uint32_t>(spec.pool.size()),
                 static_cast<uint32_t>(text.size())};
    spec.pool.append(text);
    return s;
  }

  bool merge(std::string_view left, std::string_view right) {
    if (spec.merges.size() >= kMaxTokenId)
      return fail("model.merges: too many entries");
    PoolString l = intern(left), r = intern(right);
    spec.merges.push_back({l, r});
    return true;
  }

  TokenizerSpec &spec;
  std::string &error;
  ValueBuilder builder;
  Place where = Elsewhere;
  unsigned depth = 0;
  bool sawVocab = false, sawMerges = false;
  std::string topKey, modelKey;
  PoolString vocabKey;
  std::vector<std::string> pair;
};

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

bool sparkc::readTokenizerJson(std::string_view json, TokenizerSpec &spec,
                               std::string &error) {
  if (json.size() > (1u << 30)) {
    error = "larger than 1 GiB";
    return false;
  }
  Reader reader(spec, error);
  if (!Json::sax_parse(json.begin(), json.end(), &reader))
    return false;
  return Interpreter(spec, error).run(reader.rest());
}
