#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/bytes.h"
#include "penstock/tokenizer/recipe.h"
#include "penstock/tokenizer/scanner.h"
#include "penstock/tokenizer/tokenizer.h"
#include "penstock/tokenizer/word_cache.h"

namespace penstock {

/// What an Encoder keeps from document to document.
struct Encoder::Inside {
  static constexpr std::size_t kRoom =
      256;  // words that are looked up together

  explicit Inside(std::shared_ptr<const Tokenizer> of)
      : tokenizer(std::move(of)),
        recipe(tokenizer->recipe()),
        model(recipe.make_model(recipe)) {}

  /// The document as UTF-8, where it is small with bytes behind it.
  std::string_view copied(std::string_view text, bool& padded);
  /// All but what stands around it; `offsets` may be null.
  void document(std::string_view text, bool padded,
                std::vector<std::uint32_t>& out,
                std::vector<TokenOffsets>* offsets);

  // Text that one scanner cuts.
  void normalise(std::string_view text, std::vector<std::uint32_t>& out,
                 bool padded);
  void cut_normalised(std::string_view text, std::vector<std::uint32_t>& out,
                      bool padded);
  void words(std::string_view text, std::vector<std::uint32_t>& out,
             bool padded);

  // Text that goes through steps.
  /// A part of the document, from `begin` on.
  void steps(std::string_view text, std::size_t begin,
             std::vector<std::uint32_t>& out,
             std::vector<TokenOffsets>* offsets);
  /// What lies between added tokens, in `pieces`.
  void pieces_to_ids(std::vector<std::uint32_t>& out,
                     std::vector<TokenOffsets>* offsets);
  void cut_pieces();
  void add_with_offsets(ByteRange part, std::vector<std::uint32_t>& out,
                        std::vector<TokenOffsets>& offsets);

  /// At most kRoom words of a text: where each begins and ends.
  struct Words {
    const char* text;
    const std::uint32_t *begins, *ends;
    std::size_t count;

    std::string_view operator[](std::size_t i) const {
      return {text + begins[i], ends[i] - begins[i]};
    }
  };
  /// Appends their ids.
  void look_up(const Words& words, std::vector<std::uint32_t>& out);
  template <bool kPadded>
  void make_keys(const Words& words);
  /// Remembers those that are new from `first` on, and writes all `slots` from
  /// there on.
  void add_missing(const Words& words, std::size_t first);
  void merge_missing();
  /// Adds what does not lie in the slot of a word to `found`, up to `next`;
  /// where that is then.
  std::uint32_t* add_many(const Words& words, std::size_t i,
                          const WordCache::Slot* slot, std::uint32_t* next,
                          std::vector<std::uint32_t>& out);
  std::span<const std::uint32_t> word(std::string_view word);

  std::shared_ptr<const Tokenizer> tokenizer;
  const Recipe& recipe;
  std::unique_ptr<WordModel> model;
  WordCache cache;
  std::size_t invalid = 0;
  std::size_t document_end = 0;  // address behind which nothing may be read

  Bytes copy;              // a copy with bytes behind it
  std::string normalised;  // of one part
  std::string prefixed;
  std::vector<TokenSearch::Part> raw_parts, parts;
  WordTokens tokens;
  Pieces pieces;
  std::vector<ByteRange> cut_parts;
  std::array<std::uint32_t, kRoom + 1> begins, ends;
  std::array<WordCache::Key, kRoom> keys;
  std::array<const WordCache::Slot*, kRoom> lines, slots;
  std::vector<std::string_view> to_merge;
  std::vector<std::size_t> missing, merged;  // where in `keys` they are
  std::vector<std::uint32_t> merged_ids, merged_ends;
  std::array<std::uint32_t, 4 * kRoom + 1024> found;
};

}  // namespace penstock
