#pragma once

// 64 characters at a time: each class of characters is a mask of bits, and
// arithmetic on masks finds where words begin. A block begins where a word
// begins, so that nothing is carried from one to the next. Each file that
// includes this has PENSTOCK_TARGET, the instructions that its functions may
// use, and a `Machine` that reads blocks and writes places with them.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/tokenizer/ascii_words.h"

#ifndef PENSTOCK_TARGET
#define PENSTOCK_TARGET "avx2,bmi,bmi2,lzcnt,popcnt"
#endif
#define PENSTOCK_FOR_TARGET __attribute__((target(PENSTOCK_TARGET)))
#define PENSTOCK_INLINE __attribute__((always_inline, target(PENSTOCK_TARGET)))

namespace penstock::scanner {
namespace {

using Mask = std::uint64_t;

/// What the characters of a block are.
struct Block {
  Mask letters, capitals, digits, blanks, white, newlines, apostrophes, slashes,
      high;
};

/// How long the contraction is whose apostrophe is at this place, 0 for none.
inline std::size_t contraction(const char* at, bool caseless) {
  auto folded = [caseless](char c) {
    return caseless && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  char one = folded(at[1]), two = folded(at[2]);
  if (one == 's' || one == 't' || one == 'm' || one == 'd') return 2;
  bool pair =
      ((one == 'r' || one == 'v') && two == 'e') || (one == 'l' && two == 'l');
  return pair ? 3 : 0;
}

/// Where runs of these begin.
inline Mask runs(Mask set) { return set & ~(set << 1); }

PENSTOCK_INLINE inline Mask gpt2_starts(const Block& c, const char* at) {
  Mask rest = ~(c.letters | c.digits | c.white);
  Mask last_white = c.white & ~(c.white >> 1);
  Mask starts = runs(c.letters) | runs(c.digits) | runs(rest);
  starts = (starts & ~(c.blanks << 1)) | runs(c.white) | last_white;
  Mask marks = c.apostrophes & ~(rest << 1) & ~(c.blanks << 1);
  for (marks &= ~(Mask{15} << 60); marks != 0; marks &= marks - 1) {
    auto i = static_cast<std::size_t>(__builtin_ctzll(marks));
    std::size_t length = contraction(at + i, false);
    if (length == 0) continue;
    starts &= ~(Mask{2} << i);
    starts |= Mask{1} << (i + length);
  }
  return starts;
}

/// Numbers of at most `digits`, from where a run of them begins.
inline Mask number_starts(Mask numbers, int digits) {
  if (digits == 1) return numbers;
  Mask starts = runs(numbers);
  Mask four = numbers & numbers << 1 & numbers << 2 & numbers << 3;
  for (Mask third = starts << 3 & four; third != 0; third = third << 3 & four)
    starts |= third;
  return starts;
}

/// What cl100k and o200k share: all but the letters' own starts.
struct Shared {
  Mask starts;         ///< of white space, numbers and the rest
  Mask takes_letters;  ///< a letter behind these begins no word
  Mask marks;          ///< apostrophes where a word begins
};

/// Of these, the ones of which a run of `plain` that ends at `end` begins.
inline Mask begun_before(Mask starts, Mask plain, Mask end) {
  Mask before = end - 1, gap = before & ~plain;
  if (gap == 0) return starts & before;
  int top = 63 - __builtin_clzll(gap);
  return starts & before & ~((Mask{2} << top) - 1);
}

PENSTOCK_INLINE inline Shared shared_starts(const Block& c, int digits,
                                            unsigned certain) {
  Mask rest = ~(c.letters | c.digits | c.white);
  // Newlines behind the rest belong to it; the sum carries along their run.
  Mask behind = (rest << 1) & c.newlines;
  Mask white = c.white & ~(c.newlines & ~(c.newlines + behind));
  Mask plain = white & ~c.newlines;
  // A run of blanks behind a newline is a word of its own, unless a newline
  // follows, or the block ends before that is known.
  Mask tails = runs(plain) & (c.newlines << 1);
  if (tails != 0) {
    Mask ends = (plain << 1) & ~plain & c.newlines;
    for (; ends != 0; ends &= ends - 1)
      tails &= ~begun_before(tails, plain, ends & (0 - ends));
    Mask border = Mask{1} << (certain - 1);
    if ((plain & border) != 0) tails &= ~begun_before(tails, plain, border);
  }
  Mask last = plain & ~(white >> 1);
  Mask alone = runs(rest) & ~(c.blanks << 1);
  Shared found;
  found.starts = runs(white) | tails | last | alone;
  found.starts |= number_starts(c.digits, digits);
  found.takes_letters = last | alone;
  found.marks = c.apostrophes & alone;
  return found;
}

template <int kDigits>
PENSTOCK_INLINE inline Mask cl100k_starts(const Block& c, const char* at,
                                          unsigned certain) {
  Shared shared = shared_starts(c, kDigits, certain);
  Mask starts =
      shared.starts | (runs(c.letters) & ~(shared.takes_letters << 1));
  Mask marks = shared.marks & ~(Mask{15} << 60);
  for (; marks != 0; marks &= marks - 1) {
    auto i = static_cast<std::size_t>(__builtin_ctzll(marks));
    std::size_t length = contraction(at + i, true);
    if (length != 0) starts |= Mask{1} << (i + length);
  }
  return starts;
}

/// `at`: where the block begins.
template <int kDigits, bool kContractions>
PENSTOCK_INLINE inline Mask o200k_starts(const Block& c, const char* at,
                                         unsigned certain) {
  // Slashes behind newlines may belong to what stands before these.
  if (Mask slashes = (c.newlines << 1) & c.slashes; slashes != 0) {
    certain =
        std::min(certain, static_cast<unsigned>(__builtin_ctzll(slashes)));
    if (certain < 8) return 0;
  }
  Shared shared = shared_starts(c, kDigits, certain);
  Mask small = c.letters & ~c.capitals;
  Mask starts = shared.starts |
                (runs(c.letters) & ~(shared.takes_letters << 1)) |
                (c.capitals & small << 1);
  Mask marks =
      kContractions ? c.apostrophes & c.letters << 1 & ~(Mask{15} << 60) : 0;
  for (std::size_t behind = 0; marks != 0; marks &= marks - 1) {
    auto i = static_cast<std::size_t>(__builtin_ctzll(marks));
    if (i == behind) continue;  // behind a contraction begins a word
    std::size_t length = contraction(at + i, true);
    if (length == 0) continue;
    behind = i + length;
    starts &= ~((Mask{1} << behind) - (Mask{1} << i));
    starts |= Mask{1} << behind;
  }
  return starts & ((Mask{1} << (certain - 5)) - 1);
}

template <class Machine, class Starts>
PENSTOCK_INLINE inline std::size_t words(const Text& text, bool padded,
                                         std::size_t at,
                                         std::span<std::uint32_t> ends,
                                         Starts starts_of) {
  std::uint32_t* out = ends.data();
  const std::uint32_t* full = out + ends.size() - 64;
  while (at < text.size && out <= full) {
    std::size_t left = text.size - at;
    if (left < 64 && !padded) break;
    const char* from = text.bytes + at;
    const Block block = Machine::read(from);
    // Of the last characters before a byte that is no ASCII, before the end of
    // the text and of the block, the boundaries are not certain.
    unsigned certain = 64;
    if (block.high != 0)
      certain = static_cast<unsigned>(__builtin_ctzll(block.high));
    if (left < certain) certain = static_cast<unsigned>(left);
    if (certain < 8) break;
    Mask sure = (Mask{1} << (certain - 5)) - 1;
    Mask starts = starts_of(block, from, certain) & sure & ~Mask{1};
    if (starts == 0) break;
    Machine::write(starts, static_cast<std::uint32_t>(at), out);
    out += __builtin_popcountll(starts);
    at += 63 - static_cast<std::size_t>(__builtin_clzll(starts));
  }
  return static_cast<std::size_t>(out - ends.data());
}

template <class Machine>
PENSTOCK_FOR_TARGET std::size_t gpt2(const Text& text, bool padded,
                                     std::size_t at,
                                     std::span<std::uint32_t> ends) {
  return words<Machine>(
      text, padded, at, ends,
      [](const Block& block, const char* from, unsigned)
          PENSTOCK_FOR_TARGET { return gpt2_starts(block, from); });
}

template <class Machine, int kDigits>
PENSTOCK_FOR_TARGET std::size_t cl100k(const Text& text, bool padded,
                                       std::size_t at,
                                       std::span<std::uint32_t> ends) {
  return words<Machine>(text, padded, at, ends,
                        [](const Block& block, const char* from,
                           unsigned certain) PENSTOCK_FOR_TARGET {
                          return cl100k_starts<kDigits>(block, from, certain);
                        });
}

template <class Machine, int kDigits, bool kContractions>
PENSTOCK_FOR_TARGET std::size_t o200k(const Text& text, bool padded,
                                      std::size_t at,
                                      std::span<std::uint32_t> ends) {
  return words<Machine>(
      text, padded, at, ends,
      [](const Block& block, const char* from, unsigned certain)
          PENSTOCK_FOR_TARGET {
            return o200k_starts<kDigits, kContractions>(block, from, certain);
          });
}

template <class Machine>
AsciiWords* block_words(Family family) {
  if (family == Family::gpt2) return gpt2<Machine>;
  if (family == Family::cl100k) return cl100k<Machine, 3>;
  if (family == Family::qwen2) return cl100k<Machine, 1>;
  if (family == Family::o200k) return o200k<Machine, 3, true>;
  if (family == Family::tekken) return o200k<Machine, 1, false>;
  return nullptr;
}

}  // namespace
}  // namespace penstock::scanner
#endif
