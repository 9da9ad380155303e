// Templates of Jinja: pieces of text and tags, of tags their words, of words
// the statements.
#include <algorithm>
#include <optional>

#include "penstock/tokenizer/chat_lexer.h"
#include "penstock/tokenizer/chat_syntax.h"

namespace penstock::chat {
namespace {

constexpr int kMostNested = 100;
/// Of expressions in each other, as in 1 + 1 + 1, and of branches of one `if`.
constexpr int kMostInRow = 500;

using Kind = Expression::Kind;

ExpressionPtr made(Kind kind, std::string text = {}) {
  auto of = std::make_unique<Expression>();
  of->kind = kind;
  of->text = std::move(text);
  return of;
}

void add_part(Expression& to, ExpressionPtr part) {
  if (part) to.depth = std::max(to.depth, part->depth + 1);
  to.parts.push_back(std::move(part));
  if (to.depth > kMostInRow)
    exceed(
        "an expression of more than 500 operators, members or filters in a "
        "row");
}

template <class... Parts>
ExpressionPtr made_of(Kind kind, std::string text, Parts... parts) {
  ExpressionPtr of = made(kind, std::move(text));
  (add_part(*of, std::move(parts)), ...);
  return of;
}

ExpressionPtr constant(Value value) {
  ExpressionPtr of = made(Kind::constant);
  of->value = std::move(value);
  return of;
}

/// The expressions of one tag.
/// One function for each level of precedence, as in jinja2/parser.py, the
/// loosest first:
///   expression  a if b else c          joined    ~
///   either      or                     product   * / // %
///   both        and                    unary     + -
///   negation    not                    behind    .member [item] (call)
///   comparison  == != < > <= >= in     filtered  |filter, is test
///   sum         + -                    primary   names, constants, brackets
/// A filter binds tighter than any binary operator, yet -x|abs is (-x)|abs:
/// unary() reads the filters of the whole.
///
/// Templates come with downloaded models, so both recursions are bounded: that
/// of the parser by Nested, that of later walks over the tree by add_part().
class Expressions {
 public:
  explicit Expressions(const std::vector<Word>& words) : words_(words) {}

  const Word& now() const { return words_[at_]; }
  bool is(std::string_view text) const {
    return (now().kind == Word::Kind::sign || now().kind == Word::Kind::name) &&
           now().text == text;
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  void need(std::string_view text) {
    if (!take(text)) refuse("expected '" + std::string(text) + "'");
  }
  std::string name() {
    if (now().kind != Word::Kind::name) refuse("expected a name");
    return words_[at_++].text;
  }
  void need_end() {
    if (now().kind != Word::Kind::end) refuse("'" + now().text + "' there");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Failure{what + ", line " + std::to_string(now().line)};
  }

  /// Also `a, b`, a list.
  ExpressionPtr tuple() {
    ExpressionPtr first = expression();
    if (!is(",")) return first;
    ExpressionPtr all = made_of(Kind::list, "", std::move(first));
    while (take(","))
      if (now().kind != Word::Kind::end && !is(")"))
        add_part(*all, expression());
    return all;
  }

  ExpressionPtr expression() {
    const Nested nested(*this);
    ExpressionPtr value = either();
    while (take("if")) {
      ExpressionPtr condition = either();
      ExpressionPtr otherwise = take("else") ? expression() : nullptr;
      value = made_of(Kind::choice, "", std::move(value), std::move(condition),
                      std::move(otherwise));
    }
    return value;
  }

  ExpressionPtr either() {
    ExpressionPtr value = both();
    while (take("or"))
      value = made_of(Kind::either, "", std::move(value), both());
    return value;
  }

 private:
  struct Nested {
    explicit Nested(Expressions& of) : of(of) {
      if (++of.nested_ > kMostNested)
        exceed("brackets and signs are nested more than 100 deep, line " +
               std::to_string(of.now().line));
    }
    ~Nested() { --of.nested_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    Expressions& of;
  };

  ExpressionPtr both() {
    ExpressionPtr value = negation();
    while (take("and"))
      value = made_of(Kind::both, "", std::move(value), negation());
    return value;
  }

  ExpressionPtr negation() {
    const Nested nested(*this);
    if (take("not")) return made_of(Kind::negation, "", negation());
    return comparison();
  }

  ExpressionPtr comparison() {
    ExpressionPtr value = sum();
    for (int count = 0;; ++count) {
      std::string sign;
      for (std::string_view one : {"==", "!=", "<=", ">=", "<", ">", "in"})
        if (is(one)) sign = one;
      if (sign.empty() && is("not") && words_[at_ + 1].text == "in")
        sign = "not in";
      if (sign.empty()) return value;
      if (count > 0) refuse("a comparison of three");
      at_ += sign == "not in" ? 2 : 1;
      value = made_of(Kind::binary, sign, std::move(value), sum());
    }
  }

  ExpressionPtr sum() {
    ExpressionPtr value = joined();
    while (is("+") || is("-")) {
      const std::string sign = words_[at_++].text;
      value = made_of(Kind::binary, sign, std::move(value), joined());
    }
    return value;
  }

  ExpressionPtr joined() {
    ExpressionPtr value = product();
    while (take("~"))
      value = made_of(Kind::binary, "~", std::move(value), product());
    return value;
  }

  ExpressionPtr product() {
    ExpressionPtr value = unary(true);
    while (is("*") || is("/") || is("//") || is("%")) {
      const std::string sign = words_[at_++].text;
      value = made_of(Kind::binary, sign, std::move(value), unary(true));
    }
    if (is("**")) refuse("'**'");
    return value;
  }

  ExpressionPtr unary(bool filters) {
    const Nested nested(*this);
    ExpressionPtr value;
    if (take("-")) {
      value = made_of(Kind::negative, "", unary(false));
    } else if (take("+")) {
      value = unary(false);
    } else {
      value = behind(primary());
    }
    return filters ? filtered(std::move(value)) : std::move(value);
  }

  ExpressionPtr primary() {
    const Word& word = now();
    switch (word.kind) {
      case Word::Kind::number:
        ++at_;
        return constant(word.value);
      case Word::Kind::text: {
        std::string text;
        while (now().kind == Word::Kind::text) text += words_[at_++].text;
        return constant(text);
      }
      case Word::Kind::name:
        return named();
      case Word::Kind::sign:
        break;
      case Word::Kind::end:
        refuse("a tag that ends too early");
    }
    if (take("(")) {
      if (take(")")) return made(Kind::list);
      ExpressionPtr value = tuple();
      need(")");
      return value;
    }
    if (take("[")) return list();
    if (take("{")) return map();
    refuse("'" + word.text + "'");
  }

  ExpressionPtr named() {
    std::string text = name();
    if (text == "true" || text == "True") return constant(true);
    if (text == "false" || text == "False") return constant(false);
    if (text == "none" || text == "None") return constant(Value::None{});
    return made(Kind::name, std::move(text));
  }

  ExpressionPtr list() {
    ExpressionPtr all = made(Kind::list);
    while (!take("]")) {
      add_part(*all, expression());
      if (!is("]")) need(",");
    }
    return all;
  }

  ExpressionPtr map() {
    ExpressionPtr all = made(Kind::map);
    while (!take("}")) {
      add_part(*all, expression());
      need(":");
      add_part(*all, expression());
      if (!is("}")) need(",");
    }
    return all;
  }

  /// Members, items and calls.
  ExpressionPtr behind(ExpressionPtr value) {
    for (;;) {
      if (take(".")) {
        std::string member = name();
        if (is("(")) {
          if (!is_method(member)) refuse("the method '" + member + "'");
          ExpressionPtr call = made_of(Kind::method, member, std::move(value));
          arguments(*call);
          value = std::move(call);
        } else {
          value = made_of(Kind::member, std::move(member), std::move(value));
        }
      } else if (take("[")) {
        value = item(std::move(value));
      } else if (is("(")) {
        ExpressionPtr call = made_of(Kind::call, "", std::move(value));
        arguments(*call);
        value = std::move(call);
      } else {
        return value;
      }
    }
  }

  ExpressionPtr item(ExpressionPtr value) {
    ExpressionPtr begin = is(":") ? nullptr : expression();
    if (take("]"))
      return made_of(Kind::item, "", std::move(value), std::move(begin));
    need(":");
    ExpressionPtr end = is(":") || is("]") ? nullptr : expression();
    ExpressionPtr step;
    if (take(":") && !is("]")) step = expression();
    need("]");
    return made_of(Kind::slice, "", std::move(value), std::move(begin),
                   std::move(end), std::move(step));
  }

  void arguments(Expression& call) {
    need("(");
    while (!take(")")) {
      const bool named = now().kind == Word::Kind::name &&
                         words_[at_ + 1].kind == Word::Kind::sign &&
                         words_[at_ + 1].text == "=";
      if (named) {
        call.names.push_back(name());
        ++at_;
      } else if (!call.names.empty()) {
        refuse("a value after named ones");
      }
      add_part(call, expression());
      if (!is(")")) need(",");
    }
  }

  ExpressionPtr filtered(ExpressionPtr value) {
    for (;;) {
      if (take("|")) {
        std::string filter = name();
        if (!is_filter(filter)) refuse("the filter '" + filter + "'");
        ExpressionPtr call = made_of(Kind::filter, filter, std::move(value));
        if (is("(")) arguments(*call);
        value = std::move(call);
      } else if (take("is")) {
        value = tested(std::move(value));
      } else {
        return value;
      }
    }
  }

  ExpressionPtr tested(ExpressionPtr value) {
    const bool inverted = take("not");
    std::string test = name();
    if (!is_test(test)) refuse("the test '" + test + "'");
    ExpressionPtr call = made_of(Kind::test, test, std::move(value));
    if (is("("))
      arguments(*call);
    else if (now().kind == Word::Kind::text || now().kind == Word::Kind::number)
      add_part(*call, primary());
    return inverted ? made_of(Kind::negation, "", std::move(call))
                    : std::move(call);
  }

  const std::vector<Word>& words_;
  std::size_t at_ = 0;
  int nested_ = 0;
};

/// The statements of a template.
class Parser {
 public:
  explicit Parser(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

  Block read() {
    Block all;
    block({}, all);
    return all;
  }

 private:
  /// Reads up to a statement that begins with one of these, whose name it
  /// returns and which it has not passed; to the end if none exist.
  std::string block(std::vector<std::string_view> ends, Block& out) {
    if (++nested_ > kMostNested) exceed("blocks are nested more than 100 deep");
    for (; at_ < pieces_.size(); ++at_) {
      const Piece& piece = pieces_[at_];
      auto statement = std::make_unique<Statement>();
      if (piece.kind == Piece::Kind::text) {
        statement->kind = Statement::Kind::text;
        statement->text = piece.text;
      } else if (piece.kind == Piece::Kind::output) {
        Expressions words(piece.words);
        statement->kind = Statement::Kind::output;
        statement->of = words.tuple();
        words.need_end();
      } else {
        Expressions words(piece.words);
        const std::string name = words.name();
        for (std::string_view end : ends)
          if (name == end) {
            --nested_;
            return name;
          }
        *statement = read_statement(name, words);
      }
      out.push_back(std::move(statement));
    }
    if (!ends.empty())
      throw Failure{"an end of the template before '" +
                    std::string(ends.back()) + "'"};
    --nested_;
    return {};
  }

  Statement read_statement(const std::string& name, Expressions& words) {
    Statement made{.kind = Statement::Kind::leave};
    if (name == "if") return branch(words);
    if (name == "for") return loop(words);
    if (name == "set") return assignment(words);
    if (name == "macro") return macro(words);
    if (name == "generation") {
      made.kind = Statement::Kind::generation;
      words.need_end();
      body(made.body, "endgeneration");
      return made;
    }
    if (name == "break" || name == "continue") {
      if (name == "continue") made.kind = Statement::Kind::again;
      words.need_end();
      return made;
    }
    words.refuse("the statement '" + name + "'");
  }

  /// A body up to its end; stands on the end then.
  void body(Block& out, std::string_view end) {
    ++at_;
    block({end}, out);
  }

  Statement branch(Expressions& words) {
    if (++branches_ > kMostInRow)
      exceed("an 'if' with more than 500 branches, or as many in each other");
    Statement made{.kind = Statement::Kind::branch};
    made.of = words.expression();
    words.need_end();
    ++at_;
    const std::string end = block({"elif", "else", "endif"}, made.body);
    if (end == "elif") {
      Expressions next(pieces_[at_].words);
      next.name();
      made.otherwise.push_back(std::make_unique<Statement>(branch(next)));
    } else if (end == "else") {
      body(made.otherwise, "endif");
    }
    --branches_;
    return made;
  }

  Statement loop(Expressions& words) {
    Statement made{.kind = Statement::Kind::loop};
    const bool closed = words.take("(");
    do made.names.push_back(words.name());
    while (words.take(","));
    if (closed) words.need(")");
    words.need("in");
    made.of = words.either();
    if (words.take("if")) made.only = words.expression();
    if (words.is("recursive")) words.refuse("'recursive'");
    words.need_end();
    ++at_;
    if (block({"else", "endfor"}, made.body) == "else")
      body(made.otherwise, "endfor");
    return made;
  }

  Statement assignment(Expressions& words) {
    Statement made{.kind = Statement::Kind::assign};
    made.names.push_back(words.name());
    if (words.take(".")) {
      made.member = true;
      made.names.push_back(words.name());
    } else {
      while (words.take(",")) made.names.push_back(words.name());
    }
    if (words.take("=")) {
      made.of = words.tuple();
      words.need_end();
      return made;
    }
    if (words.is("|")) words.refuse("a filter of a block");
    words.need_end();
    if (made.member || made.names.size() > 1) words.refuse("such a set");
    made.kind = Statement::Kind::assign_body;
    body(made.body, "endset");
    return made;
  }

  Statement macro(Expressions& words) {
    Statement made{.kind = Statement::Kind::define};
    made.macro = std::make_unique<Macro>();
    made.macro->name = words.name();
    words.need("(");
    while (!words.take(")")) {
      made.macro->parameters.push_back(words.name());
      if (words.take("="))
        made.macro->defaults.push_back(words.expression());
      else if (!made.macro->defaults.empty())
        words.refuse("a parameter after those with defaults");
      if (!words.is(")")) words.need(",");
    }
    words.need_end();
    body(made.macro->body, "endmacro");
    return made;
  }

  const std::vector<Piece> pieces_;
  std::size_t at_ = 0;
  int nested_ = 0, branches_ = 0;
};

}  // namespace

Block read_template(std::string_view text) {
  return Parser(read_pieces(text)).read();
}

}  // namespace penstock::chat
