#include <algorithm>
#include <charconv>

#include "penstock/base/ascii.h"
#include "penstock/base/error.h"
#include "penstock/base/real_number.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/files/where.h"

// A recursive descent over tokens, in SQL's order: OR, AND, NOT, then one
// comparison, then what is compared. Nothing is evaluated here.

namespace penstock::files {
namespace {

using Kind = Condition::Kind;
using Order = Condition::Order;

struct Token {
  enum class Is : std::uint8_t { end, word, name, number, text, sign };
  Is is = Is::end;
  std::size_t position = 0;
  std::string text;   ///< of a word as written; of a name without marks
  std::string upper;  ///< of a word
};

constexpr int kDeepest = 200;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Tokens {
 public:
  explicit Tokens(const std::string& text) : text_(text) {}

  Token next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) !=
                                     std::string_view::npos)
      ++at_;
    Token token{.position = at_};
    if (at_ == text_.size()) return token;
    char c = text_[at_];
    if (is_digit(c) ||
        (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
      return number(token);
    if (is_letter(c)) return word(token);
    if (c == '\'') return quoted(token, Token::Is::text, '\'');
    if (c == '"') return quoted(token, Token::Is::name, '"');
    if (c == '`') return quoted(token, Token::Is::name, '`');
    if (c == '[') return quoted(token, Token::Is::name, ']');
    if (text_.compare(at_, 2, "--") == 0 || text_.compare(at_, 2, "/*") == 0)
      throw bad_condition(text_, at_, "there is a comment here",
                          "leave comments out");
    token.is = Token::Is::sign;
    for (const char* sign : {"==", "<>", "!=", "<=", ">="})
      if (text_.compare(at_, 2, sign) == 0) {
        at_ += 2;
        token.text = sign;
        return token;
      }
    token.text = beginning(std::string_view(text_).substr(at_), 1);
    token.text = token.text.substr(0, 1);
    ++at_;
    return token;
  }

 private:
  Token number(Token token) {
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_digit(text_[end]) || text_[end] == '.' ||
            is_letter(text_[end]) ||
            ((text_[end] == '-' || text_[end] == '+') &&
             (text_[end - 1] == 'e' || text_[end - 1] == 'E'))))
      ++end;
    token.is = Token::Is::number;
    token.text = text_.substr(at_, end - at_);
    at_ = end;
    return token;
  }
  // A dot belongs to a name: it leads to the member of a column.
  Token word(Token token) {
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.'))
      ++end;
    token.is = Token::Is::word;
    token.text = text_.substr(at_, end - at_);
    token.upper = ascii_upper(token.text);
    at_ = end;
    return token;
  }
  Token quoted(Token token, Token::Is is, char mark) {
    token.is = is;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == mark) {
        if (mark == ']' || at_ + 1 == text_.size() || text_[at_ + 1] != mark) {
          ++at_;
          return token;
        }
        ++at_;  // two of them stand for one
      }
      token.text += text_[at_];
    }
    throw bad_condition(text_, token.position, "this has no end",
                        std::string("add the closing ") + mark);
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

// The grammar, the loosest first:
//   either     = both { OR both }
//   both       = no { AND no }
//   no         = NOT no | predicate
//   predicate  = operand [ sign operand | [NOT] IN "(" ... ")"
//              | [NOT] BETWEEN operand AND operand | [NOT] LIKE text
//                [ ESCAPE text ] | IS [NOT] NULL | ISNULL | NOTNULL ]
//   operand    = number | text | column | "(" either ")"
// One token is looked ahead. The AND of BETWEEN is taken by predicate() itself,
// before both() sees it.
class Parser {
 public:
  Parser(const std::string& text, const std::vector<std::string>& columns)
      : text_(text), columns_(columns), tokens_(text), token_(tokens_.next()) {}

  Condition whole() {
    if (token_.is == Token::Is::end) fail("the condition is empty", hint());
    Condition all = either();
    if (token_.is != Token::Is::end) {
      if (token_.text == ";")
        fail("there is more than one condition", "remove it");
      unexpected();
    }
    return all;
  }

 private:
  [[noreturn]] void fail(std::string why, std::string next) {
    throw bad_condition(text_, token_.position, std::move(why),
                        std::move(next));
  }
  std::string hint() const {
    std::string names;
    for (std::size_t at = 0; at < std::min<std::size_t>(12, columns_.size());
         ++at)
      names += (at == 0 ? "" : ", ") + columns_[at];
    return "write a condition over the columns: " + names;
  }
  [[noreturn]] void unexpected() {
    static constexpr const char* kKnown =
        "comparisons, AND, OR, NOT, IN, BETWEEN, IS NULL and LIKE over columns "
        "are supported; for anything else add a column to the file";
    if (token_.is == Token::Is::end) fail("the condition ends here", kKnown);
    fail("'" + token_.text + "' is unexpected here", kKnown);
  }

  Token take() { return std::exchange(token_, tokens_.next()); }
  bool is(const char* word) const {
    return (token_.is == Token::Is::word && token_.upper == word) ||
           (token_.is == Token::Is::sign && token_.text == word);
  }
  bool take(const char* word) {
    if (!is(word)) return false;
    take();
    return true;
  }
  void need(const char* word) {
    if (!take(word)) {
      if (token_.is == Token::Is::end)
        fail(std::string("the condition ends where ") + word + " is expected",
             std::string("add ") + word);
      fail("'" + token_.text + "' found where " + word + " is expected",
           std::string("write ") + word);
    }
  }

  // The parts of a chain are flat, so that ten thousand of them nest no deeper.
  Condition chain(Kind kind, const char* word, Condition (Parser::*part)()) {
    Condition first = (this->*part)();
    if (!is(word)) return first;
    Condition all{.kind = kind, .position = token_.position};
    all.parts.push_back(std::move(first));
    while (take(word)) all.parts.push_back((this->*part)());
    return all;
  }
  Condition either() {
    if (++depth_ > kDeepest)
      fail("the condition is nested more than 200 levels deep",
           "write it with fewer levels");
    Condition made = chain(Kind::either, "OR", &Parser::both);
    --depth_;
    return made;
  }
  Condition both() { return chain(Kind::both, "AND", &Parser::no); }
  Condition no() {
    std::size_t position = token_.position;
    if (!take("NOT")) return predicate();
    if (++depth_ > kDeepest)
      fail("the condition is nested more than 200 levels deep",
           "write it with fewer levels");
    Condition made{.kind = Kind::no, .position = position};
    made.parts.push_back(no());
    --depth_;
    return made;
  }

  Condition predicate() {
    Condition left = operand();
    for (;;) {
      Condition made{.position = token_.position};
      if (compare(made.order)) {
        made.kind = Kind::compare;
        made.parts.push_back(std::move(left));
        made.parts.push_back(operand());
      } else if (take("IS")) {
        made.kind = Kind::is_null;
        made.negated = take("NOT");
        need("NULL");
        made.parts.push_back(std::move(left));
      } else if (take("ISNULL")) {
        made.kind = Kind::is_null;
        made.parts.push_back(std::move(left));
      } else if (take("NOTNULL")) {
        made.kind = Kind::is_null;
        made.negated = true;
        made.parts.push_back(std::move(left));
      } else {
        made.negated = take("NOT");
        if (made.negated && take("NULL")) {
          made.kind = Kind::is_null;
          made.parts.push_back(std::move(left));
        } else if (take("IN")) {
          list(made, std::move(left));
        } else if (take("BETWEEN")) {
          made.kind = Kind::between;
          made.parts.push_back(std::move(left));
          made.parts.push_back(operand());
          need("AND");
          made.parts.push_back(operand());
        } else if (take("LIKE")) {
          like(made, std::move(left));
        } else if (made.negated) {
          unexpected();
        } else {
          return left;
        }
      }
      left = std::move(made);
      if (is_more())
        fail(
            "found a second comparison, expected AND, OR or the end of the "
            "condition",
            "write AND between the comparisons, or put one comparison in "
            "parentheses");
    }
  }
  bool is_more() const {
    for (const char* word : {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "IS",
                             "ISNULL", "NOTNULL", "IN", "BETWEEN", "LIKE"})
      if (is(word)) return true;
    return false;
  }

  bool compare(Order& order) {
    static constexpr std::pair<const char*, Order> kSigns[] = {
        {"=", Order::equal},  {"==", Order::equal}, {"<>", Order::other},
        {"!=", Order::other}, {"<", Order::less},   {"<=", Order::most},
        {">", Order::more},   {">=", Order::least}};
    for (const auto& [sign, meaning] : kSigns)
      if (take(sign)) {
        order = meaning;
        return true;
      }
    return false;
  }

  void list(Condition& made, Condition left) {
    made.kind = Kind::in;
    made.parts.push_back(std::move(left));
    need("(");
    if (take(")")) return;  // in no list
    do {
      made.parts.push_back(operand());
    } while (take(","));
    need(")");
  }

  void like(Condition& made, Condition left) {
    made.kind = Kind::like;
    made.parts.push_back(std::move(left));
    if (token_.is != Token::Is::text)
      fail("a text is expected after LIKE", "write a pattern such as 'a%'");
    made.parts.push_back(operand());
    if (!take("ESCAPE")) return;
    made.escape = token_.text;
    bool one = token_.is == Token::Is::text && !token_.text.empty() &&
               is_utf8(token_.text);
    for (std::size_t at = 1; one && at < token_.text.size(); ++at)
      one = (static_cast<unsigned char>(token_.text[at]) & 0xc0) == 0x80;
    if (!one)
      fail("a text of one character is expected after ESCAPE",
           "write ESCAPE '!'");
    take();
  }

  Condition operand() {
    Condition made{.position = token_.position};
    switch (token_.is) {
      case Token::Is::number:
        return number(std::move(made), false);
      case Token::Is::text:
        made.kind = Kind::text;
        made.text = take().text;
        return made;
      case Token::Is::name:
        made.kind = Kind::column;
        made.text = take().text;
        return made;
      case Token::Is::word:
        return word(std::move(made));
      case Token::Is::sign:
        if (take("(")) {
          Condition inner = either();
          need(")");
          return inner;
        }
        if (is("-") || is("+")) {
          bool negative = take().text == "-";
          if (token_.is != Token::Is::number) unexpected();
          return number(std::move(made), negative);
        }
        break;
      case Token::Is::end:
        break;
    }
    unexpected();
  }

  Condition word(Condition made) {
    static constexpr const char* kReserved[] = {
        "AND",    "OR",   "NOT",    "IN",     "BETWEEN",
        "IS",     "LIKE", "ESCAPE", "CASE",   "SELECT",
        "EXISTS", "CAST", "GLOB",   "REGEXP", "COLLATE"};
    for (const char* reserved : kReserved)
      if (token_.upper == reserved) unexpected();
    Token token = take();
    if (is("("))
      fail("'" + token.text +
               "' is called as a function, but functions are not supported",
           "compare columns with values");
    made.kind = Kind::number;
    if (token.upper == "TRUE") {
      made.number = 1;
    } else if (token.upper == "FALSE") {
      made.number = 0;
    } else if (token.upper == "NULL") {
      made.kind = Kind::null;
    } else {
      made.kind = Kind::column;
      made.text = token.text;
    }
    return made;
  }

  // An integer of up to 19 digits keeps all of them.
  Condition number(Condition made, bool negative) {
    made.kind = Kind::number;
    const std::string& digits = token_.text;
    const char* end = digits.data() + digits.size();
    std::uint64_t integer = 0;
    double real = 0;
    if (auto found = std::from_chars(digits.data(), end, integer);
        found.ec == std::errc() && found.ptr == end)
      made.number = static_cast<long double>(integer);
    else if (auto of = real_from_chars(digits.data(), end, real);
             of.ec == std::errc() && of.ptr == end)
      made.number = static_cast<long double>(real);
    else
      fail("'" + digits + "' is not a number", "write it in digits");
    if (negative) made.number = -made.number;
    take();
    return made;
  }

  const std::string& text_;
  const std::vector<std::string>& columns_;
  Tokens tokens_;
  Token token_;
  int depth_ = 0;
};

}  // namespace

Error bad_condition(const std::string& text, std::size_t position,
                    std::string why, std::string next) {
  return Error(
      ErrorKind::request,
      {.code = "source.where",
       .what = "cannot select rows by '" + text + "'",
       .where = "source.where, character " + std::to_string(position + 1),
       .why = std::move(why),
       .next = std::move(next)});
}

Condition parse_condition(const std::string& text,
                          const std::vector<std::string>& columns) {
  return Parser(text, columns).whole();
}

}  // namespace penstock::files
