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

  /// Appends the ids of words: `range_of(i)` is that of each in `text`.
  template <class RangeOf>
  void look_up(const char* text, std::size_t count, const RangeOf& range_of,
               std::vector<std::uint32_t>& out);
  std::span<const std::uint32_t> word(std::string_view word);
  std::span<const std::uint32_t> long_word(std::string_view word,
                                           std::uint64_t hash);
  std::span<const std::uint32_t> new_word(std::string_view word,
                                          WordCache::Key key,
                                          std::uint64_t hash);
  /// Asks the memory for what short words from `first` on that are new need.
  void fetch_new(std::size_t first, std::size_t count) const;

  /// Takes away what is too much of what begins at `first`.
  template <class Item>
  void truncate(std::size_t first, bool special, std::vector<Item>& out) const;

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
  std::array<std::uint32_t, kRoom + 1> ends;  // behind where the first begins
  std::array<WordCache::Key, kRoom> keys;
  std::array<std::uint64_t, kRoom> hashes;
  std::array<std::uint32_t, 3 * kRoom + 3> found;
};

// Memory is slow and can do many things at once: what a word needs of it is
// asked for one loop before it is read.
template <class RangeOf>
void Encoder::Inside::look_up(const char* text, std::size_t count,
                              const RangeOf& range_of,
                              std::vector<std::uint32_t>& out) {
  bool some_are_long = false;
  for (std::size_t i = 0; i < count; ++i) {
    const ByteRange range = range_of(i);
    const char* word = text + range.begin;
    const std::size_t size = range.size();
    if (size > WordCache::kShort) {
      keys[i] = {0, 0};
      hashes[i] = WordCache::hash_long({word, size});
      cache.fetch_long(hashes[i]);
      some_are_long = true;
      continue;
    }
    if (reinterpret_cast<std::uintptr_t>(word) + 16 <= document_end) {
      keys[i] = WordCache::key_of(word, size);
    } else {
      keys[i] = WordCache::key_of_copy({word, size});
    }
    hashes[i] = keys[i].hash();
    cache.fetch(hashes[i]);
  }
  if (some_are_long)
    for (std::size_t i = 0; i < count; ++i)
      if (keys[i].high == 0) cache.fetch_found(hashes[i]);
  std::uint32_t* next = found.data();
  bool some_are_new = false;
  for (std::size_t i = 0; i < count; ++i) {
    const WordCache::Slot* slot =
        keys[i].high == 0 ? nullptr : cache.find(keys[i], hashes[i]);
    if (slot != nullptr && slot->count <= 3) {
      std::memcpy(next, slot->tokens, sizeof slot->tokens);
      next += slot->count;
      continue;
    }
    std::span<const std::uint32_t> ids;
    if (slot != nullptr) {
      ids = {cache.ids(*slot), slot->count};
    } else {
      if (!some_are_new && keys[i].high != 0) {
        fetch_new(i, count);
        some_are_new = true;
      }
      const ByteRange range = range_of(i);
      ids = new_word({text + range.begin, range.size()}, keys[i], hashes[i]);
    }
    out.insert(out.end(), found.data(), next);
    next = found.data();
    out.insert(out.end(), ids.begin(), ids.end());
  }
  out.insert(out.end(), found.data(), next);
}

template <class Item>
void Encoder::Inside::truncate(std::size_t first, bool special,
                               std::vector<Item>& out) const {
  if (!recipe.longest) return;
  std::size_t longest = *recipe.longest;
  if (special) longest -= recipe.before.size() + recipe.behind.size();
  if (out.size() - first <= longest) return;
  auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
  if (recipe.keeps_end)
    std::copy(out.end() - static_cast<std::ptrdiff_t>(longest), out.end(),
              begin);
  out.resize(first + longest);
}

}  // namespace penstock
