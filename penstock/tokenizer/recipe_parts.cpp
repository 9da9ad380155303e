#include "penstock/tokenizer/recipe_parts.h"

#include <vector>

namespace penstock {
namespace {

/// The members of a Sequence, or the part itself.
std::vector<FileValue> sequence(const FileValue& part, std::string_view key) {
  if (part.type() != "Sequence") return {part};
  FileValue list = part.at(key);
  std::vector<FileValue> all;
  for (std::size_t i = 0; i < list.size(); ++i) all.push_back(list.item(i));
  return all;
}

std::string quoted(std::string_view kind, const std::string& name) {
  return std::string(kind) + " '" + name + "'";
}

/// The regular expression of a Split whose pieces are what matches; empty where
/// the part is another.
std::string_view pattern_of(const FileValue& split) {
  if (split.type() != "Split") return {};
  const FileValue regex = split.at("pattern").at("Regex");
  const FileValue behavior = split.at("behavior");
  if (regex.is_null() || behavior.is_null()) return {};
  const bool invert = split.at("invert").flag(false);
  if (!(behavior.text() == "Isolated" && !invert) &&
      !(behavior.text() == "Removed" && invert))
    return {};
  return regex.text();
}

/// ByteLevel, with its pattern or without.
bool is_byte_level(const FileValue& part, bool with_pattern) {
  return part.type() == "ByteLevel" &&
         part.at("use_regex").flag(true) == with_pattern;
}

bool is_deepseek(const std::vector<FileValue>& parts) {
  for (std::size_t i = 0; i < 3; ++i)
    if (pattern_of(parts[i]) != kDeepseekPatterns[i]) return false;
  return true;
}

/// The family of pre-tokenisers that one scanner knows, of words as bytes.
std::optional<Family> family_of(const std::vector<FileValue>& parts) {
  if (parts.size() == 1)
    return parts[0].at("use_regex").flag(true) ? Family::gpt2 : Family::whole;
  if (parts.size() == 2 && parts[0].type() == "Digits" &&
      parts[0].at("individual_digits").flag(false) &&
      is_byte_level(parts[1], true))
    return Family::command_r;
  const FileValue& last = parts.back();
  if (!is_byte_level(last, false)) return std::nullopt;
  // A space before each word is another matter.
  if (last.at("add_prefix_space").flag(true)) return std::nullopt;
  if (parts.size() == 4 && is_deepseek(parts)) return Family::deepseek;
  if (parts.size() != 2) return std::nullopt;
  return penstock::family_of(pattern_of(parts[0]));
}

/// A token's ids, or those of the entry of "special_tokens" that it names.
void read_piece(const FileValue& piece, const FileValue& special,
                bool& behind_text, Recipe& recipe) {
  if (FileValue sequence = piece.at("Sequence"); !sequence.is_null()) {
    if (sequence.at("id").text() != "A" || behind_text)
      sequence.wrong("the template for one text contains a second text",
                     "write \"single\" with one Sequence, A");
    behind_text = true;
    return;
  }
  const std::string& name = piece.at("SpecialToken").at("id").text();
  FileValue ids = special.at(name).at("ids");
  std::vector<std::uint32_t>& out = behind_text ? recipe.behind : recipe.before;
  for (std::size_t i = 0; i < ids.size(); ++i) out.push_back(ids.item(i).id());
}

void read_template(const FileValue& part, Recipe& recipe) {
  FileValue pieces = part.at("single");
  bool behind_text = false;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    read_piece(pieces.item(i), part.at("special_tokens"), behind_text, recipe);
  if (!behind_text)
    pieces.wrong("the template has no place for the text",
                 "write \"single\" with one Sequence, A");
}

/// Of [text, id].
std::uint32_t id_of_pair(const FileValue& pair) {
  if (pair.size() != 2) pair.wrong("a list of a token and its id");
  return pair.item(1).id();
}

}  // namespace

void read_normalizer(const FileValue& part, Recipe& recipe) {
  if (part.is_null()) return;
  recipe.composes = true;
  for (const FileValue& one : sequence(part, "normalizers"))
    recipe.composes = recipe.composes && one.type() == "NFC";
  recipe.normalizers = read_normalizers(part);
  recipe.composes = recipe.composes && !recipe.normalizers.empty();
}

void read_pre_tokenizer(const FileValue& part, Recipe& recipe) {
  const bool bytes = recipe.knows_bytes && ends_in_bytes(part);
  recipe.splitters = read_splitters(part, bytes);
  for (const auto& splitter : recipe.splitters)
    recipe.asks_where = recipe.asks_where || splitter->asks_where();
  if (!bytes) return;
  const std::vector<FileValue> parts = sequence(part, "pretokenizers");
  const bool prefix = parts.back().at("add_prefix_space").flag(true);
  if (parts.size() > 1 && prefix) return;
  if (recipe.normalizers.empty() || recipe.composes)
    recipe.family = family_of(parts);
  recipe.prefix_space = prefix;
}

void read_post_processor(const FileValue& part, Recipe& recipe) {
  if (part.is_null()) return;
  bool has_template = false;
  for (const FileValue& one : sequence(part, "processors")) {
    const std::string& type = one.type();
    if (type == "ByteLevel") {
      recipe.trims_offsets = one.at("trim_offsets").flag(true);
      recipe.trims_behind_prefix = one.at("add_prefix_space").flag(true);
      continue;
    }
    if (has_template) one.unknown("a second template");
    has_template = true;
    if (type == "TemplateProcessing") {
      read_template(one, recipe);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      recipe.before = {id_of_pair(one.at("cls"))};
      recipe.behind = {id_of_pair(one.at("sep"))};
      if (type == "RobertaProcessing") {
        recipe.trims_offsets = one.at("trim_offsets").flag(true);
        recipe.trims_behind_prefix = one.at("add_prefix_space").flag(true);
      }
    } else {
      one.unknown(quoted("the post-processor", type));
    }
  }
}

void read_decoder(const FileValue& part, Recipe& recipe) {
  bool bytes = !part.is_null();
  if (bytes)
    for (const FileValue& one : sequence(part, "decoders"))
      bytes = bytes && one.type() == "ByteLevel";
  if (!bytes) recipe.decoding.emplace(part);
}

}  // namespace penstock
