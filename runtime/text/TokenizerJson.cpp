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
#include "runtime/text/TokenizerParts.h"

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
  return readTokenizerParts(reader.rest(), spec, error);
}
