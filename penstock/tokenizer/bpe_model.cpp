#include "penstock/tokenizer/bpe_model.h"

#include "penstock/base/error.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

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
    if (pairs_.byte_cuts && word.size() > WordCache::kShort &&
        !unicode::is_ascii(word))
      return encode_parts(word, out);
    append(word, out.ids);
  }

 private:
  /// The token that a word is where merges are ignored, or kNone.
  std::uint32_t whole_word(std::string_view word) const {
    if (word.size() > WordCache::kShort) {
      auto whole = pairs_.whole_words.find(std::string(word));
      return whole == pairs_.whole_words.end() ? BytePairs::kNone
                                               : whole->second;
    }
    const WordCache::Key key = WordCache::key_of_copy(word);
    const WordCache::Slot* slot = pairs_.known->find(key, key.hash());
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

  /// The tokens that the bytes merge to; returns how many.
  std::size_t append(std::string_view bytes, std::vector<std::uint32_t>& out) {
    const std::size_t begin = out.size();
    for (char c : bytes) {
      const std::uint32_t id = pairs_.byte_ids[static_cast<unsigned char>(c)];
      if (id != BytePairs::kNone) out.push_back(id);
    }
    const std::size_t count = merger_.merge(std::span(out).subspan(begin));
    out.resize(begin + count);
    return count;
  }

  // A word of a language without spaces is a sentence, which is seen once; its
  // parts come again and again.
  void encode_parts(std::string_view word, WordTokens& out) {
    if (!seen_) seen_.emplace();
    parts_.clear();
    keys_.clear();
    pairs_.byte_cuts->cut(word, {0, word.size()}, parts_);
    for (ByteRange range : parts_) {
      const std::string_view part = word.substr(range.begin, range.size());
      if (part.size() > WordCache::kShort) {
        keys_.push_back({0, 0});
        continue;
      }
      const WordCache::Key key =
          range.begin + 16 <= word.size()
              ? WordCache::key_of(part.data(), part.size())
              : WordCache::key_of_copy(part);
      const std::uint64_t hash = key.hash();
      seen_->fetch(hash);
      if (known_parts()) known_parts()->fetch(hash);
      keys_.push_back(key);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::string_view part =
          word.substr(parts_[i].begin, parts_[i].size());
      if (keys_[i].high == 0)
        append(part, out.ids);
      else
        short_part(part, keys_[i], out.ids);
    }
  }

  /// Parts are merged, even where a word that is a token is not.
  const WordCache* known_parts() const {
    return pairs_.known && !pairs_.ignore_merges ? &*pairs_.known : nullptr;
  }

  void short_part(std::string_view part, WordCache::Key key,
                  std::vector<std::uint32_t>& out) {
    const std::uint64_t hash = key.hash();
    const WordCache::Slot* slot =
        known_parts() ? known_parts()->find(key, hash) : nullptr;
    if (slot != nullptr) return out.push_back(slot->tokens[0]);
    slot = seen_->find(key, hash);
    if (slot != nullptr) {
      const std::uint32_t* ids = seen_->ids(*slot);
      out.insert(out.end(), ids, ids + slot->count);
    } else {
      const std::size_t count = append(part, out);
      seen_->insert(key, hash, std::span(out).last(count));
    }
  }

  const BytePairs& pairs_;
  Merger merger_;
  std::optional<WordCache> seen_;  // parts of words
  std::vector<ByteRange> parts_;
  std::vector<WordCache::Key> keys_;  // of parts, none of long ones
};

class CharacterModel final : public WordModel {
 public:
  explicit CharacterModel(const BytePairs& pairs)
      : pairs_(pairs), merger_(pairs.merges) {}

  void encode(std::string_view word, WordTokens& out) override {
    out.clear();
    if (pairs_.ignore_merges) {
      auto whole = pairs_.ids.find(std::string(word));
      if (whole != pairs_.ids.end()) return out.add(whole->second, word.size());
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
    if (auto found = pairs_.ids.find(symbol_); found != pairs_.ids.end()) {
      flush(out);
      return out.add(found->second, size);
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

void MergeCuts::cut(std::string_view text, ByteRange part,
                    std::vector<ByteRange>& out) const {
  std::size_t begin = part.begin;
  std::uint32_t size;
  std::uint32_t before = unicode::code_at(text.data() + begin, size);
  for (std::size_t at = begin + size; at < part.end; at += size) {
    const std::uint32_t code = unicode::code_at(text.data() + at, size);
    bool joined = has(before, code);
    if (!joined && within_) {
      const std::uint32_t last = of_byte(text[at - 1]),
                          first = of_byte(text[at]);
      joined = has(last, code) || has(before, first) || has(last, first);
    }
    before = code;
    if (joined) continue;
    out.push_back({begin, at});
    begin = at;
  }
  out.push_back({begin, part.end});
}

}  // namespace penstock
