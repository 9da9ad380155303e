#include "penstock/transforms/json_set/json_grammar.h"

#include <cstring>

namespace penstock {
namespace {

// The length of the UTF-8 sequence at `p` (RFC 3629), or 0 if none exists:
// no overlong forms, no surrogates, nothing beyond U+10FFFF.
std::size_t utf8_length(const unsigned char* p, std::size_t left) {
  auto follows = [&](std::size_t i, unsigned from = 0x80, unsigned to = 0xbf) {
    return i < left && p[i] >= from && p[i] <= to;
  };
  unsigned first = p[0];
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    unsigned from = first == 0xe0 ? 0xa0 : 0x80;
    unsigned to = first == 0xed ? 0x9f : 0xbf;
    return follows(1, from, to) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    unsigned from = first == 0xf0 ? 0x90 : 0x80;
    unsigned to = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, from, to) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string shown(unsigned char byte) {
  if (byte > 0x20 && byte < 0x7f)
    return std::string("'") + static_cast<char>(byte) + "'";
  const char* digits = "0123456789abcdef";
  return std::string("byte 0x") + digits[byte >> 4] + digits[byte & 15];
}

// A recursive descent parser; every rule leaves `p_` after what it took, or at
// the byte that broke it.
class Grammar {
 public:
  explicit Grammar(std::string_view text)
      : begin_(text.data()), p_(begin_), end_(begin_ + text.size()) {}

  std::optional<JsonFault> check() {
    if (value(0)) {
      space();
      if (p_ != end_) expected("the end of the text");
    }
    return std::move(fault_);
  }

 private:
  bool fail(std::string why) {
    fault_ = JsonFault{p_ - begin_, std::move(why)};
    return false;
  }
  bool expected(std::string_view what) {
    std::string found = p_ == end_ ? "the end of the text"
                                   : shown(static_cast<unsigned char>(*p_));
    return fail("is not valid JSON from here on: found " + found +
                ", expected " + std::string(what));
  }
  bool at(char c) const { return p_ != end_ && *p_ == c; }
  bool at_digit() const { return p_ != end_ && *p_ >= '0' && *p_ <= '9'; }
  void space() {
    while (at(' ') || at('\n') || at('\r') || at('\t')) ++p_;
  }
  bool take(char c, std::string_view what) {
    if (!at(c)) return expected(what);
    ++p_;
    return true;
  }

  bool value(int depth) {
    space();
    if (at('[') || at('{')) {
      if (depth == kDeepest)
        return fail("is nested deeper than " + std::to_string(kDeepest) +
                    " levels");
      return at('[') ? list(depth + 1) : object(depth + 1);
    }
    if (at('"')) return text();
    if (at('-') || at_digit()) return number();
    return literal("true") || literal("false") || literal("null") ||
           expected("a value");
  }

  bool list(int depth) {
    ++p_;
    space();
    if (at(']')) return take(']', "");
    for (;;) {
      if (!value(depth)) return false;
      space();
      if (at(']')) return take(']', "");
      if (!take(',', "',' or ']'")) return false;
    }
  }

  bool object(int depth) {
    ++p_;
    space();
    if (at('}')) return take('}', "");
    for (;;) {
      space();
      if (!at('"')) return expected("a key in quotes");
      if (!text()) return false;
      space();
      if (!take(':', "':'") || !value(depth)) return false;
      space();
      if (at('}')) return take('}', "");
      if (!take(',', "',' or '}'")) return false;
    }
  }

  bool literal(std::string_view word) {
    if (!std::string_view(p_, end_).starts_with(word)) return false;
    p_ += word.size();
    return true;
  }

  bool digits() {
    if (!at_digit()) return expected("a digit");
    while (at_digit()) ++p_;
    return true;
  }

  bool number() {
    if (at('-')) ++p_;
    if (at('0')) {
      ++p_;
      if (at_digit()) return expected("no digit after a leading zero");
    } else if (!digits()) {
      return false;
    }
    if (at('.')) {
      ++p_;
      if (!digits()) return false;
    }
    if (at('e') || at('E')) {
      ++p_;
      if (at('+') || at('-')) ++p_;
      if (!digits()) return false;
    }
    return true;
  }

  bool escape() {
    ++p_;
    if (at('u')) {
      ++p_;
      for (int i = 0; i < 4; ++i, ++p_)
        if (p_ == end_ ||
            std::strchr("0123456789abcdefABCDEF", *p_) == nullptr || *p_ == 0)
          return expected("four hexadecimal digits");
      return true;
    }
    if (p_ == end_ || *p_ == 0 || std::strchr("\"\\/bfnrt", *p_) == nullptr)
      return expected("an escape that JSON knows");
    ++p_;
    return true;
  }

  bool text() {
    ++p_;
    while (!at('"')) {
      if (p_ == end_) return expected("the closing quote of a text");
      auto* bytes = reinterpret_cast<const unsigned char*>(p_);
      if (*bytes < 0x20) return expected("no control character in a text");
      if (*bytes == '\\') {
        if (!escape()) return false;
        continue;
      }
      std::size_t length =
          utf8_length(bytes, static_cast<std::size_t>(end_ - p_));
      if (length == 0) return fail("is not valid UTF-8 from here on");
      p_ += length;
    }
    ++p_;
    return true;
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  std::optional<JsonFault> fault_;
};

}  // namespace

std::optional<JsonFault> fault_of_json(std::string_view text) {
  return Grammar(text).check();
}

}  // namespace penstock
