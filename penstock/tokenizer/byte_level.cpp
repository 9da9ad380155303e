#include "penstock/tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

struct Table {
  std::array<std::uint32_t, 256> codes;
  std::array<std::int16_t, 0x144> bytes;  // -1: none
};

// bytes_to_unicode() of GPT-2's encoder.py: a byte that is printable in Latin-1
// is that character, and the other 68 are U+0100 to U+0143 in the order of
// their values. So a space is U+0120 and a newline U+010A.
const Table& table() {
  static const Table made = [] {
    Table t;
    t.bytes.fill(-1);
    std::uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      t.codes[byte] = is_printable(byte) ? byte : next++;
      t.bytes[t.codes[byte]] = static_cast<std::int16_t>(byte);
    }
    return t;
  }();
  return made;
}

}  // namespace

bool bytes_of_token(std::string_view token, std::string& bytes) {
  bytes.clear();
  std::uint32_t size;
  for (std::size_t at = 0; at < token.size(); at += size) {
    std::uint32_t code = unicode::code_at(token.data() + at, size);
    if (code >= table().bytes.size() || table().bytes[code] < 0) return false;
    bytes += static_cast<char>(table().bytes[code]);
  }
  return true;
}

std::string character_of_byte(unsigned char byte) {
  std::string character;
  unicode::append(table().codes[byte], character);
  return character;
}

}  // namespace penstock
