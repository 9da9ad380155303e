#include "penstock/tokenizer/scanner.h"

#include "penstock/tokenizer/ascii_words.h"

namespace penstock {

Scanner::Scanner(Family family, std::string_view text, bool padded)
    : family_(family), text_{text.data(), text.size()}, padded_(padded) {}

std::size_t Scanner::word(std::size_t at) {
  switch (family_) {
    case Family::whole:
      return text_.size;
    case Family::gpt2:
      return scanner::gpt2_word(text_, at);
    case Family::cl100k:
      return scanner::cl100k_word(text_, at, 3);
    case Family::qwen2:
      return scanner::cl100k_word(text_, at, 1);
    case Family::o200k:
      return scanner::o200k_word(text_, at, 3, true);
    case Family::tekken:
      return scanner::o200k_word(text_, at, 1, false);
    case Family::command_r:
      return scanner::command_r_word(text_, at);
    case Family::deepseek:
      return scanner::deepseek_word(text_, at, piece_end_);
  }
  return text_.size;
}

std::size_t Scanner::next_plain(std::uint32_t* ends, std::size_t room) {
  std::size_t count = 0;
  while (count < room && at_ < text_.size) {
    at_ = word(at_);
    ends[count++] = static_cast<std::uint32_t>(at_);
  }
  return count;
}

std::size_t Scanner::next(std::uint32_t* ends, std::size_t room) {
  scanner::AsciiWords* ascii = scanner::ascii_words(family_);
  if (ascii == nullptr) return next_plain(ends, room);
  std::size_t count = 0;
  while (count + 64 <= room && at_ < text_.size) {
    std::size_t found = 0;
    if (static_cast<unsigned char>(text_.bytes[at_]) < 0x80)
      found = ascii(text_, padded_, at_, {ends + count, room - count});
    count += found;
    if (found != 0) at_ = ends[count - 1];
    if (count + 64 > room || at_ >= text_.size) break;
    at_ = word(at_);  // not within plain ASCII
    ends[count++] = static_cast<std::uint32_t>(at_);
  }
  return count;
}

}  // namespace penstock
