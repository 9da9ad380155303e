#include "penstock/transforms/json_set/json_skip.h"

#include <bit>
#include <cstring>

#include "penstock/transforms/json_set/decimal.h"
#include "penstock/transforms/json_set/json_grammar.h"

namespace penstock {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101u;
constexpr std::uint64_t kHighBits = 0x8080808080808080u;

// The high bit of each byte below `limit` (at most 0x80); exact up to the
// first such byte.
// A subtraction borrows from the next byte only out of one that is below the
// limit, so bytes after the first hit may be wrong. All callers use the first
// one alone.
std::uint64_t below(std::uint64_t word, std::uint64_t limit) {
  return (word - kOnes * limit) & ~word & kHighBits;
}

std::uint64_t equal(std::uint64_t word, unsigned char byte) {
  return below(word ^ (kOnes * byte), 1);
}

bool one_of(char c, const char* some) {
  return c != 0 && std::strchr(some, c) != nullptr;
}

const char* skip_escape(const char* p, const char* end) {
  if (end - p < 2) return nullptr;
  if (p[1] != 'u') return one_of(p[1], "\"\\/bfnrt") ? p + 2 : nullptr;
  if (end - p < 6) return nullptr;
  for (int i = 2; i < 6; ++i)
    if (!one_of(p[i], "0123456789abcdefABCDEF")) return nullptr;
  return p + 6;
}

const char* skip_literal(const char* p, const char* end) {
  std::string_view left(p, end);
  for (std::string_view word : {"true", "false", "null"})
    if (left.starts_with(word)) return p + word.size();
  return nullptr;
}

const char* skip_key(const char* p, const char* end, Met& met) {
  p = skip_space(p, end);
  if (p >= end || *p != '"') return nullptr;
  p = skip_text(p + 1, end, met);
  if (p == nullptr) return nullptr;
  p = skip_space(p, end);
  return p < end && *p == ':' ? p + 1 : nullptr;
}

const char* skip_members(const char* p, const char* end, int depth, Met& met) {
  bool object = *p == '{';
  char close = object ? '}' : ']';
  p = skip_space(p + 1, end);
  if (p < end && *p == close) return p + 1;
  for (;;) {
    if (object) p = skip_key(p, end, met);
    if (p != nullptr) p = skip_value(skip_space(p, end), end, depth, met);
    if (p == nullptr) return nullptr;
    p = skip_space(p, end);
    if (p >= end) return nullptr;
    if (*p == close) return p + 1;
    if (*p != ',') return nullptr;
    ++p;
    p = skip_space(p, end);
  }
}

}  // namespace

// Reads whole words: up to seven bytes past `end`, which FastJson::kReadsBehind
// allows. A quote that is found there is past `end` and refused. High bits that
// are met there only cause a check of UTF-8 that was not needed.
const char* skip_text(const char* p, const char* end, Met& met) {
  while (p < end) {
    std::uint64_t word = load_word(p);
    std::uint64_t special =
        equal(word, '"') | equal(word, '\\') | below(word, 0x20);
    if (special == 0) {
      met.high_bits |= word & kHighBits;
      p += 8;
      continue;
    }
    int bits = std::countr_zero(special) & ~7;
    met.high_bits |= word & kHighBits & ~(~std::uint64_t{0} << bits);
    p += bits / 8;
    if (p >= end) return nullptr;
    if (*p == '"') return p + 1;
    if (*p != '\\') return nullptr;
    met.escape = true;
    p = skip_escape(p, end);
    if (p == nullptr) return nullptr;
  }
  return nullptr;
}

const char* skip_value(const char* p, const char* end, int depth, Met& met) {
  if (p >= end) return nullptr;
  switch (*p) {
    case '"':
      return skip_text(p + 1, end, met);
    case '[':
    case '{':
      return depth == kDeepest ? nullptr : skip_members(p, end, depth + 1, met);
    case 't':
    case 'f':
    case 'n':
      return skip_literal(p, end);
    default: {
      double number;
      p = read_number(p, end, number);
      return p != nullptr && p <= end ? p : nullptr;
    }
  }
}

}  // namespace penstock
