#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::unicode {

/// The classes of characters that patterns tell apart: the general categories
/// of Unicode 16.0, with White_Space before all others.
enum Class : std::uint8_t {
  kOther,
  kSpace,
  kUpper,
  kLower,
  kTitle,
  kModifier,
  kOtherLetter,
  kMark,
  kNumber,       ///< Nd and Nl
  kOtherNumber,  ///< No
  kConnector,    ///< Pc
  kPunctuation,  ///< the other P
  kSymbol,
  kEnd,  ///< behind the text
};

/// A set of classes.
using Classes = std::uint32_t;
constexpr Classes set_of() { return 0; }
template <class... Rest>
constexpr Classes set_of(Class first, Rest... rest) {
  return 1u << first | set_of(rest...);
}
constexpr Classes kLetters =
    set_of(kUpper, kLower, kTitle, kModifier, kOtherLetter);
constexpr Classes kNumbers = set_of(kNumber, kOtherNumber);
constexpr Classes kPunctuations = set_of(kConnector, kPunctuation);
constexpr Classes kSpaces = set_of(kSpace);
/// [^\s\p{L}\p{N}], within a text.
constexpr Classes kRest = set_of(kOther, kMark, kSymbol) | kPunctuations;

/// The class of each code point: 0x110000 entries. Made at the first call.
const std::uint8_t* classes();

/// A character of a text.
struct Character {
  std::uint32_t code;
  Class kind;
  std::uint32_t size;  ///< in bytes; 0 at the end

  bool in(Classes set) const { return (set >> kind & 1) != 0; }
};

/// The code point at `from` of a text that is UTF-8, and its bytes.
inline std::uint32_t code_at(const char* from, std::uint32_t& size) {
  auto byte = [from](int i) { return static_cast<std::uint8_t>(from[i]); };
  std::uint32_t first = byte(0);
  if (first < 0x80) {
    size = 1;
    return first;
  }
  if (first < 0xE0) {
    size = 2;
    return (first & 0x1F) << 6 | (byte(1) & 0x3Fu);
  }
  if (first < 0xF0) {
    size = 3;
    return (first & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  }
  size = 4;
  return (first & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 |
         (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
}

inline bool is_ascii(std::string_view text) {
  std::uint64_t seen = 0, part[4];
  std::size_t at = 0;
  for (; at + 32 <= text.size(); at += 32) {
    std::memcpy(part, text.data() + at, 32);
    seen |= (part[0] | part[1]) | (part[2] | part[3]);
  }
  for (; at < text.size(); ++at) seen |= static_cast<unsigned char>(text[at]);
  return (seen & 0x8080808080808080) == 0;
}

/// Where the run of ideographs from U+4E00 to U+9FFF ends that begins at `at`
/// of a text that is UTF-8: all of them are kOtherLetter, and none is part of a
/// composition.
std::size_t skip_ideographs(std::string_view text, std::size_t at);

/// A text that is UTF-8, with the classes of its characters.
struct Text {
  const char* bytes;
  std::size_t size;
  const std::uint8_t* table = classes();

  Character at(std::size_t place) const {
    if (place >= size) return {0, kEnd, 0};
    std::uint32_t taken;
    std::uint32_t code = code_at(bytes + place, taken);
    return {code, static_cast<Class>(table[code]), taken};
  }
  /// Where the run of characters of `set` ends that begins at `place`.
  std::size_t skip(Classes set, std::size_t place) const {
    Character c = at(place);
    while (c.in(set)) {
      place += c.size;
      if (c.kind == kOtherLetter) place = skip_ideographs({bytes, size}, place);
      c = at(place);
    }
    return place;
  }
};

void append(std::uint32_t code, std::string& out);

/// A difference as the tables hold it: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
/// Added to a code point, with its wrapping.
inline std::uint32_t unzigzag(std::uint32_t number) {
  return (number >> 1) ^ (0 - (number & 1));
}

/// \w of Rust's regular expressions at this place.
bool is_word(const Character& c);

/// Where a text is no UTF-8 for the first time; its size where it is all UTF-8.
std::size_t first_invalid(std::string_view text);
/// Appends a text with each maximal part that is no UTF-8 as U+FFFD, and
/// returns how many there were.
std::size_t append_valid(std::string_view text, std::string& out);
/// How many bytes at the end of a text may be the start of a character.
std::size_t unfinished(std::string_view text);

// What tools/make_unicode_tables.py has written: where classes begin, as
// differences of code point * 16 + class.
extern const std::uint32_t kClassSteps[];
extern const std::size_t kClassStepsSize;

}  // namespace penstock::unicode
