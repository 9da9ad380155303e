#include "penstock/tokenizer/unicode.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "penstock/tokenizer/byte_masks.h"

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
// Table 3-7 of the Unicode Standard, "Well-Formed UTF-8 Byte Sequences": the
// four leads that narrow the second byte exclude overlong forms (E0, F0),
// surrogates (ED) and what is beyond U+10FFFF (F4).
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

/// How many bytes from `at` on are whole characters of at most three bytes, of
/// up to 64; 0 where others are among them, or what is no character.
/// The leads whose second byte is restricted (E0, ED) or that have four bytes
/// are left to character_at(). For all others it is enough that bytes that
/// continue a character are exactly where the leads demand them: `expected`
/// shifts each lead by one and two places. A lead too close to the end of the
/// block is cut off, and with it all bits from there on.
std::size_t plain_bytes(std::string_view text, std::size_t at) {
#if defined(__SSE2__)
  if (text.size() - at < 64) return 0;
  const ByteMasks bytes(text.data() + at);
  if (bytes.is_ascii()) return 64;
  const std::uint64_t goes_on = bytes.goes_on();
  std::uint64_t two = bytes.within(0xC2, 0xDF),
                three = bytes.within(0xE1, 0xEF) & ~bytes.equal(0xED);
  if ((goes_on | two | three) != bytes.high()) return 0;
  const std::uint64_t cut =
      (two | three) >> 63 << 63 | (three & std::uint64_t{1} << 62);
  const auto whole = static_cast<unsigned>(std::countr_zero(cut));
  two &= bits_below(whole);
  three &= bits_below(whole);
  const std::uint64_t expected = two << 1 | three << 1 | three << 2;
  return expected == (goes_on & bits_below(whole)) ? whole : 0;
#else
  return is_ascii(text.substr(at, 64))
             ? std::min<std::size_t>(64, text.size() - at)
             : 0;
#endif
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

std::size_t skip_ideographs(std::string_view text, std::size_t at) {
#if defined(__SSE2__)
  auto mask = [](__m128i of) {
    return static_cast<unsigned>(_mm_movemask_epi8(of));
  };
  auto all = [](int byte) { return _mm_set1_epi8(static_cast<char>(byte)); };
  while (at + 17 <= text.size()) {
    const __m128i bytes = _mm_loadu_si128(
                      reinterpret_cast<const __m128i*>(text.data() + at)),
                  next = _mm_loadu_si128(
                      reinterpret_cast<const __m128i*>(text.data() + at + 1));
    // Bytes have a sign here: those that go on are the least.
    const unsigned goes_on = mask(_mm_cmplt_epi8(bytes, all(0xC0)));
    const unsigned first = mask(_mm_andnot_si128(
        _mm_cmplt_epi8(next, all(0xB8)), _mm_cmpeq_epi8(bytes, all(0xE4))));
    const unsigned others = mask(_mm_and_si128(
        _mm_cmpgt_epi8(bytes, all(0xE4)), _mm_cmplt_epi8(bytes, all(0xEA))));
    const auto run = std::countr_one((goes_on | first | others) & 0xFFFF);
    at += static_cast<std::size_t>(run);
    if (run < 16) return at;
  }
  // The last one may be there in part.
  while (at < text.size() &&
         (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
    ++at;
#else
  static_cast<void>(text);
#endif
  return at;
}

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
    if (const std::size_t plain = plain_bytes(text, at); plain > 0) {
      at += plain;
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

// Unicode's "substitution of maximal subparts" (section 3.9): one U+FFFD for
// the longest start of a character that could still have become one. Python,
// Rust and the browsers count the same number of them.
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
