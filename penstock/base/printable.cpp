#include "penstock/base/printable.h"

#include <algorithm>
#include <cstdint>

#include "penstock/base/utf8_character.h"

namespace penstock {
namespace {

/// The number of a character of so many bytes.
std::uint32_t code_of(std::string_view character) {
  auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(character[i]);
  };
  switch (character.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu);
    case 3:
      return (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 |
             (byte(2) & 0x3fu);
    default:
      return 0x10000;  // none of these controls anything
  }
}

/// Whether it controls a terminal or the direction of writing.
bool controls(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) ||
         (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// As JSON escapes it.
void write_control(std::uint32_t code, std::string& to) {
  constexpr std::string_view kShort = "\b\t\n\f\r", kNames = "btnfr";
  if (const std::size_t at = kShort.find(static_cast<char>(code));
      code < 0x20 && at != kShort.npos) {
    (to += '\\') += kNames[at];
    return;
  }
  to += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4)
    to += "0123456789abcdef"[code >> shift & 15];
}

std::string with_escapes(std::string_view text, bool lines) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = character_at(text);
    const std::string_view character =
        text.substr(0, std::max<std::size_t>(size, 1));
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::uint32_t code = size == 0 ? 0 : code_of(character);
    if (size == 0) {
      shown += "\\x";
      shown += "0123456789abcdef"[byte >> 4];
      shown += "0123456789abcdef"[byte & 15];
    } else if (controls(code) && !(lines && code == '\n')) {
      write_control(code, shown);
    } else {
      shown += character;
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

}  // namespace

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character_at(text);
    if (size == 0) return false;
    if (const std::uint32_t code = code_of(text.substr(0, size));
        code != '\n' && controls(code))
      return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text) {
  return with_escapes(text, false);
}

std::string printable_lines(std::string_view text) {
  return with_escapes(text, true);
}

}  // namespace penstock
