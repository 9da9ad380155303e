#include "penstock/transforms/tokens/token_texts.h"

#include <algorithm>

#include "penstock/base/utf8.h"

namespace penstock {

std::string_view text_in(const Column& column, std::int64_t row) {
  if (column.type.kind == ColumnKind::dictionary)
    return column.children[0].text(column.as_int64(row));
  return column.text(row);
}

std::optional<std::string_view> document_in(const Column& column,
                                            std::int64_t row,
                                            std::string& plain) {
  const std::string_view text = text_in(column, row);
  if (column.type != ColumnType::json) return text;
  if (!text.starts_with('"')) return std::nullopt;
  plain = Json::parse(text, "the text").string();
  return plain;
}

// Every byte that does not continue a character begins one, and as a signed
// number those that do are below -64. 240 bytes cannot overflow the count of a
// byte, which lets the compiler count in lanes of a byte.
std::int64_t characters_in(std::string_view text) {
  constexpr std::size_t kTogether = 240;  // counted in a byte each
  std::int64_t count = 0;
  for (std::size_t begin = 0; begin < text.size(); begin += kTogether) {
    std::uint8_t of_these = 0;
    for (char c : text.substr(begin, kTogether))
      of_these = static_cast<std::uint8_t>(
          of_these + (static_cast<signed char>(c) >= -64 ? 1 : 0));
    count += of_these;
  }
  return count;
}

TokenTexts::TokenTexts(const Tokens& tokens)
    : special_(tokens.special),
      strict_(tokens.strict_utf8),
      eos_(tokens.end ? std::int64_t{*tokens.end} : -1),
      encoder_(tokens.loaded) {}

bool TokenTexts::reads(const ColumnType& type) {
  return type.is_text() || type.kind == ColumnKind::binary ||
         type.kind == ColumnKind::dictionary;
}

std::string TokenTexts::read(const Column& column, std::int64_t row,
                             DocumentNote& note) {
  ids_.clear();
  const std::optional<std::string_view> found =
      document_in(column, row, plain_);
  if (!found)
    return "holds " + beginning(text_in(column, row)) + ", expected a text";
  const std::string_view text = *found;
  if (strict_ && !is_utf8(text))
    return "holds " + shown_text(text) + ", expected UTF-8";
  const std::size_t before = encoder_.invalid_utf8();
  try {
    encoder_.encode(text, special_, ids_);
  } catch (const Error& error) {
    return "holds " + beginning(text) + ": " + error.parts().why;
  }
  if (eos_ >= 0) ids_.push_back(static_cast<std::uint32_t>(eos_));
  note.bytes = static_cast<std::int64_t>(text.size());
  note.characters = characters_in(text);
  note.invalid_utf8 = encoder_.invalid_utf8() != before;
  return {};
}

}  // namespace penstock
