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

/// The regular expression of a Split whose pieces are what matches.
const std::string& pattern_of(const FileValue& split) {
  if (split.type() != "Split")
    split.unknown(quoted("the pre-tokenizer", split.type()) + " before others");
  FileValue pattern = split.at("pattern");
  if (pattern.at("Regex").is_null()) pattern.unknown("a Split by a plain text");
  const std::string& behavior = split.at("behavior").text();
  bool invert = split.at("invert").flag(false);
  if (!(behavior == "Isolated" && !invert) &&
      !(behavior == "Removed" && invert))
    split.unknown("a Split that is '" + behavior + "'" +
                  (invert ? ", inverted," : ""));
  return pattern.at("Regex").text();
}

void read_byte_level(const FileValue& part, bool with_pattern,
                     Tokenizer::Inside& recipe) {
  if (part.type() != "ByteLevel")
    part.unknown(quoted("the pre-tokenizer", part.type()));
  recipe.prefix_space = part.at("add_prefix_space").flag(true);
  if (part.at("use_regex").flag(true) != with_pattern)
    part.unknown(with_pattern ? "ByteLevel that leaves text whole"
                              : "ByteLevel's pattern behind another");
}

void read_deepseek(const std::vector<FileValue>& parts,
                   Tokenizer::Inside& recipe) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (pattern_of(parts[i]) != kDeepseekPatterns[i])
      parts[i].unknown("this pattern, one of three,");
  }
  recipe.family = Family::deepseek;
}

/// A token's ids, or those of the entry of "special_tokens" that it names.
void read_piece(const FileValue& piece, const FileValue& special,
                bool& behind_text, Tokenizer::Inside& recipe) {
  if (FileValue sequence = piece.at("Sequence"); !sequence.is_null()) {
    if (sequence.at("id").text() != "A" || behind_text)
      sequence.wrong("a template of one text holds another one",
                     "write \"single\" with one Sequence, A");
    behind_text = true;
    return;
  }
  const std::string& name = piece.at("SpecialToken").at("id").text();
  FileValue ids = special.at(name).at("ids");
  std::vector<std::uint32_t>& out = behind_text ? recipe.behind : recipe.before;
  for (std::size_t i = 0; i < ids.size(); ++i) out.push_back(ids.item(i).id());
}

void read_template(const FileValue& part, Tokenizer::Inside& recipe) {
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

void read_normalizer(const FileValue& part, Tokenizer::Inside& recipe) {
  if (part.is_null()) return;
  for (const FileValue& one : sequence(part, "normalizers")) {
    if (one.type() != "NFC") one.unknown(quoted("the normalizer", one.type()));
    recipe.composes = true;
  }
}

void read_pre_tokenizer(const FileValue& part, Tokenizer::Inside& recipe) {
  if (part.is_null()) part.unknown("a model without a pre-tokenizer");
  std::vector<FileValue> parts = sequence(part, "pretokenizers");
  if (parts.empty()) part.unknown("a model without a pre-tokenizer");
  if (parts.size() == 1) {
    bool pattern = parts[0].at("use_regex").flag(true);
    read_byte_level(parts[0], pattern, recipe);
    recipe.family = pattern ? Family::gpt2 : Family::whole;
    return;
  }
  if (parts.size() == 2 && parts[0].type() == "Digits") {
    if (!parts[0].at("individual_digits").flag(false))
      parts[0].unknown("Digits that are kept together");
    read_byte_level(parts[1], true, recipe);
    recipe.family = Family::command_r;
  } else {
    read_byte_level(parts.back(), false, recipe);
    if (parts.size() == 4) {
      read_deepseek(parts, recipe);
    } else if (parts.size() != 2) {
      part.unknown("a sequence of " + std::to_string(parts.size()) +
                   " pre-tokenizers");
    } else {
      std::optional<Family> family = family_of(pattern_of(parts[0]));
      if (!family) parts[0].at("pattern").at("Regex").unknown("this pattern");
      recipe.family = *family;
    }
  }
  if (recipe.prefix_space)
    parts.back().at("add_prefix_space").unknown("a space before each word");
}

void read_post_processor(const FileValue& part, Tokenizer::Inside& recipe) {
  if (part.is_null()) return;
  bool has_template = false;
  for (const FileValue& one : sequence(part, "processors")) {
    const std::string& type = one.type();
    if (type == "ByteLevel") continue;  // of offsets only
    if (has_template) one.unknown("a second template");
    has_template = true;
    if (type == "TemplateProcessing") {
      read_template(one, recipe);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      recipe.before = {id_of_pair(one.at("cls"))};
      recipe.behind = {id_of_pair(one.at("sep"))};
    } else {
      one.unknown(quoted("the post-processor", type));
    }
  }
}

void read_truncation(const FileValue& part, Tokenizer::Inside& recipe) {
  if (part.is_null()) return;
  std::size_t around = recipe.before.size() + recipe.behind.size();
  std::int64_t length = part.at("max_length").whole(1, INT32_MAX);
  std::int64_t stride =
      part.at("stride").is_null() ? 0 : part.at("stride").whole(0, INT32_MAX);
  if (length - static_cast<std::int64_t>(around) <= stride)
    part.wrong("of max_length " + std::to_string(length) +
                   " nothing is left for the text",
               "write a max_length above " +
                   std::to_string(stride + static_cast<std::int64_t>(around)));
  FileValue direction = part.at("direction");
  recipe.longest = static_cast<std::size_t>(length);
  recipe.keeps_end = !direction.is_null() && direction.text() == "Left";
  if (!direction.is_null() && !recipe.keeps_end && direction.text() != "Right")
    direction.wrong("\"Left\" or \"Right\"");
}

void read_decoder(const FileValue& part) {
  if (part.is_null()) part.unknown("a byte-level model without a decoder");
  for (const FileValue& one : sequence(part, "decoders"))
    if (one.type() != "ByteLevel")
      one.unknown(quoted("the decoder", one.type()));
}

}  // namespace penstock
