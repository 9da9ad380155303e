// The words of each family, character by character.
#include <string_view>

#include "penstock/tokenizer/scanner.h"

namespace penstock::scanner {
namespace {

using unicode::Character;
using unicode::Classes;
using unicode::kEnd;
using unicode::kLetters;
using unicode::kMark;
using unicode::kNumbers;
using unicode::kRest;
using unicode::kSpaces;
using unicode::set_of;

bool is_newline(const Character& c) {
  return c.size == 1 && (c.code == '\n' || c.code == '\r');
}

/// 's 't 'm 'd 're 've 'll behind an apostrophe at `at`: their end, or `at`.
/// Caseless by Unicode: U+017F is an s too.
std::size_t contraction(const Text& text, std::size_t at, bool caseless) {
  const Character mark = text.at(at);
  if (mark.code != '\'' || mark.size == 0) return at;
  const Character first = text.at(at + 1);
  auto folded = [caseless](const Character& c) -> std::uint32_t {
    if (!caseless) return c.code;
    return c.code == 0x17F ? 's' : c.code - 'A' < 26u ? c.code + 32 : c.code;
  };
  std::uint32_t one = folded(first);
  std::size_t behind = at + 1 + first.size;
  if (one == 's' || one == 't' || one == 'm' || one == 'd') return behind;
  Character second = text.at(behind);
  std::uint32_t two = folded(second);
  bool pair = (one == 'r' && two == 'e') || (one == 'v' && two == 'e') ||
              (one == 'l' && two == 'l');
  return pair ? behind + second.size : at;
}

/// \s+(?!\S)|\s+ where white space begins.
/// A regular expression would backtrack here: it gives back the last white
/// space when something else follows. `last` is where that one begins, so the
/// run is read once. A single white space has nothing to give back and is
/// matched by the alternative \s+.
std::size_t space_tail(const Text& text, std::size_t at) {
  std::size_t last = at, end = at;
  Character c = text.at(at);
  while (c.in(kSpaces)) {
    last = end;
    end += c.size;
    c = text.at(end);
  }
  return c.kind == kEnd || last == at ? end : last;
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ where white space begins.
/// The greedy \s* runs over newlines, too, and gives back only down to the last
/// one: the match ends after the last newline of the whole run.
std::size_t white_space(const Text& text, std::size_t at) {
  std::size_t end = at, behind_newline = at;
  for (Character c = text.at(at); c.in(kSpaces); c = text.at(end)) {
    end += c.size;
    if (is_newline(c)) behind_newline = end;
  }
  return behind_newline > at ? behind_newline : space_tail(text, at);
}

std::size_t skip_newlines(const Text& text, std::size_t at, bool slash) {
  Character c = text.at(at);
  while (is_newline(c) || (slash && c.size == 1 && c.code == '/')) {
    ++at;
    c = text.at(at);
  }
  return at;
}

std::size_t skip_numbers(const Text& text, std::size_t at, int digits) {
  for (int i = 0; i < digits; ++i) {
    Character c = text.at(at);
    if (!c.in(kNumbers)) break;
    at += c.size;
  }
  return at;
}

/// Numbers, punctuation with what follows it, or white space: what cl100k and
/// o200k share behind their letters.
std::size_t no_letters(const Text& text, std::size_t at, int digits,
                       bool slash) {
  Character first = text.at(at);
  if (first.in(kNumbers)) return skip_numbers(text, at, digits);
  std::size_t rest = at;
  if (first.code == ' ' && text.at(at + 1).in(kRest)) rest = at + 1;
  if (text.at(rest).in(kRest))
    return skip_newlines(text, text.skip(kRest, rest), slash);
  return white_space(text, at);
}

constexpr Classes kBoth =
    set_of(unicode::kModifier, unicode::kOtherLetter, kMark);
constexpr Classes kRaised = kBoth | set_of(unicode::kUpper, unicode::kTitle);
constexpr Classes kLowered = kBoth | set_of(unicode::kLower);

/// [Lu Lt Lm Lo M]*[Ll Lm Lo M]+ at this place, or `at`. Where no lower letter
/// follows the first run, it gives back down to one that is in both sets.
/// `both` is where the last run of Lm, Lo and M ends within what the first set
/// has read: where a matcher that backtracks would end, without its quadratic
/// cost.
std::size_t lowered_word(const Text& text, std::size_t at) {
  std::size_t end = at, both = at;
  for (Character c = text.at(at); c.in(kRaised); c = text.at(end)) {
    end += c.size;
    if (c.in(kBoth)) both = end = text.skip(kBoth, end);
  }
  std::size_t lowered = text.skip(kLowered, end);
  return lowered > end ? lowered : both;
}

}  // namespace

std::size_t gpt2_word(const Text& text, std::size_t at) {
  std::size_t end = contraction(text, at, false);
  if (end > at) return end;
  std::size_t run = text.at(at).code == ' ' ? at + 1 : at;
  Character first = text.at(run);
  if (first.in(kSpaces) || first.kind == kEnd) {
    return space_tail(text, at);
  }
  if (first.in(kLetters)) return text.skip(kLetters, run);
  return text.skip(first.in(kNumbers) ? kNumbers : kRest, run);
}

std::size_t command_r_word(const Text& text, std::size_t at) {
  Character first = text.at(at);
  if (first.in(kNumbers)) return at + first.size;
  // A number is to what stands before it as the end of the text.
  if (first.in(kSpaces)) {
    std::size_t end = text.skip(kSpaces, at);
    if (text.at(end).in(kNumbers)) return end;
  }
  return gpt2_word(text, at);
}

std::size_t cl100k_word(const Text& text, std::size_t at, int digits) {
  std::size_t end = contraction(text, at, true);
  if (end > at) return end;
  Character first = text.at(at);
  if (first.in(kLetters)) return text.skip(kLetters, at);
  if (!first.in(kNumbers) && !is_newline(first)) {
    end = text.skip(kLetters, at + first.size);
    if (end > at + first.size) return end;
  }
  return no_letters(text, at, digits, false);
}

// Four attempts in the order of the pattern's alternatives: a word that ends in
// lower letters, with and without the one character before it, then one of
// capitals, again with and without. The optional character is greedy, so its
// presence is tried first in each.
std::size_t o200k_word(const Text& text, std::size_t at, int digits,
                       bool contractions) {
  Character first = text.at(at);
  std::size_t end = at;
  bool prefix = !first.in(kLetters | kNumbers) && !is_newline(first);
  if (prefix) {
    end = lowered_word(text, at + first.size);
    if (end == at + first.size) end = at;
  }
  if (end == at) end = lowered_word(text, at);
  if (end == at && prefix) {
    end = text.skip(kRaised, at + first.size);
    if (end == at + first.size) end = at;
  }
  if (end == at) end = text.skip(kRaised, at);
  if (end == at) return no_letters(text, at, digits, true);
  return contractions ? contraction(text, end, true) : end;
}

namespace {

bool is_kana_or_ideograph(const Character& c) {
  return (c.code >= 0x4E00 && c.code <= 0x9FA5) ||
         (c.code >= 0x3040 && c.code <= 0x30FF);
}

bool is_ascii_letter(const Character& c) {
  return c.size == 1 && (c.code | 32) - 'a' < 26u;
}

bool is_ascii_punctuation(const Character& c) {
  return c.size == 1 && c.code > 32 && c.code < 127 && !is_ascii_letter(c) &&
         !(c.code >= '0' && c.code <= '9');
}

/// The last of DeepSeek's patterns: the end of its match at `at`, or `at`.
std::size_t deepseek_match(const Text& text, std::size_t at) {
  constexpr Classes marked = kLetters | set_of(kMark);
  constexpr Classes symbols = unicode::kPunctuations | set_of(unicode::kSymbol);
  Character first = text.at(at);
  if (is_ascii_punctuation(first) && is_ascii_letter(text.at(at + 1))) {
    std::size_t end = at + 1;
    while (is_ascii_letter(text.at(end))) ++end;
    return end;
  }
  if (!first.in(kLetters | symbols) && !is_newline(first)) {
    std::size_t end = text.skip(marked, at + first.size);
    if (end > at + first.size) return end;
  }
  if (first.in(marked)) return text.skip(marked, at);
  std::size_t rest = at;
  if (first.code == ' ' && text.at(at + 1).in(symbols)) rest = at + 1;
  if (text.at(rest).in(symbols))
    return skip_newlines(text, text.skip(symbols, rest), false);
  return first.in(kSpaces) ? white_space(text, at) : at;
}

}  // namespace

std::size_t deepseek_word(const Text& text, std::size_t at,
                          std::size_t& piece_end) {
  Character first = text.at(at);
  if (at >= piece_end) {
    if (first.in(kNumbers)) return piece_end = skip_numbers(text, at, 3);
    bool kana = is_kana_or_ideograph(first);
    piece_end = at;
    for (Character c = first; c.kind != kEnd; c = text.at(piece_end)) {
      if (c.in(kNumbers) || is_kana_or_ideograph(c) != kana) break;
      piece_end += c.size;
    }
  }
  Text piece = text;
  piece.size = piece_end;
  std::size_t end = deepseek_match(piece, at);
  if (end > at) return end;
  // What the pattern leaves out, as far as it does, is a word.
  for (end = at; end < piece_end && deepseek_match(piece, end) == end;)
    end += piece.at(end).size;
  return end;
}

}  // namespace penstock::scanner
