// The model of a tokenizer.json, and its added tokens.
#include <algorithm>
#include <array>

#include "penstock/tokenizer/byte_level.h"
#include "penstock/tokenizer/own_tokens.h"
#include "penstock/tokenizer/recipe_parts.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

/// What is merged, as written.
using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

/// "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> halves(const FileValue& merges,
                                                     std::size_t which) {
  // Where a merge stands is asked for only if it is wrong: there are many.
  const Json& json = merges.json().array()[which];
  if (json.is_string()) {
    const std::string_view text = json.string();
    const std::size_t space = text.find(' ');
    if (space != text.npos && text.find(' ', space + 1) == text.npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  const FileValue merge = merges.item(which);
  if (merge.json().is_array()) {
    if (merge.size() != 2) merge.wrong("a list of two tokens");
    return {merge.item(0).text(), merge.item(1).text()};
  }
  if (!merge.json().is_string()) merge.wrong("a text");
  merge.wrong("two tokens with one space between them");
}

Pairs read_halves(const FileValue& merges, const Recipe& recipe) {
  const std::size_t count = merges.size();
  if (count > Merges::kMostMerges)
    merges.too_large(std::to_string(count) + " merges",
                     std::to_string(Merges::kMostMerges));
  Pairs texts;
  texts.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    texts.push_back(halves(merges, i));
    if (texts.back().second.size() < recipe.pairs.prefix.size())
      merges.item(i).wrong(
          "the second token of this merge is shorter than the prefix",
          "compare this file with the one that the model came with");
  }
  return texts;
}

/// The ids of both halves of all merges. Memory is slow: it is asked for what
/// is looked at some merges later.
/// A look-up waits for memory twice, for the slot and for the text it points
/// to. They are asked for in a ring of kAhead merges: the slot when a merge
/// enters the ring, the text half a ring later, by when the slot has arrived.
class HalfIds {
 public:
  HalfIds(const Pairs& merges, const TokenIds& ids)
      : merges_(merges), ids_(ids) {
    for (std::size_t i = 0; i < kAhead; ++i) ask(i);
  }

  using Id = std::optional<std::uint32_t>;
  /// To be called for one after the other.
  std::pair<Id, Id> of(std::size_t which) {
    const auto [first, second] = hashes_[which % kAhead];
    const std::pair<Id, Id> found = {ids_.find(merges_[which].first, first),
                                     ids_.find(merges_[which].second, second)};
    ask(which + kAhead);
    const auto& next = hashes_[(which + kAhead / 2) % kAhead];
    ids_.fetch_token(next.first);
    ids_.fetch_token(next.second);
    return found;
  }

 private:
  static constexpr std::size_t kAhead = 32;

  void ask(std::size_t which) {
    if (which >= merges_.size()) return;
    auto& [first, second] = hashes_[which % kAhead];
    first = TokenIds::hash_of(merges_[which].first);
    second = TokenIds::hash_of(merges_[which].second);
    ids_.fetch_slot(first);
    ids_.fetch_slot(second);
  }

  const Pairs& merges_;
  const TokenIds& ids_;
  std::array<std::pair<std::uint64_t, std::uint64_t>, kAhead> hashes_ = {};
};

std::uint32_t known_id(std::optional<std::uint32_t> id, std::string_view token,
                       const FileValue& merges, std::size_t which) {
  if (!id)
    merges.item(which).wrong(
        "the token '" + std::string(token) +
            "' of this merge is not in the vocabulary",
        "compare this file with the one that the model came with");
  return *id;
}

Pairs read_merges(const FileValue& part, Recipe& recipe) {
  const FileValue list = part.at("merges");
  Pairs texts = read_halves(list, recipe);
  std::vector<Merges::Merge> merges;
  merges.reserve(texts.size());
  HalfIds ids(texts, recipe.ids);
  std::string whole;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto& [first, second] = texts[i];
    whole.assign(first);
    whole += second.substr(recipe.pairs.prefix.size());
    // In most files the next merge makes the next id.
    const std::size_t next = merges.empty() ? 0 : merges.back().whole + 1u;
    const bool is_next =
        next < recipe.written.size() && recipe.written[next] == whole;
    const auto [first_id, second_id] = ids.of(i);
    merges.push_back({known_id(first_id, first, list, i),
                      known_id(second_id, second, list, i),
                      is_next
                          ? static_cast<std::uint32_t>(next)
                          : known_id(recipe.ids.find(whole), whole, list, i)});
  }
  recipe.pairs.merges = Merges(merges);
  return texts;
}

/// Whether words of byte-level characters are encoded byte by byte.
bool knows_bytes(Recipe& recipe) {
  BytePairs& pairs = recipe.pairs;
  bool all = true;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::optional<std::uint32_t> found =
        recipe.ids.find(character_of_byte(static_cast<unsigned char>(byte)));
    pairs.byte_ids[byte] = found.value_or(BytePairs::kNone);
    all = all && found.has_value();
  }
  return pairs.prefix.empty() && pairs.suffix.empty() &&
         (all || (!pairs.unknown && !pairs.falls_back));
}

std::string text_or_empty(const FileValue& member) {
  return member.is_null() ? std::string() : member.text();
}

/// Whether each character becomes tokens.
bool read_marks(const FileValue& part, Recipe& recipe) {
  BytePairs& pairs = recipe.pairs;
  pairs.prefix = text_or_empty(part.at("continuing_subword_prefix"));
  pairs.suffix = text_or_empty(part.at("end_of_word_suffix"));
  pairs.fuse_unknown = part.at("fuse_unk").flag(false);
  pairs.ignore_merges = part.at("ignore_merges").flag(false);
  if (FileValue unknown = part.at("unk_token"); !unknown.is_null())
    pairs.unknown = recipe.ids.find(unknown.text());
  pairs.falls_back = part.at("byte_fallback").flag(false);
  const bool complete =
      fallback_ids(recipe.ids, pairs.fallback_ids) && pairs.falls_back;
  if (complete) pairs.unknown.reset();
  return complete;
}

/// Cuts are right where each character is encoded by itself: where one is left
/// out, those beside it may merge.
/// A merge of fallback bytes (<0x0A>) would join parts of characters, which a
/// cut between characters does not see, so such a model is not cut.
void make_cuts(const Pairs& merges, Recipe& recipe) {
  const BytePairs& pairs = recipe.pairs;
  if (pairs.ignore_merges || !pairs.prefix.empty() || !pairs.suffix.empty() ||
      pairs.unknown)
    return;
  for (const auto& [first, second] : merges)
    for (std::string_view half : {first, second})
      if (half.empty() || (half.size() == 6 && half.starts_with("<0x"))) return;
  recipe.cuts.emplace();
  for (const auto& [first, second] : merges) recipe.cuts->add(first, second);
}

/// Cuts of words of bytes, in which no byte is left out.
void make_byte_cuts(const Pairs& merges, BytePairs& pairs) {
  if (std::ranges::count(pairs.byte_ids, BytePairs::kNone) > 0) return;
  MergeCuts cuts;
  std::string one, two;
  for (const auto& [first, second] : merges) {
    // Bytes never become other tokens.
    if (!bytes_of_token(first, one) || !bytes_of_token(second, two)) continue;
    if (one.empty() || two.empty()) return;
    cuts.add(one, two);
  }
  pairs.byte_cuts = std::move(cuts);
}

/// Asks the memory for where add_known() puts a word.
void fetch_known(const std::string& word, const BytePairs& pairs) {
  if (word.size() > WordCache::kShort) return;
  __builtin_prefetch(pairs.known->line_of(WordCache::key_of_copy(word)));
}

void add_known(const std::string& word, std::uint32_t id, BytePairs& pairs) {
  if (word.empty()) return;
  if (word.size() <= WordCache::kShort) {
    const WordCache::Key key = WordCache::key_of_copy(word);
    pairs.known->insert(key, {&id, 1});
  } else if (pairs.ignore_merges) {
    pairs.whole_words.add(word, id);
  }
}

/// All words that are tokens.
void make_all_known(Recipe& recipe) {
  recipe.pairs.known.emplace(recipe.ids.size());
  std::string bytes;
  recipe.ids.each([&](const TokenIds::Token& token) {
    if (bytes_of_token(token.text, bytes))
      add_known(bytes, token.id, recipe.pairs);
  });
}

/// A token, if it is a character of several bytes.
void add_character(const std::string& token, std::uint32_t id,
                   BytePairs& pairs) {
  constexpr std::size_t kCodes = 0x10000;
  if (token.size() < 2 || token.size() > 3 ||
      unicode::first_invalid(token) != token.size())
    return;
  std::uint32_t size;
  const std::uint32_t code = unicode::code_at(token.data(), size);
  if (size != token.size()) return;
  if (pairs.characters.empty()) pairs.characters.assign(kCodes, Merges::kNone);
  pairs.characters[code] = id;
}

/// The short words that are merged to one token.
void make_own_known(Recipe& recipe) {
  const std::size_t size = recipe.written.size();
  const auto tokens = std::ranges::count_if(
      recipe.written, [](const auto& token) { return token.has_value(); });
  // Where tokens share an id it is not known which is which.
  if (static_cast<std::size_t>(tokens) != recipe.ids.size()) return;
  BytePairs& pairs = recipe.pairs;
  const std::vector<bool> own = own_tokens(pairs.merges, pairs.byte_ids, size);
  pairs.known.emplace(recipe.ids.size());
  constexpr std::size_t kAhead = 16;
  for (std::uint32_t id = 0; id < size; ++id) {
    if (id + kAhead < size && own[id + kAhead])
      fetch_known(recipe.bytes[id + kAhead], pairs);
    if (!own[id]) continue;
    add_known(recipe.bytes[id], id, pairs);
    if (pairs.byte_cuts) add_character(recipe.bytes[id], id, pairs);
  }
}

AddedToken read_added(const FileValue& entry) {
  return {.id = entry.at("id").id(),
          .content = entry.at("content").text(),
          .special = entry.at("special").flag(false),
          .normalized = entry.at("normalized").flag(true),
          .lstrip = entry.at("lstrip").flag(false),
          .rstrip = entry.at("rstrip").flag(false),
          .single_word = entry.at("single_word").flag(false)};
}

}  // namespace

void read_bpe(const FileValue& part, const FileValue& pre_tokenizer,
              Recipe& recipe) {
  if (FileValue dropout = part.at("dropout"); !dropout.is_null()) {
    if (!dropout.json().is_number()) dropout.wrong("a number");
    if (dropout.json().number() != 0) dropout.unknown("dropout");
  }
  read_vocabulary(part, recipe);
  const bool complete = read_marks(part, recipe);
  const Pairs merges = read_merges(part, recipe);
  recipe.knows_bytes = knows_bytes(recipe);
  if (recipe.knows_bytes && ends_in_bytes(pre_tokenizer)) {
    recipe.make_model = [](const Recipe& of) { return byte_model(of.pairs); };
    make_byte_cuts(merges, recipe.pairs);
    if (recipe.pairs.ignore_merges)
      make_all_known(recipe);
    else if (recipe.pairs.merges.in_order())
      make_own_known(recipe);
    return;
  }
  recipe.pairs.ids = recipe.ids;
  if (complete) make_cuts(merges, recipe);
  recipe.make_model = [](const Recipe& of) {
    return character_model(of.pairs);
  };
}

void read_added_tokens(const FileValue& part, Recipe& recipe) {
  if (part.is_null()) return;
  std::size_t model_size = recipe.ids.size();
  std::size_t most = 0;  // of the ids added so far, and one
  for (std::size_t i = 0; i < part.size(); ++i) {
    FileValue entry = part.item(i);
    AddedToken token = read_added(entry);
    if (token.content.empty()) continue;
    const std::optional<std::uint32_t> known = recipe.ids.find(token.content);
    // The numbers that `tokenizers` gives, whatever the file says.
    const std::size_t id = known ? *known : std::max(model_size, most);
    if (id != token.id)
      entry.at("id").unknown("a token whose id is not " + std::to_string(id) +
                             ", which is the next one,");
    most = std::max(most, id + 1);
    // The library looks for it, and writes it, unchanged when it is normalised.
    std::string searched = token.content;
    if (token.normalized && !recipe.normalizers.empty()) {
      Aligned text;
      text.assign(token.content, 0, false);
      for (const auto& step : recipe.normalizers) step->apply(text);
      searched = text.text;
    }
    place_token(searched, token.id, recipe);
    recipe.ids.add(token.content, token.id);
    recipe.special[token.id] = token.special;
    (token.normalized ? recipe.normalized : recipe.raw).add(token, searched);
  }
}

}  // namespace penstock
