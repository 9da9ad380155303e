#include "penstock/tokenizer/offsets.h"

#include <algorithm>

#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

using unicode::Character;

/// White space, or the character of a byte that is a space.
bool is_blank(const Character& c) {
  return c.in(unicode::kSpaces) || c.code == 0x120;
}

/// How many blanks a token begins with, and ends with.
std::pair<std::uint32_t, std::uint32_t> blanks(std::string_view token) {
  const unicode::Text text{token.data(), token.size()};
  std::uint32_t leading = 0, trailing = 0;
  bool begins = true;
  for (std::size_t at = 0; at < token.size();) {
    const Character c = text.at(at);
    at += c.size;
    const bool blank = is_blank(c);
    begins = begins && blank;
    leading += begins ? 1 : 0;
    trailing = blank ? trailing + 1 : 0;
  }
  return {leading, trailing};
}

}  // namespace

// Offsets of `tokenizers` count code points, not bytes. A byte within a
// character, at which a byte-level token may begin, has the number of its
// character.
void count_characters(std::string_view document,
                      std::span<TokenOffsets> offsets) {
  std::vector<std::uint32_t> before(document.size() + 1);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < document.size(); ++i) {
    before[i] = count;
    // Within a character: where it ends.
    if (i + 1 == document.size() ||
        (static_cast<unsigned char>(document[i + 1]) & 0xC0) != 0x80)
      ++count;
  }
  before[document.size()] = count;
  for (TokenOffsets& of : offsets) of = {before[of.begin], before[of.end]};
}

void trim_offsets(const Recipe& recipe, std::span<const std::uint32_t> ids,
                  std::span<TokenOffsets> offsets) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    TokenOffsets& of = offsets[i];
    auto [leading, trailing] = blanks(*recipe.written[ids[i]]);
    const bool first = i == 0 || of.begin == 0;
    if (first && recipe.trims_behind_prefix) leading = 0;
    of.begin = std::min(of.begin + leading, of.end);
    if (trailing > 0 && of.end >= trailing)
      of.end = std::max(of.end - trailing, of.begin);
  }
}

}  // namespace penstock
