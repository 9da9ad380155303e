#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::unicode {

/// What parts of `tokenizers` make of a character, each with tables of its own
/// age.
enum Flag : std::uint8_t {
  kStrippedMark = 1,  ///< StripAccents leaves it out
  kBertMark = 2,      ///< BertNormalizer's strip_accents does
  kControl = 4,       ///< its clean_text does
  kChinese = 8,       ///< it puts spaces around it
  kCutMark = 16,      ///< Punctuation and BertPreTokenizer cut at it
  kDigit = 32,        ///< Digits does
  kDecimal = 64,      ///< Nd of Unicode 16.0
};

/// How characters join into what is read as one (UAX 29, Unicode 17.0).
enum class Grapheme : std::uint8_t {
  other,
  control,
  extend,
  conjunct_extend,
  conjunct_linker,
  joiner,
  regional,
  prepend,
  spacing,
  lead,
  vowel,
  tail,
  pictograph,
  conjunct_consonant,
  syllable,  ///< of Hangul, without a tail
  syllable_with_tail,
};

/// The flags of each code point: 0x110000 entries. Made at the first call.
const std::uint8_t* flags();
Grapheme grapheme_of(std::uint32_t code);
/// Script=Han of Unicode 16.0.
bool is_ideograph(std::uint32_t code);
/// The lower case of a character by itself; U+0130 becomes two, of which this
/// is the first.
std::uint32_t lowered(std::uint32_t code);

/// The end of the grapheme cluster that begins at `at` of a text that is UTF-8.
std::size_t grapheme_end(const char* text, std::size_t size, std::size_t at);

// What tools/make_unicode_tables.py has written.
extern const std::uint32_t kFlagSteps[];
extern const std::size_t kFlagStepsSize;
extern const std::uint32_t kGraphemeSteps[];
extern const std::size_t kGraphemeStepsSize;
extern const std::uint32_t kLowered[];
extern const std::size_t kLoweredSize;
extern const std::uint32_t kHanSteps[];
extern const std::size_t kHanStepsSize;

}  // namespace penstock::unicode
