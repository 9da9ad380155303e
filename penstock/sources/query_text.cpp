#include "penstock/sources/query_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "penstock/base/ascii.h"
#include "penstock/base/error.h"

namespace penstock {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool continues_word(char c) {
  return begins_word(c) || is_digit(c) || c == '$';
}
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// After the `closing` that ends what begins before `at`; two of them stand for
/// one. The end of the text if none exists.
std::size_t after_quoted(std::string_view sql, std::size_t at, char closing,
                         bool backslashes = false) {
  for (; at < sql.size(); ++at) {
    if (backslashes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == closing) {
      if (sql.substr(at + 1, 1) != std::string_view(&closing, 1)) return at + 1;
      ++at;
    }
  }
  return sql.size();
}

std::size_t after_comment(std::string_view sql, std::size_t at, bool nested) {
  int open = 0;
  for (; at + 1 < sql.size(); ++at) {
    const std::string_view two = sql.substr(at, 2);
    if (two == "/*" && (nested || open == 0)) {
      ++open;
      ++at;
    } else if (two == "*/") {
      ++at;
      if (--open == 0) return at + 1;
    }
  }
  return sql.size();
}

/// After $tag$ ... $tag$, or after the '$' if there is no tag.
std::size_t after_dollars(std::string_view sql, std::size_t at) {
  std::size_t end = at + 1;
  while (end < sql.size() && continues_word(sql[end]) && sql[end] != '$') ++end;
  if (end == sql.size() || sql[end] != '$' || is_digit(sql[at + 1]))
    return at + 1;
  const std::string_view tag = sql.substr(at, end + 1 - at);
  const std::size_t closing = sql.find(tag, end + 1);
  return closing == sql.npos ? sql.size() : closing + tag.size();
}

std::size_t after_blanks(std::string_view sql, std::size_t at, bool nested) {
  while (at < sql.size()) {
    if (is_blank(sql[at]))
      ++at;
    else if (sql.substr(at, 2) == "--")
      at = std::min(sql.find('\n', at), sql.size());
    else if (sql.substr(at, 2) == "/*")
      at = after_comment(sql, at, nested);
    else
      break;
  }
  return at;
}

/// All from `first` to the end of `last`, which lies in the same text.
std::string_view through(const char* first, std::string_view last) {
  return {first, static_cast<std::size_t>(last.data() - first) + last.size()};
}

/// A name without its quotes.
std::string without_quotes(std::string_view quoted) {
  const char closing = quoted.back();
  std::string name;
  for (std::size_t at = 1; at + 1 < quoted.size(); ++at) {
    name += quoted[at];
    if (quoted[at] == closing) ++at;
  }
  return name;
}

[[noreturn]] void refuse_order(const std::string& place, std::string why) {
  throw Error(
      ErrorKind::request,
      {.code = "source.query_order",
       .what = "cannot number the rows of the " + place,
       .where = "source.query",
       .why = std::move(why),
       .next =
           "end the query with ORDER BY over result columns that are unique "
           "together, or name a unique column as source.key. In a join select "
           "such a column: SELECT a.id, ... FROM a JOIN b ... ORDER BY id"});
}

}  // namespace

// This is a scanner, not a parser: it knows only what may hide a word
// (comments, quoted texts and names) and how many parentheses are open. The
// depth of a closing parenthesis is that of its opening one, so everything
// between them has a larger depth, and words of depth 0 are those of the
// outermost statement.
QueryText::QueryText(std::string written, SqlQuotes quotes)
    : written_(std::move(written)) {
  const std::string_view sql = written_;
  int depth = 0;
  std::size_t end = 0;
  for (std::size_t at = after_blanks(sql, 0, quotes.dollars); at < sql.size();
       at = after_blanks(sql, end, quotes.dollars)) {
    Token token = token_at(at, quotes);
    end = at + token.text.size();
    if (token.text == ")") --depth;
    token.depth = depth;
    if (token.text == "(") ++depth;
    tokens_.push_back(token);
  }
  while (!tokens_.empty() && tokens_.back().text == ";") tokens_.pop_back();
  if (tokens_.empty()) return;
  statement_ = through(written_.data(), tokens_.back().text);
}

QueryText::Token QueryText::token_at(std::size_t at, SqlQuotes quotes) const {
  const std::string_view sql = written_;
  const char c = sql[at];
  std::size_t end = at + 1;
  bool word = false, name = false;
  if (begins_word(c)) {
    word = true;
    while (end < sql.size() && continues_word(sql[end])) ++end;
    const bool escapes =
        quotes.dollars && end == at + 1 && ascii_upper(c) == 'E';
    if (escapes && sql.substr(end, 1) == "'") {
      word = false;
      end = after_quoted(sql, end + 1, '\'', true);
    }
  } else if (is_digit(c)) {
    while (end < sql.size() && (continues_word(sql[end]) || sql[end] == '.'))
      ++end;
  } else if (c == '\'') {
    end = after_quoted(sql, end, c);
  } else if (c == '"' || (quotes.brackets && c == '`')) {
    name = true;
    end = after_quoted(sql, end, c);
  } else if (quotes.brackets && c == '[') {
    name = true;
    const std::size_t closing = sql.find(']', at);
    end = closing == sql.npos ? sql.size() : closing + 1;
  } else if (quotes.dollars && c == '$') {
    end = after_dollars(sql, at);
  }
  return {.text = sql.substr(at, end - at), .word = word, .name = name};
}

bool QueryText::is_word(std::size_t token, std::string_view word) const {
  return token < tokens_.size() && tokens_[token].word &&
         ascii_upper(tokens_[token].text) == word;
}

std::string QueryText::verb() const {
  for (const Token& token : tokens_)
    if (token.text != "(") return ascii_upper(token.text);
  return "";
}

// A guard against mistakes, not against malice: what a query may do is decided
// by the database, which reads in a read-only transaction or opens its file so.
std::string QueryText::writing_word() const {
  constexpr std::string_view kVerbs[] = {
      "INSERT", "UPDATE", "DELETE", "MERGE",    "REPLACE",
      "CREATE", "DROP",   "ALTER",  "TRUNCATE", "COPY"};
  for (std::size_t at = 0; at < tokens_.size(); ++at) {
    if (tokens_[at].depth == 0 && is_word(at, "INTO")) return "INTO";
    const bool begins =
        at == 0 || tokens_[at - 1].text == "(" || tokens_[at - 1].text == ")";
    const bool call = at + 1 < tokens_.size() && tokens_[at + 1].text == "(";
    if (!begins || call) continue;
    for (const std::string_view verb : kVerbs)
      if (is_word(at, verb)) return std::string(verb);
  }
  return "";
}

OrderTerm QueryText::term(std::size_t begin, std::size_t end) const {
  OrderTerm term;
  term.written = through(tokens_[begin].text.data(), tokens_[end - 1].text);
  const Token& named = tokens_[begin];
  term.simple = end == begin + 1;
  for (const char* word : {"ASC", "DESC", "NULLS", "COLLATE", "USING"})
    term.simple |= is_word(begin + 1, word);
  const std::string_view text = named.text;
  auto [stop, failed] =
      std::from_chars(text.data(), text.data() + text.size(), term.number);
  const bool number =
      failed == std::errc() && stop == text.data() + text.size();
  term.simple &= named.word || (named.name && text.size() > 1) || number;
  if (!term.simple)
    return {.simple = false, .written = std::move(term.written)};
  if (named.word) term.column = text;
  if (named.name) term.column = without_quotes(text);
  term.quoted = named.name;
  for (std::size_t at = begin + 1; at < end; ++at)
    term.how += " " + std::string(tokens_[at].text);
  return term;
}

// The last ORDER BY at depth 0 sorts the result; those in parentheses belong to
// subqueries and to window functions.
std::vector<OrderTerm> QueryText::order() const {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < tokens_.size(); ++at)
    if (tokens_[at].depth == 0 && is_word(at, "ORDER") && is_word(at + 1, "BY"))
      begin = at + 2;
  std::vector<OrderTerm> terms;
  if (begin == 0) return terms;
  auto ends = [&](std::size_t at) {
    if (at >= tokens_.size()) return true;
    if (tokens_[at].depth > 0) return false;
    for (const char* word : {"LIMIT", "OFFSET", "FETCH", "FOR"})
      if (is_word(at, word)) return true;
    return false;
  };
  for (std::size_t at = begin; !ends(begin); begin = at) {
    while (!ends(at) && !(tokens_[at].depth == 0 && tokens_[at].text == ","))
      ++at;
    if (at == begin) break;
    terms.push_back(term(begin, at));
    if (!ends(at)) ++at;
  }
  return terms;
}

std::string QueryText::with_column(std::string_view column) const {
  std::optional<std::size_t> from;
  bool selects = false;
  for (std::size_t at = 0; at < tokens_.size(); ++at) {
    if (tokens_[at].depth > 0) continue;
    for (const char* word : {"UNION", "INTERSECT", "EXCEPT", "GROUP", "VALUES"})
      if (is_word(at, word)) return "";
    const bool distinct = is_word(at, "DISTINCT");
    if (distinct && is_word(at - 1, "SELECT")) return "";
    selects |= is_word(at, "SELECT");
    // "a IS DISTINCT FROM b" is an expression.
    if (selects && !from && is_word(at, "FROM") && !is_word(at - 1, "DISTINCT"))
      from = at;
  }
  if (!from) return "";
  const auto at =
      static_cast<std::size_t>(tokens_[*from].text.data() - written_.data());
  const auto begin =
      static_cast<std::size_t>(tokens_[0].text.data() - written_.data());
  return written_.substr(begin, at - begin) + ", " + std::string(column) + " " +
         statement_.substr(at - begin);
}

namespace {

/// Of "t.id", where the result has the column: what to write.
std::string name_to_write(std::string_view written, const Schema& schema) {
  const std::string_view name = written.substr(written.rfind('.') + 1);
  for (const ColumnInfo& column : schema.columns)
    if (name.size() < written.size() &&
        ascii_lower(column.name) == ascii_lower(name))
      return ": write ORDER BY " + std::string(name);
  return {};
}

}  // namespace

std::string order_of_rows(const QueryText& query, const Schema& schema,
                          bool folds, const std::string& place) {
  const std::vector<OrderTerm> terms = query.order();
  if (terms.empty())
    refuse_order(place,
                 "the query has no ORDER BY, and source.key names no column");
  std::string order;
  for (const OrderTerm& term : terms) {
    if (!term.simple)
      refuse_order(place, "the query is ordered by '" + term.written +
                              "', which is not the name of a column of the "
                              "result" +
                              name_to_write(term.written, schema));
    const ColumnInfo* found = nullptr;
    if (term.column.empty() && term.number <= schema.columns.size() &&
        term.number > 0)
      found = &schema.columns[term.number - 1];
    for (const ColumnInfo& column : schema.columns) {
      if (found != nullptr || term.column.empty()) break;
      const bool same =
          term.quoted && folds ? column.name == term.column
          : folds              ? column.name == ascii_lower(term.column)
                  : ascii_lower(column.name) == ascii_lower(term.column);
      if (same) found = &column;
    }
    if (found == nullptr)
      refuse_order(place, "the query is ordered by '" + term.written +
                              "', but its result has no such column");
    std::string name = "\"";
    for (char c : found->name) name.append(c == '"' ? 2 : 1, c);
    order += (order.empty() ? "" : ", ") + name + "\"" + term.how;
  }
  return order;
}

// rank() gives equal rows one number and row_number() does not, so the two
// differ at just those rows that ORDER BY leaves in any order. Numbers that
// depend on luck would give other samples in the next epoch; such a row gets
// NULL, which the reader refuses. The newline ends a comment at the end of the
// query.
std::string numbered_rows(const std::string& query, const std::string& order) {
  const std::string number = "row_number() OVER penstock_order";
  return "(SELECT penstock_rows.*, CASE WHEN rank() OVER penstock_order = " +
         number + " THEN " + number + " - 1 END AS " + kRowNumber + " FROM (" +
         query +
         "\n) AS penstock_rows WINDOW penstock_order AS "
         "(ORDER BY " +
         order + ")) AS penstock_query";
}

void refuse_same_order(const std::string& place) {
  throw Error(
      ErrorKind::source,
      {.code = "source.query_ties",
       .what = "cannot number the rows of the " + place,
       .where = "source.query",
       .why = "two rows are equal in all columns of the ORDER BY, so their "
              "order is not fixed",
       .next =
           "add a unique column to the ORDER BY, or name one as source.key"});
}

}  // namespace penstock
