#include "penstock/tokenizer/unicode.h"

#include <algorithm>
#include <cstring>

namespace penstock::unicode {
namespace {

constexpr std::size_t kCodes = 0x110000;

std::vector<std::uint8_t> spread_classes() {
  std::vector<std::uint8_t> kinds(kCodes);
  std::uint32_t now = 0;
  for (std::size_t i = 0; i < kClassStepsSize; ++i) {
    std::uint32_t begin = now += kClassSteps[i];
    std::uint32_t end = i + 1 == kClassStepsSize
                            ? static_cast<std::uint32_t>(kCodes)
                            : (now + kClassSteps[i + 1]) >> 4;
    for (std::uint32_t c = begin >> 4; c < end; ++c) kinds[c] = begin & 15;
  }
  return kinds;
}

/// How many bytes of a character are at the front of a text, and whether it is
/// whole. No character: 1 byte, or as many as could still have become one.
struct Found {
  std::size_t size;
  bool whole;
};
Found character_at(std::string_view text) {
  auto byte = [text](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  std::size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return {1, false};
  for (std::size_t i = 1; i < wanted; ++i) {
    unsigned low = 0x80, high = 0xBF;
    if (i == 1 && first == 0xE0) low = 0xA0;
    if (i == 1 && first == 0xED) high = 0x9F;
    if (i == 1 && first == 0xF0) low = 0x90;
    if (i == 1 && first == 0xF4) high = 0x8F;
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
  }
  return {wanted, true};
}

/// Whether a character of three bytes is here whose second byte may be any that
/// goes on: of most languages that are not ASCII.
bool is_plain_three(std::string_view text, std::size_t at) {
  std::uint32_t four;
  if (at + sizeof four > text.size()) return false;
  std::memcpy(&four, text.data() + at, sizeof four);
  const auto first = static_cast<unsigned char>(text[at]);
  return (four & 0xC0C0F0) == 0x8080E0 && first != 0xE0 && first != 0xED;
}

}  // namespace

const std::uint8_t* classes() {
  static const std::vector<std::uint8_t> kinds = spread_classes();
  return kinds.data();
}

void append(std::uint32_t code, std::string& out) {
  auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

bool is_word(const Character& c) {
  constexpr Classes always = kLetters | set_of(kMark, kNumber, kConnector);
  if (c.in(always) || c.code == 0x200C || c.code == 0x200D) return true;
  auto within = [&c](std::uint32_t low, std::uint32_t high) {
    return c.code >= low && c.code <= high;
  };
  // Symbols that are alphabetic: letters in circles and squares.
  return within(0x24B6, 0x24E9) || within(0x1F130, 0x1F149) ||
         within(0x1F150, 0x1F169) || within(0x1F170, 0x1F189);
}

std::size_t first_invalid(std::string_view text) {
  constexpr std::size_t kBlock = 64;
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_ascii(text.substr(at, kBlock))) {
      at = std::min(at + kBlock, text.size());
      continue;
    }
    const std::size_t end = std::min(at + kBlock, text.size());
    while (at < end) {
      if (static_cast<unsigned char>(text[at]) < 0x80) {
        ++at;
      } else if (is_plain_three(text, at)) {
        at += 3;
      } else {
        const Found found = character_at(text.substr(at));
        if (!found.whole) return at;
        at += found.size;
      }
    }
  }
  return text.size();
}

std::size_t append_valid(std::string_view text, std::string& out) {
  std::size_t bad = 0, done = 0, at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    Found found = character_at(text.substr(at));
    if (!found.whole) {
      out.append(text.substr(done, at - done));
      out += "\xEF\xBF\xBD";
      ++bad;
      done = at + found.size;
    }
    at += found.size;
  }
  out.append(text.substr(done));
  return bad;
}

std::size_t unfinished(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    std::string_view end = text.substr(text.size() - back);
    if ((static_cast<unsigned char>(end[0]) & 0xC0) == 0x80) continue;
    Found found = character_at(end);
    bool open = !found.whole && found.size == back &&
                static_cast<unsigned char>(end[0]) >= 0xC2 &&
                static_cast<unsigned char>(end[0]) <= 0xF4;
    return open ? back : 0;
  }
  return 0;
}

}  // namespace penstock::unicode
