#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/tokenizer/chat_value.h"

namespace penstock::chat {

/// A word of a tag.
struct Word {
  enum class Kind { name, number, text, sign, end };
  Kind kind;
  std::string text = {};
  Value value = {};
  std::size_t line = 0;
};

/// A text between tags, or the words of a tag, without those of comments.
struct Piece {
  enum class Kind { text, output, statement };
  Kind kind;
  std::string text = {};
  std::vector<Word> words = {};
};

/// The pieces of a template. Throws Failure.
std::vector<Piece> read_pieces(std::string_view text);

}  // namespace penstock::chat
