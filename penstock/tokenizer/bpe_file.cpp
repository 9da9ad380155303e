// The model of a tokenizer.json, and its added tokens.
#include <algorithm>

#include "penstock/tokenizer/byte_level.h"
#include "penstock/tokenizer/composition.h"
#include "penstock/tokenizer/recipe_parts.h"

namespace penstock {
namespace {

/// Writes a token at its id; `written` grows as needed.
void place(const std::string& token, std::uint32_t id,
           Tokenizer::Inside& recipe) {
  if (recipe.written.size() <= id) {
    recipe.written.resize(id + 1);
    recipe.bytes.resize(id + 1);
    recipe.special.resize(id + 1);
  }
  recipe.written[id] = token;
  recipe.bytes[id] = bytes_of_token(token).value_or(token);
}

void read_vocabulary(const FileValue& part, Tokenizer::Inside& recipe) {
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
    place(token, known, recipe);
    recipe.ids.emplace(token, known);
  }
}

/// "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> halves(const FileValue& merge) {
  if (merge.json().is_array()) {
    if (merge.size() != 2) merge.wrong("a list of two tokens");
    return {merge.item(0).text(), merge.item(1).text()};
  }
  std::string_view text = merge.text();
  std::size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos)
    merge.wrong("two tokens with one space between them");
  return {text.substr(0, space), text.substr(space + 1)};
}

std::uint32_t token_id(const FileValue& merge, std::string_view token,
                       const Tokenizer::Inside& recipe) {
  auto found = recipe.ids.find(std::string(token));
  if (found == recipe.ids.end())
    merge.wrong("the token '" + std::string(token) +
                    "' of this merge is not in the vocabulary",
                "compare with the file that the model came with");
  return found->second;
}

void read_merges(const FileValue& part, Tokenizer::Inside& recipe) {
  FileValue list = part.at("merges");
  std::size_t count = list.size();
  if (count > Merges::kMostMerges)
    list.too_large(std::to_string(count) + " merges",
                   std::to_string(Merges::kMostMerges));
  std::vector<Merges::Merge> merges;
  merges.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    FileValue merge = list.item(i);
    auto [first, second] = halves(merge);
    std::string whole(first);
    whole += second;
    merges.push_back({token_id(merge, first, recipe),
                      token_id(merge, second, recipe),
                      token_id(merge, whole, recipe)});
  }
  recipe.merges = Merges(merges);
}

void read_bytes(const FileValue& part, Tokenizer::Inside& recipe) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    auto found =
        recipe.ids.find(character_of_byte(static_cast<unsigned char>(byte)));
    bool known = found != recipe.ids.end();
    recipe.byte_ids[byte] = known ? found->second : Tokenizer::Inside::kNone;
    if (known) continue;
    if (!part.at("unk_token").is_null())
      part.at("unk_token").unknown("an unknown token among bytes");
    if (part.at("byte_fallback").flag(false))
      part.at("byte_fallback").unknown("byte_fallback among bytes");
  }
}

void refuse_text(const FileValue& member, std::string_view asked) {
  if (!member.is_null() && !member.text().empty()) member.unknown(asked);
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

void read_bpe(const FileValue& part, Tokenizer::Inside& recipe) {
  FileValue type = part.at("type");
  if (!type.is_null() && type.text() != "BPE")
    type.unknown("the model '" + type.text() + "'");
  if (FileValue dropout = part.at("dropout"); !dropout.is_null()) {
    if (!dropout.json().is_number()) dropout.wrong("a number");
    if (dropout.json().number() != 0) dropout.unknown("dropout");
  }
  refuse_text(part.at("continuing_subword_prefix"),
              "a prefix of what continues a word");
  refuse_text(part.at("end_of_word_suffix"), "a suffix of the end of a word");
  read_vocabulary(part, recipe);
  read_merges(part, recipe);
  read_bytes(part, recipe);
  recipe.ignore_merges = part.at("ignore_merges").flag(false);
  if (!recipe.ignore_merges) return;
  for (const auto& [token, id] : recipe.ids)
    if (std::optional<std::string> bytes = bytes_of_token(token))
      recipe.whole_words.emplace(std::move(*bytes), id);
}

void read_added_tokens(const FileValue& part, Tokenizer::Inside& recipe) {
  if (part.is_null()) return;
  std::size_t model_size = recipe.ids.size();
  std::size_t most = 0;  // of the ids added so far, and one
  for (std::size_t i = 0; i < part.size(); ++i) {
    FileValue entry = part.item(i);
    AddedToken token = read_added(entry);
    if (token.content.empty()) continue;
    auto known = recipe.ids.find(token.content);
    // The numbers that `tokenizers` gives, whatever the file says.
    std::size_t id =
        known != recipe.ids.end() ? known->second : std::max(model_size, most);
    if (id != token.id)
      entry.at("id").unknown("a token whose id is not " + std::to_string(id) +
                             ", which is the next one,");
    most = std::max(most, id + 1);
    // The library looks for it, and writes it, as it is when it is normalised.
    std::string searched = token.content;
    if (token.normalized && recipe.composes) {
      searched.clear();
      unicode::append_composed(token.content, searched);
    }
    place(searched, token.id, recipe);
    recipe.ids.emplace(token.content, token.id);
    recipe.special[token.id] = token.special;
    (token.normalized ? recipe.normalized : recipe.raw).add(token, searched);
  }
}

}  // namespace penstock
