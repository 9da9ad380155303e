#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "penstock/tokenizer/unicode.h"

namespace penstock {

/// The patterns that cut text into words, each known by a scanner of its own.
enum class Family {
  whole,      ///< no pattern: the text is one word
  gpt2,       ///< also r50k and ByteLevel's own
  cl100k,     ///< also Llama-3
  qwen2,      ///< cl100k, digits one by one
  o200k,      ///< also GPT-OSS
  tekken,     ///< o200k without contractions, digits one by one
  deepseek,   ///< three patterns one after the other
  command_r,  ///< digits one by one, then GPT-2
};

/// The family of a pattern as it is written in a file.
std::optional<Family> family_of(std::string_view pattern);
/// The three patterns of DeepSeek, in their order.
extern const std::string_view kDeepseekPatterns[3];

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
