#pragma once

#include <optional>
#include <string_view>

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

/// The family of a pattern as written in a file.
std::optional<Family> family_of(std::string_view pattern);
/// The three patterns of DeepSeek, in their order.
extern const std::string_view kDeepseekPatterns[3];

}  // namespace penstock
