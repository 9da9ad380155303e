#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "penstock/tokenizer/aligned.h"
#include "penstock/tokenizer/merges.h"
#include "penstock/tokenizer/word_model.h"

namespace penstock {

/// What byte-pair encoding needs. Immutable when it is read.
struct BytePairs {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Merges merges;
  bool ignore_merges = false;  ///< a word that is a token is that token

  // Of bytes.
  std::array<std::uint32_t, 256> byte_ids;  ///< kNone: the byte is left out
  std::unordered_map<std::string, std::uint32_t> whole_words;

  // Of characters.
  std::unordered_map<std::string, std::uint32_t> ids = {};
  std::string prefix = {}, suffix = {};  ///< of what goes on; of the end
  std::optional<std::uint32_t> unknown = {};
  bool fuse_unknown = false;
  bool falls_back = false;  ///< to bytes of names like <0x0A>
  std::array<std::uint32_t, 256> fallback_ids = {};
};

std::unique_ptr<WordModel> byte_model(const BytePairs& pairs);
std::unique_ptr<WordModel> character_model(const BytePairs& pairs);

/// Where a text may be cut before a model of characters merges it: between two
/// characters that no merge joins. Immutable.
class MergeCuts {
 public:
  /// `merges`: pairs of texts, as they are merged.
  using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;
  explicit MergeCuts(const Pairs& merges);
  /// Appends the parts of a part of a text.
  void cut(std::string_view text, ByteRange part,
           std::vector<ByteRange>& out) const;

 private:
  static std::size_t place(std::uint32_t first, std::uint32_t second);

  std::vector<std::uint64_t> joined_;  // a bit by hash: more may be set
};

}  // namespace penstock
