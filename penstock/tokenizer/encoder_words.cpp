// Words become ids. Memory is slow and can do many things at once: what a word
// needs of it is asked for one loop before it is read.
#include <algorithm>

#include "penstock/tokenizer/encoder_inside.h"

namespace penstock {
namespace {

/// Of a word that the cache does not keep.
constexpr WordCache::Slot kNotKept{{0, 0}, {0, 0, 0, WordCache::kLong}};

}  // namespace

// What lies in members is read once, before the loops: the compiler cannot know
// that what these write is something else.
template <bool kPadded>
void Encoder::Inside::make_keys(const Words& words) {
  const char* const text = words.text;
  const std::uint32_t* const begins = words.begins;
  const std::uint32_t* const ends = words.ends;
  const WordCache::Lines all = cache.lines();
  WordCache::Key* const keys_of = keys.data();
  const WordCache::Slot** const lines_of = lines.data();
  const std::size_t count = words.count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = ends[i] - begins[i];
    const char* word = text + begins[i];
    auto put = [=](WordCache::Key key) {
      keys_of[i].low = key.low;
      keys_of[i].high = key.high;
      const WordCache::Slot* line = all.of(key);
      lines_of[i] = line;
      __builtin_prefetch(line);
    };
    if (size > WordCache::kShort)
      put(WordCache::key_of_long({word, size}));
    else if constexpr (kPadded)
      put(WordCache::key_of(word, size));
    else
      put(WordCache::key_of_copy({word, size}));
  }
}

// Pointers to slots are held until the end, so reserve() comes first: each word
// adds at most one slot. A slot's four numbers are copied whatever it holds,
// and `next` advances by those that are ids.
void Encoder::Inside::look_up(const Words& words,
                              std::vector<std::uint32_t>& out) {
  cache.reserve(words.count);
  const std::size_t count = words.count;
  const char* last = words.text + words.begins[count - 1];
  if (reinterpret_cast<std::uintptr_t>(last) + 16 <= document_end)
    make_keys<true>(words);
  else
    make_keys<false>(words);
  std::uint32_t* next = found.data();
  auto add = [&](const WordCache::Slot* slot, std::size_t i) {
    const std::uint32_t tokens = slot->count();
    if (tokens > 3) {
      next = add_many(words, i, slot, next, out);
    } else {
      std::memcpy(next, slot->tokens, sizeof slot->tokens);
      next += tokens;
    }
  };
  std::size_t i = 0;
  for (; i < count; ++i) {
    const WordCache::Slot* slot = cache.find(keys[i], lines[i]);
    if (slot == nullptr) break;
    add(slot, i);
  }
  if (i < count) add_missing(words, i);
  for (; i < count; ++i) add(slots[i], i);
  out.insert(out.end(), found.data(), next);
}

std::uint32_t* Encoder::Inside::add_many(const Words& words, std::size_t i,
                                         const WordCache::Slot* slot,
                                         std::uint32_t* next,
                                         std::vector<std::uint32_t>& out) {
  std::span<const std::uint32_t> ids;
  if (slot != &kNotKept) ids = cache.ids(*slot, words[i]);
  if (ids.data() == nullptr) ids = word(words[i]);
  // Invariant of `found`: from `next` on there is room for the four numbers of
  // this word and of each one after it. A word of many tokens that would break
  // it hands over what is there, and the next one begins at the front again.
  const std::size_t behind = 4 * (words.count - i);
  const auto left =
      static_cast<std::size_t>(found.data() + found.size() - next);
  if (ids.size() + behind <= left)
    return std::copy(ids.begin(), ids.end(), next);
  out.insert(out.end(), found.data(), next);
  out.insert(out.end(), ids.begin(), ids.end());
  return found.data();
}

void Encoder::Inside::add_missing(const Words& words, std::size_t first) {
  const WordCache* known = recipe.pairs.known ? &*recipe.pairs.known : nullptr;
  missing.clear();
  for (std::size_t i = first; i < words.count; ++i) {
    slots[i] = cache.find(keys[i], lines[i]);
    if (slots[i] != nullptr) continue;
    missing.push_back(i);
    if (known != nullptr) __builtin_prefetch(known->line_of(keys[i]));
  }
  to_merge.clear();
  merged.clear();
  for (std::size_t i : missing) {
    if (keys[i].is_long() && !WordCache::takes(words[i])) {
      slots[i] = &kNotKept;
      continue;
    }
    const WordCache::Slot* token =
        known != nullptr ? known->find(keys[i]) : nullptr;
    if (token == nullptr) {
      to_merge.push_back(words[i]);
      merged.push_back(i);
      continue;
    }
    slots[i] = cache.find(keys[i], lines[i]);  // twice among these
    if (slots[i] == nullptr)
      slots[i] = &cache.insert(keys[i], {token->tokens, 1});
  }
  if (!merged.empty()) merge_missing();
}

void Encoder::Inside::merge_missing() {
  merged_ids.clear();
  merged_ends.clear();
  model->encode_new(to_merge, merged_ids, merged_ends);
  std::size_t begin = 0;
  for (std::size_t m = 0; m < merged.size(); ++m) {
    const std::size_t i = merged[m], end = merged_ends[m];
    const auto ids = std::span(merged_ids).subspan(begin, end - begin);
    slots[i] = cache.find(keys[i], lines[i]);
    if (slots[i] == nullptr)
      slots[i] = keys[i].is_long()
                     ? &cache.insert_long(to_merge[m], keys[i], ids)
                     : &cache.insert(keys[i], ids);
    begin = end;
  }
}

std::span<const std::uint32_t> Encoder::Inside::word(std::string_view word) {
  tokens.measured = false;
  model->encode(word, tokens);
  return tokens.ids;
}

}  // namespace penstock
