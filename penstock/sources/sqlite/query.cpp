#include "penstock/sources/sqlite/query.h"

#include <algorithm>
#include <utility>

#include "penstock/base/ascii.h"
#include "penstock/sources/query_text.h"

namespace penstock::sqlite {
namespace {

constexpr SqlQuotes kQuotes{.brackets = true};

[[noreturn]] void refuse(const SourceSpec& spec, std::string why,
                         std::string next, std::string code = "source.query") {
  throw Error(ErrorKind::request,
              {.code = std::move(code),
               .what = "cannot use the query in " + spec.path,
               .where = "source.query",
               .why = std::move(why),
               .next = std::move(next)});
}

/// Prepares one statement; what SQLite finds wrong with it is refused.
Statement parsed(Connection& connection, const SourceSpec& spec,
                 const std::string& sql) {
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int status =
      sqlite3_prepare_v2(connection.get(), sql.c_str(), -1, &prepared, &rest);
  Statement statement(prepared);
  if ((status & 0xff) == SQLITE_ERROR)
    refuse(spec,
           std::string("SQLite reports: ") + sqlite3_errmsg(connection.get()),
           "try the query with: sqlite3 -readonly " + spec.path);
  if (status != SQLITE_OK) throw connection.error();
  if (prepared == nullptr)
    refuse(spec, "the query is empty", "write SELECT ...");
  if (*rest != '\0')
    refuse(spec, "the query has more than one statement", "write one SELECT");
  return statement;
}

/// Only a statement by itself says whether it writes; only one that can stand
/// in parentheses is a SELECT, and not a PRAGMA or EXPLAIN.
std::string checked(Connection& connection, const SourceSpec& spec) {
  std::string text = QueryText(spec.query, kQuotes).statement();
  const Statement alone = parsed(connection, spec, text);
  if (sqlite3_stmt_readonly(alone.get()) == 0)
    refuse(spec, "the query writes to the database, but sources are only read",
           "write a SELECT; write to the database with a separate program",
           "source.query_writes");
  if (sqlite3_column_count(alone.get()) == 0)
    refuse(spec, "the query returns no rows", "write a SELECT");
  if (sqlite3_bind_parameter_count(alone.get()) != 0)
    refuse(spec, "the query has a parameter, but parameters get no values",
           "write the value instead of the parameter");
  return text;
}

/// The rows of a query in the order of SQLite's own row number, which need not
/// be a column of its result: "ORDER BY rowid". Empty where it has another
/// order.
std::string numbered_by_rowid(const QueryText& text) {
  constexpr std::string_view kRowIds[] = {"ROWID", "_ROWID_", "OID"};
  const std::vector<OrderTerm> order = text.order();
  if (order.size() != 1 || !order[0].simple || order[0].quoted ||
      std::ranges::find(kRowIds, ascii_upper(order[0].column)) ==
          std::end(kRowIds))
    return "";
  const std::string name = "penstock_rowid";
  const std::string query = text.with_column(order[0].column + " AS " + name);
  return query.empty() ? "" : numbered_rows(query, name + order[0].how);
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

Table find_query(Connection& connection, const SourceSpec& spec) {
  const std::string text = checked(connection, spec);
  Table table{.shown = "the query"};
  table.from = "(" + text + "\n) AS penstock_query";
  const Statement all = parsed(connection, spec, "SELECT * FROM " + table.from);
  for (int at = 0; at < sqlite3_column_count(all.get()); ++at)
    table.schema.columns.push_back(
        column_info(text_of(sqlite3_column_name(all.get(), at)),
                    text_of(sqlite3_column_decltype(all.get(), at))));
  return table;
}

Table find_rows(Connection& connection, const SourceSpec& spec) {
  return spec.query.empty() ? find_table(connection, spec)
                            : find_query(connection, spec);
}

void number_rows(Connection& connection, const SourceSpec& spec, Table& query) {
  const QueryText text(spec.query, kQuotes);
  query.from = numbered_by_rowid(text);
  if (query.from.empty())
    query.from = numbered_rows(
        text.statement(),
        order_of_rows(text, query.schema, false, "query in " + spec.path));
  query.row_number = kRowNumber;
  parsed(connection, spec, "SELECT * FROM " + query.from);
}

}  // namespace penstock::sqlite
