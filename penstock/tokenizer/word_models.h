#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "penstock/tokenizer/token_ids.h"
#include "penstock/tokenizer/token_trie.h"
#include "penstock/tokenizer/word_model.h"

namespace penstock {

/// The longest token first, from the left to the right.
struct WordPieces {
  TokenTrie first, later;  ///< where a word begins; behind that
  std::optional<std::uint32_t> unknown;
  std::size_t longest = 100;  ///< characters of a word that is looked at
};
std::unique_ptr<WordModel> word_piece_model(const WordPieces& pieces);

/// A word is a token.
struct WholeWords {
  TokenIds ids;
  std::optional<std::uint32_t> unknown;
};
std::unique_ptr<WordModel> word_level_model(const WholeWords& words);

/// The tokens that are the likeliest together (Kudo 2018, with the rules of
/// SentencePiece for what is unknown).
struct Unigrams {
  TokenTrie tokens;
  std::vector<double> scores;
  double unknown_score = 0;
  std::optional<std::uint32_t> unknown;
  bool falls_back = false;  ///< to bytes of names like <0x0A>
  std::array<std::uint32_t, 256> fallback_ids = {};
};
std::unique_ptr<WordModel> unigram_model(const Unigrams& unigrams);

}  // namespace penstock
