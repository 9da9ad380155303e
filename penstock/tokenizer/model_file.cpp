// The model of a tokenizer.json.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "penstock/tokenizer/byte_level.h"
#include "penstock/tokenizer/recipe_parts.h"

namespace penstock {
namespace {

/// The number that the `tokenizers` library has where this one is in its file:
/// its reader (serde_json, without `float_roundtrip`) rounds twice, first the
/// digits to a float64, then that times or by a power of ten. Sums of scores
/// that are equal but for that decide between pieces.
double as_tokenizers_reads(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), std::abs(number),
                                 std::chars_format::scientific)
                       .ptr;
  // "1.2345e-05": the shortest digits that tell it apart.
  const char* mark = std::find(text, end, 'e');
  if (mark == end) return number;  // not finite
  std::uint64_t digits = 0;
  for (const char* at = text; at != mark; ++at)
    if (*at != '.')
      digits = 10 * digits + static_cast<std::uint64_t>(*at - '0');
  int exponent = 0;
  std::from_chars(mark + (mark[1] == '+' ? 2 : 1), end, exponent);
  exponent -= static_cast<int>(std::max<std::ptrdiff_t>(0, mark - text - 2));
  constexpr int kMost = 308;  // of a power of ten
  auto found = static_cast<double>(digits);
  for (; exponent < -kMost; exponent += kMost) found /= 1e308;
  double power = 1;
  const std::string ten = "1e" + std::to_string(std::abs(exponent));
  std::from_chars(ten.data(), ten.data() + ten.size(), power);
  return std::copysign(exponent < 0 ? found / power : found * power, number);
}

/// Which model it is, where its file does not say so.
std::string type_of(const FileValue& part) {
  if (FileValue type = part.at("type"); !type.is_null()) return type.text();
  if (!part.at("merges").is_null()) return "BPE";
  if (part.at("vocab").json().is_array()) return "Unigram";
  return part.at("max_input_chars_per_word").is_null() ? "WordLevel"
                                                       : "WordPiece";
}

std::optional<std::uint32_t> unknown_token(const FileValue& part,
                                           std::string otherwise,
                                           const Recipe& recipe) {
  if (FileValue named = part.at("unk_token"); !named.is_null())
    otherwise = named.text();
  return recipe.ids.find(otherwise);
}

void read_word_piece(const FileValue& part, Recipe& recipe) {
  read_vocabulary(part, recipe);
  WordPieces& pieces = recipe.pieces;
  std::string prefix = "##";
  if (FileValue given = part.at("continuing_subword_prefix"); !given.is_null())
    prefix = given.text();
  recipe.ids.each([&](const TokenIds::Token& token) {
    const std::string_view text = token.text;
    if (!text.empty()) pieces.first.add(text, token.id);
    if (text.size() > prefix.size() && text.starts_with(prefix))
      pieces.later.add(text.substr(prefix.size()), token.id);
  });
  if (FileValue most = part.at("max_input_chars_per_word"); !most.is_null())
    pieces.longest = static_cast<std::size_t>(most.whole(0, INT32_MAX));
  pieces.unknown = unknown_token(part, "[UNK]", recipe);
  recipe.make_model = [](const Recipe& of) {
    return word_piece_model(of.pieces);
  };
}

void read_word_level(const FileValue& part, Recipe& recipe) {
  read_vocabulary(part, recipe);
  recipe.words.ids = recipe.ids;
  recipe.words.unknown = unknown_token(part, "<unk>", recipe);
  recipe.make_model = [](const Recipe& of) {
    return word_level_model(of.words);
  };
}

void read_unigram(const FileValue& part, Recipe& recipe) {
  const FileValue list = part.at("vocab");
  const std::size_t count = list.size();
  if (count > Merges::kMostTokens)
    list.too_large(std::to_string(count) + " tokens",
                   std::to_string(Merges::kMostTokens));
  Unigrams& unigrams = recipe.unigrams;
  double least = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const FileValue entry = list.item(i);
    if (entry.size() != 2 || !entry.item(1).json().is_number())
      entry.wrong("a list of a token and its score");
    const std::string& token = entry.item(0).text();
    const double score = as_tokenizers_reads(entry.item(1).json().number());
    const auto id = static_cast<std::uint32_t>(i);
    place_token(token, id, recipe);
    recipe.ids.set(token, id);
    if (!token.empty()) unigrams.tokens.add(token, id);
    unigrams.scores.push_back(score);
    least = i == 0 ? score : std::min(least, score);
  }
  // The penalty of SentencePiece and `tokenizers` (kUnkPenalty, K_UNK_PENALTY):
  // a character without a token is worse than the worst token.
  unigrams.unknown_score = least - 10;
  if (FileValue unknown = part.at("unk_id"); !unknown.is_null()) {
    if (count == 0) unknown.wrong("the id of a token of an empty vocabulary");
    unigrams.unknown = static_cast<std::uint32_t>(
        unknown.whole(0, static_cast<std::int64_t>(count) - 1));
  }
  unigrams.falls_back = part.at("byte_fallback").flag(false);
  fallback_ids(recipe.ids, unigrams.fallback_ids);
  recipe.make_model = [](const Recipe& of) {
    return unigram_model(of.unigrams);
  };
}

}  // namespace

void place_token(const std::string& token, std::uint32_t id, Recipe& recipe) {
  if (recipe.written.size() <= id) {
    recipe.written.resize(id + 1);
    recipe.bytes.resize(id + 1);
    recipe.special.resize(id + 1);
  }
  recipe.written[id] = token;
  if (!bytes_of_token(token, recipe.bytes[id])) recipe.bytes[id] = token;
}

void read_vocabulary(const FileValue& part, Recipe& recipe) {
  FileValue vocabulary = part.at("vocab");
  if (!vocabulary.json().is_object()) vocabulary.wrong("an object");
  const Json::Object& tokens = vocabulary.json().object();
  if (tokens.size() > Merges::kMostTokens)
    vocabulary.too_large(std::to_string(tokens.size()) + " tokens",
                         std::to_string(Merges::kMostTokens));
  recipe.ids.reserve(tokens.size());
  for (const auto& [token, id] : tokens) {
    FileValue value(id, "", "");
    const auto* number = std::get_if<std::int64_t>(&id.value());
    if (number == nullptr || *number < 0 ||
        *number >= static_cast<std::int64_t>(Merges::kMostTokens))
      value = vocabulary.at(token);  // says where it stands
    std::uint32_t known = value.id();
    place_token(token, known, recipe);
    recipe.ids.add(token, known);
  }
}

bool fallback_ids(const TokenIds& ids, std::array<std::uint32_t, 256>& out) {
  constexpr char digits[] = "0123456789ABCDEF";
  bool all = true;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char name[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15],
                         '>', '\0'};
    const std::optional<std::uint32_t> found = ids.find(name);
    out[byte] = found.value_or(BytePairs::kNone);
    all = all && found.has_value();
  }
  return all;
}

void read_model(const FileValue& part, const FileValue& pre_tokenizer,
                Recipe& recipe) {
  const std::string type = type_of(part);
  if (type == "BPE")
    read_bpe(part, pre_tokenizer, recipe);
  else if (type == "WordPiece")
    read_word_piece(part, recipe);
  else if (type == "WordLevel")
    read_word_level(part, recipe);
  else if (type == "Unigram")
    read_unigram(part, recipe);
  else
    part.at("type").unknown("the model '" + type + "'");
}

}  // namespace penstock
