#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "penstock/tokenizer/family.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {

namespace scanner {

using unicode::Text;

/// Where the word ends that begins at `at` of a text that is UTF-8: what
/// defines each family. What is before `at` does not count.
std::size_t gpt2_word(const Text& text, std::size_t at);
/// `digits`: how many numbers are one word at most.
std::size_t cl100k_word(const Text& text, std::size_t at, int digits);
std::size_t o200k_word(const Text& text, std::size_t at, int digits,
                       bool contractions);
std::size_t command_r_word(const Text& text, std::size_t at);
/// `piece_end`: where the piece ends that the first two patterns left; kept by
/// the caller, 0 at first.
std::size_t deepseek_word(const Text& text, std::size_t at,
                          std::size_t& piece_end);

}  // namespace scanner

/// Cuts a text into words, many at a time.
class Scanner {
 public:
  /// `padded`: 64 bytes behind the text may be read.
  Scanner(Family family, std::string_view text, bool padded = false);
  /// Writes where the next words end, at most `room` (at least 64) of them;
  /// returns how many. 0 at the end of the text. Words are cut in order and
  /// leave nothing out.
  std::size_t next(std::uint32_t* ends, std::size_t room);
  /// The same words, without vector instructions.
  std::size_t next_plain(std::uint32_t* ends, std::size_t room);

 private:
  std::size_t word(std::size_t at);

  Family family_;
  unicode::Text text_;
  bool padded_;
  std::size_t at_ = 0;
  std::size_t piece_end_ = 0;  // of DeepSeek
};

}  // namespace penstock
