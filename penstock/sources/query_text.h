#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/columns.h"

namespace penstock {

/// How a database writes what is neither a word nor a sign.
struct SqlQuotes {
  bool brackets = false;  ///< names as [a b] and `a b` (SQLite)
  /// Texts as $$...$$, comments in comments, and backslashes in texts that
  /// begin with E (PostgreSQL).
  bool dollars = false;
};

/// One term of an ORDER BY: a column of the result, and how it sorts.
struct OrderTerm {
  std::string column;   ///< its name; empty: it is the `number`th
  bool quoted = false;  ///< the name is exact
  std::size_t number = 0;
  std::string how;     ///< " DESC NULLS LAST"; may be empty
  bool simple = true;  ///< false: it is an expression, and all else is empty
  std::string written;
};

/// A query of the user's, as far as its words show what the database does not
/// say: the database itself parses it.
class QueryText {
 public:
  QueryText(std::string written, SqlQuotes quotes);
  QueryText(const QueryText&) = delete;  // its tokens lie in its text
  QueryText& operator=(const QueryText&) = delete;

  /// Without what follows its last word: blanks, comments, semicolons. Empty:
  /// there was nothing else.
  const std::string& statement() const { return statement_; }
  /// The first word that is no parenthesis, in capital letters.
  std::string verb() const;
  /// The word that makes it write, "INSERT", where one stands at its beginning
  /// or at that of a part of it in parentheses; else empty.
  std::string writing_word() const;
  /// The terms of the ORDER BY that sorts the whole result; none where there is
  /// no such ORDER BY.
  std::vector<OrderTerm> order() const;
  /// The statement with one more column at the end of its result, such as
  /// "rowid AS n". Empty where that could change its rows, or where it reads no
  /// table.
  std::string with_column(std::string_view column) const;

 private:
  struct Token {
    std::string_view text;
    int depth = 0;  ///< parentheses that are open
    bool word = false, name = false;
  };
  Token token_at(std::size_t at, SqlQuotes quotes) const;
  bool is_word(std::size_t token, std::string_view word) const;
  OrderTerm term(std::size_t begin, std::size_t end) const;

  std::string written_;
  std::string statement_;
  std::vector<Token> tokens_;  // of written_
};

/// The columns of the result, `schema`, by which a query sorts, as SQL for OVER
/// (ORDER BY ...). Error(request), source.query_order, where its text does not
/// fix an order by them. `folds`: names without quotes are in small letters
/// (PostgreSQL), else in any case.
std::string order_of_rows(const QueryText& query, const Schema& schema,
                          bool folds, const std::string& place);

/// The column that numbers the rows of a query, from 0.
inline constexpr const char* kRowNumber = "penstock_row";
/// What stands after FROM in place of a query whose rows are numbered so. The
/// number is NULL where `order` does not tell a row from the one before it.
std::string numbered_rows(const std::string& query, const std::string& order);
/// Throws Error(source), source.query_ties, of such a row.
[[noreturn]] void refuse_same_order(const std::string& place);

}  // namespace penstock
