#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/tokenizer/aligned.h"
#include "penstock/tokenizer/merges.h"
#include "penstock/tokenizer/token_ids.h"
#include "penstock/tokenizer/word_cache.h"
#include "penstock/tokenizer/word_model.h"

namespace penstock {

/// Where a text may be cut before it is merged: between two characters that no
/// merge joins, so that what lies on both sides becomes the same tokens alone.
class MergeCuts {
 public:
  MergeCuts();
  /// These texts, neither of them empty, are merged; of a model of bytes they
  /// may begin or end within a character. Before the first cut().
  void add(std::string_view first, std::string_view second);
  /// Whether no merge joins less than all of a character to what is of the one
  /// behind it, which begins at `at` of a text.
  bool whole_apart(std::string_view text, std::size_t at, std::uint32_t first,
                   std::uint32_t second) const;
  /// Appends the parts of a part of a text, which is UTF-8.
  void cut(std::string_view text, ByteRange part,
           std::vector<ByteRange>& out) const;

 private:
  bool has(std::uint32_t first, std::uint32_t second) const;

  std::vector<std::uint64_t> joined_;  // a bit by hash: more may be set
  bool within_ = false;                // merges begin or end within characters
};

/// What byte-pair encoding needs. Immutable when it is read.
struct BytePairs {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Merges merges;
  bool ignore_merges = false;  ///< a word that is a token is that token

  // Of bytes.
  std::array<std::uint32_t, 256> byte_ids;  ///< kNone: the byte is left out
  TokenIds whole_words;                     ///< long ones
  /// Short words of one token: all with ignore_merges; else those that are
  /// merged to it, where ids are in the order of merges.
  std::optional<WordCache> known = {};
  std::optional<MergeCuts> byte_cuts = {};
  /// The token of each character up to U+FFFF whose bytes are merged to one, or
  /// kNone; where ids are in the order of merges and there are byte_cuts.
  std::vector<std::uint32_t> characters = {};

  // Of characters.
  TokenIds ids = {};
  std::string prefix = {}, suffix = {};  ///< of what goes on; of the end
  std::optional<std::uint32_t> unknown = {};
  bool fuse_unknown = false;
  bool falls_back = false;  ///< to bytes of names like <0x0A>
  std::array<std::uint32_t, 256> fallback_ids = {};
};

std::unique_ptr<WordModel> byte_model(const BytePairs& pairs);
std::unique_ptr<WordModel> character_model(const BytePairs& pairs);

}  // namespace penstock
