#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/tokenizer/added_tokens.h"
#include "penstock/tokenizer/bpe_model.h"
#include "penstock/tokenizer/decoders.h"
#include "penstock/tokenizer/family.h"
#include "penstock/tokenizer/normalizers.h"
#include "penstock/tokenizer/splitters.h"
#include "penstock/tokenizer/token_ids.h"
#include "penstock/tokenizer/word_models.h"

namespace penstock {

/// What a tokenizer.json says, ready to be applied.
struct Recipe {
  // Before the words.
  TokenSearch raw, normalized;  ///< added tokens, first those of the raw text
  Normalizers normalizers;
  bool composes = false;      ///< they are NFC alone
  bool prefix_space = false;  ///< a space before text that has none
  /// How text is cut, where one scanner does it; else by `splitters`.
  std::optional<Family> family;
  Splitters splitters;
  bool asks_where = false;  ///< a step must know places in the document
  std::optional<MergeCuts> cuts;

  // A word.
  BytePairs pairs;
  bool knows_bytes = false;  ///< of byte-level characters it has what it needs
  WordPieces pieces;
  WholeWords words;
  Unigrams unigrams;
  /// Makes the model of a thread from one of these.
  std::unique_ptr<WordModel> (*make_model)(const Recipe& of) = nullptr;

  // Around the document.
  std::vector<std::uint32_t> before, behind;
  bool trims_offsets = false;        ///< white space is not in them
  bool trims_behind_prefix = false;  ///< with what add_prefix_space says

  // Tokens as written, and the bytes that they stand for.
  std::vector<std::optional<std::string>> written;
  TokenIds ids;
  std::vector<std::string> bytes;
  std::vector<bool> special;
  std::optional<Decoding> decoding;  ///< missing: bytes one after the other

  std::optional<std::uint32_t> bos, eos, pad;
  std::string fingerprint;
};

}  // namespace penstock
