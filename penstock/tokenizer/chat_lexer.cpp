// Templates of Jinja are texts and tags; what space around tags goes is as with
// trim_blocks and lstrip_blocks.
#include "penstock/tokenizer/chat_lexer.h"

#include <algorithm>

#include "penstock/base/real_number.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock::chat {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_name(char c) {
  return c == '_' || (c >= '0' && c <= '9') ||
         ((c | 32) >= 'a' && (c | 32) <= 'z');
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Jinja's lexer with the settings of transformers: newlines become \n, and one
// at the end of the template is dropped. White space around tags:
//   trim_blocks    the newline right after a statement or comment goes
//   lstrip_blocks  blanks before one go where nothing else is on the line
//   a '-' in a tag takes all white space on its side, a '+' keeps it
// Neither setting applies to output tags, {{ }}.
class Lexer {
 public:
  explicit Lexer(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\r') {
        text_ += '\n';
        if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
      } else {
        text_ += text[i];
      }
    }
    if (text_.ends_with('\n')) text_.pop_back();
  }

  std::vector<Piece> read() {
    std::vector<Piece> pieces;
    while (at_ < text_.size()) {
      const std::size_t tag = next_tag();
      const char kind = tag < text_.size() ? text_[tag + 1] : '\0';
      std::string before = text_.substr(at_, tag - at_);
      count_lines(at_, tag);
      at_ = std::min(tag + 2, text_.size());
      const char mark = at_ < text_.size() ? text_[at_] : '\0';
      const bool marked = mark == '-' || mark == '+';
      if (kind != '\0') trim(before, kind, marked ? mark : '\0');
      if (!before.empty())
        pieces.push_back({Piece::Kind::text, std::move(before)});
      if (kind == '\0') break;
      if (marked) ++at_;
      if (kind == '#')
        skip_comment();
      else
        pieces.push_back(
            {kind == '{' ? Piece::Kind::output : Piece::Kind::statement,
             {},
             words(kind)});
      behind_tag(kind);
    }
    return pieces;
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t i = at_; i + 1 < text_.size(); ++i)
      if (text_[i] == '{' &&
          (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#'))
        return i;
    return text_.size();
  }

  void trim(std::string& before, char kind, char mark) const {
    if (mark == '-') {
      while (!before.empty() && is_blank(before.back())) before.pop_back();
      return;
    }
    if (mark == '+' || kind == '{') return;
    const std::size_t newline = before.rfind('\n');
    const std::size_t begin = newline == before.npos ? 0 : newline + 1;
    if (begin == 0 && !line_begins_) return;
    for (std::size_t i = begin; i < before.size(); ++i)
      if (!is_blank(before[i])) return;
    before.resize(begin);
  }

  void skip_comment() {
    const std::size_t end = text_.find("#}", at_);
    if (end == text_.npos) throw Failure{"a comment without its end" + where()};
    count_lines(at_, end);
    at_ = end;
    if (text_[end - 1] == '-' || text_[end - 1] == '+') --at_;
  }

  /// The end of a tag, and what is left out behind it.
  void behind_tag(char kind) {
    const char mark = text_[at_];
    const bool marked = mark == '-' || mark == '+';
    const std::size_t begin = at_;
    at_ += marked ? 3 : 2;
    if (mark == '-') {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    } else if (kind != '{' && mark != '+' && at_ < text_.size() &&
               text_[at_] == '\n') {
      ++at_;
    }
    count_lines(begin, at_);
    line_begins_ = text_[at_ - 1] == '\n';
  }

  bool at_end_of(char kind) const {
    const char first = kind == '{' ? '}' : '%';
    std::size_t at = at_;
    if (text_[at] == '-' || text_[at] == '+') ++at;
    return at + 1 < text_.size() && text_[at] == first && text_[at + 1] == '}';
  }

  // A mapping may end right before the tag does, as in {{ {"a": {}}}}: while
  // braces are open, "}}" is two signs and not the end of the tag.
  std::vector<Word> words(char kind) {
    std::vector<Word> all;
    int open = 0;  // braces of mappings
    for (;;) {
      while (at_ < text_.size() && is_blank(text_[at_])) {
        count_lines(at_, at_ + 1);
        ++at_;
      }
      if (at_ >= text_.size()) throw Failure{"a tag without its end" + where()};
      if (open == 0 && at_end_of(kind)) break;
      all.push_back(word());
      if (all.back().kind == Word::Kind::sign) {
        if (all.back().text == "{") ++open;
        if (all.back().text == "}") --open;
      }
    }
    all.push_back({.kind = Word::Kind::end, .line = line_});
    return all;
  }

  Word word() {
    const char c = text_[at_];
    Word made{.kind = Word::Kind::sign, .line = line_};
    if (c == '\'' || c == '"') {
      made.kind = Word::Kind::text;
      made.text = quoted();
    } else if (is_digit(c)) {
      made.kind = Word::Kind::number;
      made.value = number();
    } else if (is_name(c)) {
      made.kind = Word::Kind::name;
      while (at_ < text_.size() && is_name(text_[at_]))
        made.text += text_[at_++];
    } else {
      for (std::string_view two : {"==", "!=", "<=", ">=", "//", "**"})
        if (text_.compare(at_, 2, two) == 0) made.text = two;
      if (made.text.empty()) made.text = c;
      at_ += made.text.size();
    }
    return made;
  }

  Value number() {
    std::string digits;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '_'))
      if (char c = text_[at_++]; c != '_') digits += c;
    const bool real =
        at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1]);
    if (digits.size() > 18) throw Failure{"so long a number" + where()};
    if (!real) return std::int64_t{std::stoll(digits)};
    do digits += text_[at_++];
    while (at_ < text_.size() && is_digit(text_[at_]));
    double number = 0;
    real_from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }

  std::string quoted() {
    const char mark = text_[at_++];
    std::string made;
    for (; at_ < text_.size() && text_[at_] != mark; ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '\\' || at_ + 1 >= text_.size()) {
        made += text_[at_];
        continue;
      }
      escape(text_[++at_], made);
    }
    if (at_ >= text_.size()) throw Failure{"a text without its end" + where()};
    ++at_;
    return made;
  }

  // The escapes of a Python literal, which Jinja decodes the same way: an
  // unknown one stays as it was written, with its backslash.
  void escape(char c, std::string& made) {
    constexpr std::string_view from = "nrtabfv\\'\"0",
                               to("\n\r\t\a\b\f\v\\'\"\0", 11);
    if (c == '\n') return;
    if (const std::size_t known = from.find(c); known != from.npos) {
      made += to[known];
    } else if (c == 'u' || c == 'x' || c == 'U') {
      const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::string code = text_.substr(at_ + 1, digits);
      if (code.size() != digits ||
          code.find_first_not_of("0123456789abcdefABCDEF") != code.npos)
        throw Failure{"a character by such a number" + where()};
      const unsigned long number = std::stoul(code, nullptr, 16);
      if (number > 0x10FFFF || (number >= 0xD800 && number < 0xE000))
        throw Failure{"a character by such a number" + where()};
      unicode::append(static_cast<std::uint32_t>(number), made);
      at_ += digits;
    } else {
      (made += '\\') += c;
    }
  }

  void count_lines(std::size_t from, std::size_t to) {
    for (; from < to; ++from) line_ += text_[from] == '\n' ? 1 : 0;
  }
  std::string where() const { return ", line " + std::to_string(line_); }

  std::string text_;
  std::size_t at_ = 0, line_ = 1;
  bool line_begins_ = true;
};

}  // namespace

std::vector<Piece> read_pieces(std::string_view text) {
  return Lexer(text).read();
}

}  // namespace penstock::chat
