//===- Tokenizer.cpp - Text to token ids ----------------------------------===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Tokenizer.h"
#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/PatternView.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace sparkc;

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// A token's name for an error message.
static std::string quoted(std::string_view name) {
  std::string out = "'";
  for (char c : name.substr(0, 40))
    out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  return out + (name.size() > 40 ? "...'" : "'");
}

Tokenizer::Token *Tokenizer::place(uint32_t id, std::string_view what,
                                   std::string &error) {
  if (id >= tokens.size())
    tokens.resize(id + 1);
  if (!tokens[id].present)
    return &tokens[id];
  error = "id " + std::to_string(id) + " of " + quoted(what) +
          " is already another token's";
  return nullptr;
}

bool Tokenizer::addVocab(std::string &error) {
  if (spec.vocab.empty()) {
    error = "model.vocab: no tokens";
    return false;
  }
  uint32_t largest = 0;
  for (const TokenizerSpec::VocabEntry &entry : spec.vocab)
    largest = std::max(largest, entry.id);
  tokens.reserve(largest + 1);
  bySpelling.reserve(spec.vocab.size() + spec.added.size());
  bytes.reserve(spec.pool.size());
  for (const TokenizerSpec::VocabEntry &entry : spec.vocab) {
    std::string_view spelling = spec.str(entry.spelling);
    Token *token = place(entry.id, spelling, error);
    if (!token)
      return false;
    if (!bySpelling.insert(spelling, entry.id)) {
      error = "model.vocab: " + quoted(spelling) + " stands there twice";
      return false;
    }
    token->present = true;
    token->begin = static_cast<uint32_t>(bytes.size());
    appendSpelledBytes(bytes, spelling);
    token->size = static_cast<uint32_t>(bytes.size()) - token->begin;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const uint32_t *id = bySpelling.find(spellByte(static_cast<uint8_t>(byte)));
    if (!id) {
      error = "model.vocab: no token for byte " + std::to_string(byte);
      return false;
    }
    byteTokens[byte] = *id;
  }
  return true;
}

bool Tokenizer::addAdded(std::string &error) {
  for (const AddedToken &added : spec.added) {
    if (added.singleWord) {
      error = "added token " + quoted(added.text) +
              ": single_word is not supported";
      return false;
    }
    const uint32_t *known = bySpelling.find(added.text);
    Token *token;
    if (known) {
      if (*known != added.id) {
        error = "added token " + quoted(added.text) + " has id " +
                std::to_string(added.id) + ", in the vocabulary " +
                std::to_string(*known);
        return false;
      }
      token = &tokens[added.id];
    } else {
      // No spelling: its name as it stands, even where that spells bytes.
      token = place(added.id, added.text, error);
      if (!token)
        return false;
      bySpelling.insert(added.text, added.id);
      token->begin = static_cast<uint32_t>(bytes.size());
      token->size = static_cast<uint32_t>(added.text.size());
      token->present = true;
      bytes += added.text;
    }
    token->special = added.special;
    (added.normalized ? normalizedAdded : plainAdded).add(added);
  }
  return true;
}

bool Tokenizer::addMerges(std::string &error) {
  merges.reserve(spec.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    std::string_view left = spec.str(spec.merges[rank].left);
    std::string_view right = spec.str(spec.merges[rank].right);
    joined.assign(left).append(right);
    const uint32_t *l = bySpelling.find(left), *r = bySpelling.find(right),
                   *result = bySpelling.find(joined);
    if (!l || !r || !result) {
      error = "model.merges: entry " + std::to_string(rank) + ": " +
              quoted(!l   ? left
                     : !r ? right
                          : joined) +
              " is not in the vocabulary";
      return false;
    }
    merges.insert({*l, *r, static_cast<uint32_t>(rank), *result});
  }
  return true;
}

bool Tokenizer::addConfig(const TokenizerConfig &config,
                          const GenerationConfig &generation,
                          std::string &error) {
  auto idOf = [&](const std::string &name, const char *key, int32_t &id) {
    id = addedToken(name);
    if (id < 0)
      if (const uint32_t *known = bySpelling.find(name))
        id = static_cast<int32_t>(*known);
    if (id < 0)
      error = std::string(key) + ": there is no token " + quoted(name);
    return id >= 0;
  };
  if (config.bos) {
    if (!idOf(*config.bos, "bos_token", bosId))
      return false;
  } else if (generation.bos) {
    bosId = static_cast<int32_t>(*generation.bos);
  }
  int32_t eos = -1;
  if (config.eos && !idOf(*config.eos, "eos_token", eos))
    return false;
  if (eos >= 0)
    eosIds.push_back(eos);
  for (uint32_t id : generation.eos)
    if (!isEos(static_cast<int32_t>(id)))
      eosIds.push_back(static_cast<int32_t>(id));

  prefix.assign(spec.prefix.begin(), spec.prefix.end());
  suffix.assign(spec.suffix.begin(), spec.suffix.end());
  // What tokenizer_config.json says of BOS and EOS overrules the file's own
  // template.
  auto overrule = [&](std::optional<bool> wanted, int32_t id, const char *key,
                      std::vector<int32_t> &around, bool front) {
    if (!wanted)
      return true;
    if (*wanted && id < 0) {
      error = std::string(key) + " is set, but no token is named";
      return false;
    }
    around.erase(std::remove(around.begin(), around.end(), id), around.end());
    if (*wanted)
      around.insert(front ? around.begin() : around.end(), id);
    return true;
  };
  if (!overrule(config.addBos, bosId, "add_bos_token", prefix, true) ||
      !overrule(config.addEos, eos, "add_eos_token", suffix, false))
    return false;
  for (const std::vector<int32_t> *list : {&prefix, &suffix, &eosIds})
    for (int32_t id : *list)
      if (!has(id)) {
        error = "there is no token " + std::to_string(id) +
                ", which is to begin or end a text";
        return false;
      }
  if (bosId >= 0 && !has(bosId)) {
    error = "bos_token_id: there is no token " + std::to_string(bosId);
    return false;
  }
  return true;
}

std::unique_ptr<Tokenizer> Tokenizer::build(TokenizerSpec spec,
                                            const TokenizerConfig &config,
                                            const GenerationConfig &generation,
                                            std::string &error) {
  std::unique_ptr<Tokenizer> t(new Tokenizer);
  t->spec = std::move(spec);
  if (!t->preTokenizer.compile(t->spec.splits, error) || !t->addVocab(error) ||
      !t->addAdded(error) || !t->addMerges(error) ||
      !t->addConfig(config, generation, error))
    return nullptr;
  if (t->spec.ignoreMerges) {
    t->byBytes.reserve(t->tokens.size());
    for (size_t id = 0; id < t->tokens.size(); ++id)
      if (t->tokens[id].present && !t->tokens[id].special)
        t->byBytes.insert(t->bytesOf(static_cast<int32_t>(id)),
                          static_cast<uint32_t>(id));
  }
  t->bySpelling = {};
  t->spec.vocab = {};
  t->spec.merges = {};
  t->spec.pool = {};
  return t;
}

//===----------------------------------------------------------------------===//
// Using
//===----------------------------------------------------------------------===//

bool Tokenizer::has(int32_t id) const {
  return id >= 0 && size_t(id) < tokens.size() && tokens[id].present;
}

std::string_view Tokenizer::bytesOf(int32_t id) const {
  if (!has(id))
    return {};
  return std::string_view(bytes).substr(tokens[id].begin, tokens[id].size);
}

bool Tokenizer::isSpecial(int32_t id) const {
  return has(id) && tokens[id].special;
}

bool Tokenizer::isEos(int32_t id) const {
  return std::find(eosIds.begin(), eosIds.end(), id) != eosIds.end();
}

int32_t Tokenizer::addedToken(std::string_view name) const {
  for (const AddedToken &token : spec.added)
    if (token.text == name)
      return static_cast<int32_t>(token.id);
  return -1;
}

bool Tokenizer::encodeText(std::string_view text, std::vector<int32_t> &ids,
                           MergeScratch &scratch, std::string &error) const {
  RepairedUtf8 repaired;
  std::string_view view = text;
  if (!isUtf8(text)) {
    repaired = repairUtf8(text);
    text = repaired.text;
    view = repaired.view;
  }
  std::string older;
  std::vector<size_t> ends;
  if (!preTokenizer.split(patternView(view, older), ends, error))
    return false;
  size_t begin = 0;
  for (size_t end : ends) {
    std::string_view piece = text.substr(begin, end - begin);
    begin = end;
    if (spec.ignoreMerges)
      if (const uint32_t *id = byBytes.find(piece)) {
        ids.push_back(static_cast<int32_t>(*id));
        continue;
      }
    mergeBytes(piece, byteTokens, merges, scratch, ids);
  }
  return true;
}

bool Tokenizer::encode(std::string_view text, EncodeOptions options,
                       std::vector<int32_t> &ids, std::string &error) const {
  if (text.size() >= (1u << 30)) {
    error = "the text is larger than 1 GiB";
    return false;
  }
  std::vector<int32_t> out;
  std::vector<AddedTokens::Part> outer, parts;
  plainAdded.split(text, 0, text.size(), options.parseSpecial, outer);
  for (const AddedTokens::Part &part : outer) {
    if (part.token)
      parts.push_back(part);
    else
      normalizedAdded.split(text, part.begin, part.end, options.parseSpecial,
                            parts);
  }
  MergeScratch scratch;
  for (const AddedTokens::Part &part : parts) {
    if (part.token)
      out.push_back(static_cast<int32_t>(part.token->id));
    else if (!encodeText(text.substr(part.begin, part.end - part.begin), out,
                         scratch, error))
      return false;
  }
  if (options.addSpecial) {
    bool doubled = prefix.size() == 1 && prefix[0] == bosId && !out.empty() &&
                   out[0] == bosId;
    if (!doubled)
      ids.insert(ids.end(), prefix.begin(), prefix.end());
  }
  ids.insert(ids.end(), out.begin(), out.end());
  if (options.addSpecial)
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  return true;
}
