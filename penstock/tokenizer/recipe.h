#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "penstock/tokenizer/added_tokens.h"
#include "penstock/tokenizer/merges.h"
#include "penstock/tokenizer/scanner.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {

/// What a tokenizer.json says, ready to be applied.
struct Tokenizer::Inside {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Before the words.
  TokenSearch raw, normalized;  ///< added tokens, first those of the raw text
  bool composes = false;        ///< NFC
  bool prefix_space = false;    ///< a space before text that has none
  Family family = Family::gpt2;

  // A word.
  bool ignore_merges = false;  ///< a word that is a token is that token
  std::array<std::uint32_t, 256> byte_ids;  ///< kNone: the byte is left out
  std::unordered_map<std::string, std::uint32_t> whole_words;
  Merges merges;

  // Around the document.
  std::vector<std::uint32_t> before, behind;
  std::optional<std::size_t> longest;  ///< in tokens, those around it included
  bool keeps_end = false;              ///< where it is too long

  // Tokens as they are written, and the bytes that they stand for.
  std::vector<std::optional<std::string>> written;
  std::unordered_map<std::string, std::uint32_t> ids;
  std::vector<std::string> bytes;
  std::vector<bool> special;

  std::optional<std::uint32_t> bos, eos, pad;
  std::string fingerprint;
};

/// Throws Error(request), see Tokenizer::parse.
Tokenizer::Inside read_recipe(std::string_view json, std::string_view origin);
/// Adds bos, eos and pad from a tokenizer_config.json.
void read_config(std::string_view json, std::string_view origin,
                 Tokenizer::Inside& recipe);

}  // namespace penstock
