#include <algorithm>
#include <array>
#include <cstring>

#include "penstock/base/bytes.h"
#include "penstock/base/error.h"
#include "penstock/tokenizer/composition.h"
#include "penstock/tokenizer/merges.h"
#include "penstock/tokenizer/recipe.h"
#include "penstock/tokenizer/scanner.h"
#include "penstock/tokenizer/unicode.h"
#include "penstock/tokenizer/word_cache.h"

namespace penstock {
namespace {

constexpr std::size_t kRoom = 256;  // words that are looked up together
constexpr std::size_t kLongest = std::size_t{1} << 31;
/// Documents up to here are copied, so that reading may pass their end.
constexpr std::size_t kCopied = std::size_t{1} << 20;

bool is_ascii(std::string_view text) {
  std::uint64_t seen = 0, part;
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::memcpy(&part, text.data() + at, 8);
    seen |= part;
  }
  for (; at < text.size(); ++at) seen |= static_cast<unsigned char>(text[at]);
  return (seen & 0x8080808080808080) == 0;
}

}  // namespace

struct Encoder::Inside {
  explicit Inside(std::shared_ptr<const Tokenizer> of)
      : tokenizer(std::move(of)),
        recipe(tokenizer->inside()),
        merger(recipe.merges) {}

  std::string_view copied(std::string_view text, bool& padded);
  void normalise(std::string_view text, std::vector<std::uint32_t>& out,
                 bool padded);
  void cut_normalised(std::string_view text, std::vector<std::uint32_t>& out,
                      bool padded);
  void words(std::string_view text, std::vector<std::uint32_t>& out,
             bool padded);
  void look_up(const char* text, std::size_t begin, std::size_t count,
               std::vector<std::uint32_t>& out);
  std::span<const std::uint32_t> word(std::string_view word);
  std::span<const std::uint32_t> long_word(std::string_view word);
  void truncate(std::size_t first, bool special,
                std::vector<std::uint32_t>& out) const;

  std::shared_ptr<const Tokenizer> tokenizer;
  const Tokenizer::Inside& recipe;
  Merger merger;
  WordCache cache;
  std::size_t invalid = 0;
  std::size_t document_end = 0;  // address behind which nothing may be read

  Bytes document;          // a copy with bytes behind it
  std::string normalised;  // of one part
  std::string prefixed;
  std::vector<TokenSearch::Part> raw_parts, parts;
  std::vector<std::uint32_t> symbols;
  std::array<std::uint32_t, kRoom> ends;
  std::array<WordCache::Key, kRoom> keys;
  std::array<std::uint64_t, kRoom> hashes;
  std::array<std::uint32_t, 3 * kRoom + 3> found;
};

/// The document as UTF-8, where it is small with bytes behind it.
std::string_view Encoder::Inside::copied(std::string_view text, bool& padded) {
  padded = true;
  if (unicode::first_invalid(text) != text.size()) {
    std::string fixed;
    invalid += unicode::append_valid(text, fixed);
    document.clear();
    document.append(fixed.data(), fixed.size());
    return {document.mutable_data<char>(), document.size()};
  }
  if (text.size() > kCopied) {
    padded = false;
    return text;
  }
  document.clear();
  document.append(text.data(), text.size());
  return {document.mutable_data<char>(), text.size()};
}

void Encoder::Inside::normalise(std::string_view text,
                                std::vector<std::uint32_t>& out, bool padded) {
  if (recipe.composes && !is_ascii(text)) {
    normalised.clear();
    unicode::append_composed(text, normalised);
    std::size_t size = normalised.size();
    normalised.append(64, '\0');
    return cut_normalised({normalised.data(), size}, out, true);
  }
  cut_normalised(text, out, padded);
}

void Encoder::Inside::cut_normalised(std::string_view text,
                                     std::vector<std::uint32_t>& out,
                                     bool padded) {
  if (recipe.normalized.empty()) return words(text, out, padded);
  parts.clear();
  recipe.normalized.cut(text, parts);
  for (const TokenSearch::Part& part : parts) {
    if (part.id != TokenSearch::kNone)
      out.push_back(part.id);
    else
      words(text.substr(part.begin, part.end - part.begin), out, padded);
  }
}

void Encoder::Inside::words(std::string_view text,
                            std::vector<std::uint32_t>& out, bool padded) {
  if (recipe.prefix_space && (text.empty() || text[0] != ' ')) {
    prefixed.assign(1, ' ');
    prefixed += text;
    std::size_t size = prefixed.size();
    prefixed.append(64, '\0');
    text = {prefixed.data(), size};
    padded = true;
  }
  document_end =
      padded ? SIZE_MAX
             : reinterpret_cast<std::uintptr_t>(text.data()) + text.size();
  Scanner scanner(recipe.family, text, padded);
  std::size_t begin = 0;
  while (std::size_t count = scanner.next(ends.data(), kRoom)) {
    look_up(text.data(), begin, count, out);
    begin = ends[count - 1];
  }
}

void Encoder::Inside::look_up(const char* text, std::size_t begin,
                              std::size_t count,
                              std::vector<std::uint32_t>& out) {
  std::size_t from = begin;
  for (std::size_t i = 0; i < count; ++i) {
    const char* word = text + from;
    std::size_t size = ends[i] - from;
    from = ends[i];
    if (size > WordCache::kShort) {
      keys[i] = {0, 0};
      continue;
    }
    if (reinterpret_cast<std::uintptr_t>(word) + 16 <= document_end) {
      keys[i] = WordCache::key_of(word, size);
    } else {
      char last[16] = {};
      std::memcpy(last, word, size);
      keys[i] = WordCache::key_of(last, size);
    }
    hashes[i] = keys[i].hash();
    cache.fetch(hashes[i]);
  }
  std::uint32_t* next = found.data();
  from = begin;
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view word{text + from, ends[i] - from};
    from = ends[i];
    std::span<const std::uint32_t> ids;
    if (keys[i].high != 0) {
      const WordCache::Slot* slot = cache.find(keys[i], hashes[i]);
      if (slot != nullptr && slot->count <= 3) {
        std::memcpy(next, slot->tokens, sizeof slot->tokens);
        next += slot->count;
        continue;
      }
      if (slot != nullptr) {
        ids = {cache.ids(*slot), slot->count};
      } else {
        ids = this->word(word);
        cache.insert(keys[i], hashes[i], ids);
      }
    } else {
      ids = long_word(word);
    }
    out.insert(out.end(), found.data(), next);
    next = found.data();
    out.insert(out.end(), ids.begin(), ids.end());
  }
  out.insert(out.end(), found.data(), next);
}

std::span<const std::uint32_t> Encoder::Inside::word(std::string_view word) {
  symbols.clear();
  if (recipe.ignore_merges) {
    auto whole = recipe.whole_words.find(std::string(word));
    if (whole != recipe.whole_words.end()) {
      symbols.push_back(whole->second);
      return symbols;
    }
  }
  for (char c : word) {
    std::uint32_t id = recipe.byte_ids[static_cast<unsigned char>(c)];
    if (id != Tokenizer::Inside::kNone) symbols.push_back(id);
  }
  return {symbols.data(), merger.merge(symbols)};
}

std::span<const std::uint32_t> Encoder::Inside::long_word(
    std::string_view word) {
  std::uint64_t hash = WordCache::hash_long(word);
  std::span<const std::uint32_t> known = cache.find_long(word, hash);
  if (known.data() != nullptr) return known;
  known = this->word(word);
  cache.insert_long(word, hash, known);
  return known;
}

void Encoder::Inside::truncate(std::size_t first, bool special,
                               std::vector<std::uint32_t>& out) const {
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

Encoder::Encoder(std::shared_ptr<const Tokenizer> tokenizer)
    : inside_(std::make_unique<Inside>(std::move(tokenizer))) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, bool special,
                     std::vector<std::uint32_t>& out) {
  Inside& in = *inside_;
  const Tokenizer::Inside& recipe = in.recipe;
  if (text.size() > kLongest)
    throw Error(ErrorKind::transform,
                {.code = "tokenizer.document",
                 .what = "cannot tokenise a document",
                 .why = "it has " + std::to_string(text.size()) +
                        " bytes, at most 2147483648 can be used",
                 .next = "cut it into several documents"});
  if (special)
    out.insert(out.end(), recipe.before.begin(), recipe.before.end());
  std::size_t first = out.size();
  bool padded;
  std::string_view document = in.copied(text, padded);
  if (recipe.raw.empty()) {
    in.normalise(document, out, padded);
  } else {
    in.raw_parts.clear();
    recipe.raw.cut(document, in.raw_parts);
    for (const TokenSearch::Part& part : in.raw_parts) {
      if (part.id != TokenSearch::kNone)
        out.push_back(part.id);
      else
        in.normalise(document.substr(part.begin, part.end - part.begin), out,
                     padded);
    }
  }
  in.truncate(first, special, out);
  if (special)
    out.insert(out.end(), recipe.behind.begin(), recipe.behind.end());
}

std::size_t Encoder::invalid_utf8() const { return inside_->invalid; }

}  // namespace penstock
