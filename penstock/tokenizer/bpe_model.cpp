#include "penstock/tokenizer/bpe_model.h"

#include <algorithm>
#include <span>

#include "penstock/base/error.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

// Byte-pair encoding (Sennrich et al. 2016) of the bytes of a word, as GPT-2
// introduced it. A short word is looked up; a word of a language without spaces
// is first cut where no merge reaches across. Invariants:
// 1. A part's text has at most WordCache::kShort bytes or is merged alone by
//    long_part(): only short parts occupy `together_` and `seen_`.
// 2. `seen_` holds parts, never words: with ignore_merges a word that is a
//    token is that token, but the same bytes as a part are merged.
// 3. Slots of `seen_` do not move while `parts_` points to them: merge_parts()
//    reserves for all of them before it takes the first.
class ByteModel final : public WordModel {
 public:
  explicit ByteModel(const BytePairs& pairs)
      : pairs_(pairs), merger_(pairs.merges) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    if (pairs_.ignore_merges) {
      const std::uint32_t whole = whole_word(word);
      if (whole != BytePairs::kNone) return out.add(whole, word.size());
    }
    if (out.measured) return measure(word, out);
    if (!is_cut(word)) return append(word, out.ids);
    cut(word);
    parts_.clear();
    constexpr std::size_t kMost = 4096;  // parts at a time
    for (std::size_t first = 0; first < cuts_.size(); first += kMost) {
      const auto count = std::min(kMost, cuts_.size() - first);
      add_parts(word, std::span(cuts_).subspan(first, count));
      take_parts(out.ids, nullptr);
    }
  }

  void encode_new(std::span<const std::string_view> words,
                  std::vector<std::uint32_t>& ids,
                  std::vector<std::uint32_t>& ends) override {
    constexpr std::size_t kMost = 256;
    parts_.clear();
    for (std::string_view word : words) {
      if (is_cut(word) && !is_whole(word)) {
        cut(word);
        add_parts(word, cuts_);
      } else {
        parts_.push_back({.text = word});
      }
      parts_.back().ends_word = true;
      if (parts_.size() >= kMost) take_parts(ids, &ends);
    }
    take_parts(ids, &ends);
  }

 private:
  /// A word, or what merges never join with what is beside it.
  struct Part {
    std::string_view text;
    bool is_word = true;  // all of one
    bool ends_word = false;
    WordCache::Key key = {};
    const WordCache::Slot* slot = nullptr;  // where it is not `merged_`
    std::size_t first = 0, count = 0;       // of those
  };

  /// The token that a word is where merges are ignored, or kNone.
  std::uint32_t whole_word(std::string_view word) const {
    if (word.size() > WordCache::kShort)
      return pairs_.whole_words.find(word).value_or(BytePairs::kNone);
    const WordCache::Key key = WordCache::key_of_copy(word);
    const WordCache::Slot* slot = pairs_.known->find(key);
    return slot == nullptr ? BytePairs::kNone : slot->tokens[0];
  }

  void measure(std::string_view word, WordTokens& out) {
    for (char c : word) {
      const std::uint32_t id = pairs_.byte_ids[static_cast<unsigned char>(c)];
      if (id != BytePairs::kNone) out.add(id, 1);
    }
    const std::size_t count = merger_.merge(out.ids, out.sizes.data());
    out.ids.resize(count);
    out.sizes.resize(count);
  }

  /// The tokens that the bytes merge to.
  void append(std::string_view bytes, std::vector<std::uint32_t>& out) {
    const std::size_t begin = out.size();
    each_symbol(bytes, [&out](std::uint32_t id) {
      if (id != BytePairs::kNone) out.push_back(id);
    });
    out.resize(begin + merger_.merge(std::span(out).subspan(begin)));
  }

  // A word of a language without spaces is a sentence, which is seen once; its
  // parts come again and again.
  bool is_cut(std::string_view word) const {
    return word.size() > WordCache::kShort && pairs_.byte_cuts &&
           !unicode::is_ascii(word);
  }
  // With ignore_merges a word that is a token must not be cut: its parts would
  // be merged one by one.
  bool is_whole(std::string_view word) const {
    return pairs_.ignore_merges && whole_word(word) != BytePairs::kNone;
  }
  void cut(std::string_view word) {
    if (!seen_) seen_.emplace();
    cuts_.clear();
    pairs_.byte_cuts->cut(word, {0, word.size()}, cuts_);
  }

  void add_parts(std::string_view word, std::span<const ByteRange> cuts) {
    for (ByteRange range : cuts) {
      Part& part = parts_.emplace_back();
      part.text = word.substr(range.begin, range.size());
      part.is_word = false;
      if (part.text.size() > WordCache::kShort) continue;
      part.key = range.begin + 16 <= word.size()
                     ? WordCache::key_of(part.text.data(), part.text.size())
                     : WordCache::key_of_copy(part.text);
      __builtin_prefetch(seen_->line_of(part.key));
      if (known_parts()) __builtin_prefetch(known_parts()->line_of(part.key));
    }
  }

  /// Appends the tokens of all `parts_`, which are empty afterwards.
  void take_parts(std::vector<std::uint32_t>& ids,
                  std::vector<std::uint32_t>* ends) {
    merge_parts();
    for (const Part& part : parts_) {
      if (part.text.size() > WordCache::kShort) {
        long_part(part, ids);
      } else {
        const std::span<const std::uint32_t> found =
            part.slot != nullptr
                ? seen_->ids(*part.slot, part.text)
                : std::span(merged_).subspan(part.first, part.count);
        ids.insert(ids.end(), found.begin(), found.end());
      }
      if (part.ends_word)
        ends->push_back(static_cast<std::uint32_t>(ids.size()));
    }
    parts_.clear();
  }

  void long_part(const Part& part, std::vector<std::uint32_t>& ids) {
    const std::uint32_t whole = part.is_word && pairs_.ignore_merges
                                    ? whole_word(part.text)
                                    : BytePairs::kNone;
    if (whole != BytePairs::kNone)
      ids.push_back(whole);
    else
      append(part.text, ids);
  }

  /// Finds or merges all `parts_` that are short.
  void merge_parts() {
    merged_.clear();
    to_merge_.clear();
    if (seen_) seen_->reserve(parts_.size());
    for (Part& part : parts_) {
      if (part.text.size() > WordCache::kShort) continue;
      if (!part.is_word) part.slot = known_part(part.key);
      if (part.slot != nullptr) continue;
      place_symbols(part.text, together_[to_merge_.size()]);
      to_merge_.push_back(&part);
      if (to_merge_.size() == Merger::kTogether) merge_together();
    }
    merge_together();
  }

  void merge_together() {
    merger_.merge_together(std::span(together_).first(to_merge_.size()));
    for (std::size_t i = 0; i < to_merge_.size(); ++i) {
      const Merger::ShortWord& word = together_[i];
      const std::span<const std::uint32_t> ids{word.symbols, word.size};
      Part& part = *to_merge_[i];
      part.first = merged_.size();
      part.count = ids.size();
      merged_.insert(merged_.end(), ids.begin(), ids.end());
      if (!part.is_word && seen_->find(part.key) == nullptr)
        seen_->insert(part.key, ids);
    }
    to_merge_.clear();
  }

  void place_symbols(std::string_view bytes, Merger::ShortWord& word) const {
    word.size = 0;
    each_symbol(bytes, [&word](std::uint32_t id) {
      word.symbols[word.size] = id;
      word.size += id != BytePairs::kNone ? 1 : 0;
    });
    for (std::size_t i = 0; i + 1 < word.size; ++i)
      pairs_.merges.fetch(word.symbols[i], word.symbols[i + 1]);
  }

  /// What is merged: the bytes, or characters whose bytes are merged first.
  /// That is so where nothing is joined to less than all of one: what is joined
  /// to all of it has a higher id, and so a higher rank, than all within.
  template <class Add>
  void each_symbol(std::string_view bytes, const Add& add) const {
    auto add_bytes = [&](std::string_view some) {
      for (char c : some) add(pairs_.byte_ids[static_cast<unsigned char>(c)]);
    };
    if (pairs_.characters.empty() || unicode::is_ascii(bytes))
      return add_bytes(bytes);
    bool apart = true;  // from the character before
    std::uint32_t size, next_size = 0, next = 0;
    std::uint32_t code = unicode::code_at(bytes.data(), size);
    for (std::size_t at = 0; at < bytes.size(); size = next_size) {
      const std::size_t end = at + size;
      bool next_apart = true;
      if (end < bytes.size()) {
        next = unicode::code_at(bytes.data() + end, next_size);
        next_apart = pairs_.byte_cuts->whole_apart(bytes, end, code, next);
      }
      const std::uint32_t whole = code < pairs_.characters.size()
                                      ? pairs_.characters[code]
                                      : BytePairs::kNone;
      if (apart && next_apart && whole != BytePairs::kNone)
        add(whole);
      else
        add_bytes(bytes.substr(at, size));
      apart = next_apart;
      code = next;
      at = end;
    }
  }

  /// Parts are merged, even where a word that is a token is not.
  const WordCache* known_parts() const {
    return pairs_.known && !pairs_.ignore_merges ? &*pairs_.known : nullptr;
  }
  const WordCache::Slot* known_part(WordCache::Key key) const {
    const WordCache::Slot* slot =
        known_parts() ? known_parts()->find(key) : nullptr;
    return slot != nullptr ? slot : seen_->find(key);
  }

  const BytePairs& pairs_;
  Merger merger_;
  std::array<Merger::ShortWord, Merger::kTogether> together_;
  std::optional<WordCache> seen_;  // parts of words
  std::vector<Part> parts_;
  std::vector<Part*> to_merge_;        // those that are in together_
  std::vector<std::uint32_t> merged_;  // tokens of parts
  std::vector<ByteRange> cuts_;
};

// The model of files whose tokens are characters rather than bytes. With a
// prefix or suffix a character's token depends on whether it begins or ends the
// word. Characters without a token become their bytes or the unknown token;
// `unknown_` counts the bytes that wait for it, so that with fuse_unknown a run
// of them is one token.
class CharacterModel final : public WordModel {
 public:
  explicit CharacterModel(const BytePairs& pairs)
      : pairs_(pairs), merger_(pairs.merges) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    if (pairs_.ignore_merges) {
      if (const auto whole = pairs_.ids.find(word))
        return out.add(*whole, word.size());
    }
    unknown_ = 0;
    std::uint32_t size;
    for (std::size_t at = 0; at < word.size(); at += size) {
      unicode::code_at(word.data() + at, size);
      character(word, at, size, out);
    }
    flush(out);
    const std::size_t count = merger_.merge(out.ids, out.sizes.data());
    out.ids.resize(count);
    out.sizes.resize(count);
  }

 private:
  void character(std::string_view word, std::size_t at, std::size_t size,
                 WordTokens& out) {
    symbol_.assign(at == 0 ? "" : pairs_.prefix);
    symbol_ += word.substr(at, size);
    if (at + size == word.size()) symbol_ += pairs_.suffix;
    if (const auto found = pairs_.ids.find(symbol_)) {
      flush(out);
      return out.add(*found, size);
    }
    if (pairs_.falls_back && fall_back(out)) return;
    if (!pairs_.unknown) return;  // is left out
    if (unknown_ > 0 && !pairs_.fuse_unknown) flush(out);
    unknown_ += size;
  }

  bool fall_back(WordTokens& out) const {
    for (char c : symbol_)
      if (pairs_.fallback_ids[static_cast<unsigned char>(c)] ==
          BytePairs::kNone)
        return false;
    for (char c : symbol_)
      out.add(pairs_.fallback_ids[static_cast<unsigned char>(c)], 1);
    return true;
  }

  void flush(WordTokens& out) {
    if (unknown_ > 0) out.add(*pairs_.unknown, unknown_);
    unknown_ = 0;
  }

  const BytePairs& pairs_;
  Merger merger_;
  std::string symbol_;
  std::size_t unknown_ = 0;  // bytes that no token has yet
};

constexpr std::size_t kPlaces = std::size_t{1} << 20;

}  // namespace

std::unique_ptr<WordModel> byte_model(const BytePairs& pairs) {
  return std::make_unique<ByteModel>(pairs);
}

std::unique_ptr<WordModel> character_model(const BytePairs& pairs) {
  return std::make_unique<CharacterModel>(pairs);
}

namespace {

// The upper 20 bits of a multiplicative hash of two numbers of 21 bits: a place
// of the filter of kPlaces bits. Code points end below 2^21, with room for the
// 256 numbers of of_byte().
std::size_t place(std::uint32_t first, std::uint32_t second) {
  return (std::uint64_t{first} << 21 | second) * 0x9E3779B97F4A7C15 >> 44;
}

bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// For a character of which only the last byte, or only the first, is certain.
std::uint32_t of_byte(char c) {
  return 0x110000 + static_cast<unsigned char>(c);
}

/// Bytes of the character that begins with this one.
std::size_t bytes_from(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

std::uint32_t last_of(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && goes_on(text[at])) --at;
  if (goes_on(text[at]) || bytes_from(text[at]) != text.size() - at)
    return of_byte(text.back());
  std::uint32_t size;
  return unicode::code_at(text.data() + at, size);
}

std::uint32_t first_of(std::string_view text) {
  if (bytes_from(text[0]) > text.size()) return of_byte(text[0]);
  std::uint32_t size;
  return unicode::code_at(text.data(), size);
}

}  // namespace

// A Bloom filter of one hash: "no" is certain, and "yes" may be wrong, which
// only costs a cut that would have been allowed. The result is the same either
// way.
bool MergeCuts::has(std::uint32_t first, std::uint32_t second) const {
  const std::size_t at = place(first, second);
  return (joined_[at >> 6] >> (at & 63) & 1) != 0;
}

MergeCuts::MergeCuts() : joined_(kPlaces / 64) {}

// Two tokens meet between two characters where the second begins one. What of
// the first lies in the character before, and of the second in the one behind,
// is all of these characters, or, of a token that begins or ends within one,
// less: then its last byte, or its first, stands for all that it may be.
void MergeCuts::add(std::string_view first, std::string_view second) {
  if (goes_on(second[0])) return;
  const std::uint32_t before = last_of(first), behind = first_of(second);
  within_ = within_ || before >= of_byte(0) || behind >= of_byte(0);
  const std::size_t at = place(before, behind);
  joined_[at >> 6] |= std::uint64_t{1} << (at & 63);
}

bool MergeCuts::whole_apart(std::string_view text, std::size_t at,
                            std::uint32_t first, std::uint32_t second) const {
  if (!within_) return true;
  const std::uint32_t last_byte = of_byte(text[at - 1]),
                      first_byte = of_byte(text[at]);
  return !has(last_byte, second) && !has(first, first_byte) &&
         !has(last_byte, first_byte);
}

void MergeCuts::cut(std::string_view text, ByteRange part,
                    std::vector<ByteRange>& out) const {
  std::size_t begin = part.begin;
  std::uint32_t size;
  std::uint32_t before = unicode::code_at(text.data() + begin, size);
  for (std::size_t at = begin + size; at < part.end; at += size) {
    const std::uint32_t code = unicode::code_at(text.data() + at, size);
    const bool joined =
        has(before, code) || !whole_apart(text, at, before, code);
    before = code;
    if (joined) continue;
    out.push_back({begin, at});
    begin = at;
  }
  out.push_back({begin, part.end});
}

}  // namespace penstock
