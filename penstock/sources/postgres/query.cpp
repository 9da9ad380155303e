#include "penstock/sources/postgres/query.h"

#include <charconv>
#include <utility>

#include "penstock/sources/query_text.h"

namespace penstock::postgres {
namespace {

constexpr SqlQuotes kQuotes{.dollars = true};

// What RowDescription says of columns, in words. It gives the base type of a
// domain.
constexpr const char* kTypes =
    "SELECT format_type(t.oid, c.modifier), t.typcategory, format_type(t.oid, "
    "NULL) FROM unnest($1::oid[], $2::int[]) WITH ORDINALITY c(type, modifier, "
    "at) JOIN pg_type t ON t.oid = c.type ORDER BY c.at";

Error refusal(const Connection& connection, std::string why, std::string next,
              std::string code = "source.query") {
  return Error(ErrorKind::request,
               {.code = std::move(code),
                .what = "cannot use the query in " + connection.place(),
                .where = "source.query",
                .why = std::move(why),
                .next = std::move(next)});
}

Error writes(const Connection& connection, std::string why) {
  return refusal(
      connection, std::move(why),
      "write a SELECT; write to the database with a separate program",
      "source.query_writes");
}

bool worked(const Result& result) {
  return PQresultStatus(result.get()) == PGRES_COMMAND_OK;
}

/// The columns of a statement that is parsed and not run.
Result described(Connection& connection, const SourceSpec& spec,
                 const std::string& sql) {
  Result result = connection.describe(sql);
  if (!worked(result)) throw query_failure(connection, spec, result);
  return result;
}

/// "{1,2,3}"
template <class NumberAt>
std::string array_of(int size, NumberAt number) {
  std::string array = "{";
  for (int at = 0; at < size; ++at)
    array += (at == 0 ? "" : ",") + std::to_string(number(at));
  return array + "}";
}

void add_columns(Connection& connection, const Result& about, Table& to) {
  const PGresult* from = about.get();
  const int columns = PQnfields(from);
  const Result types = connection.ask(
      kTypes, {array_of(columns, [&](int at) { return PQftype(from, at); }),
               array_of(columns, [&](int at) { return PQfmod(from, at); })});
  for (int at = 0; at < columns; ++at)
    to.add_column(PQfname(from, at), std::string(text_in(types, at, 0)),
                  PQftype(from, at),
                  {.category = text_in(types, at, 1)[0],
                   .base = std::string(text_in(types, at, 2))});
}

}  // namespace

Error query_failure(const Connection& connection, const SourceSpec& spec,
                    const Result& result) {
  const char* found = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  const std::string_view state = found == nullptr ? "" : found;
  const std::string says = "PostgreSQL says: " + connection.says(result.get());
  if (state == "25006") return writes(connection, says);
  // Class 42 is what SQL itself finds wrong, 42501 a missing privilege; 22 a
  // constant that is not a value of its type, 0A an unsupported feature.
  if ((!state.starts_with("42") || state == "42501") &&
      !state.starts_with("22") && !state.starts_with("0A"))
    return connection.error(result.get());
  // In parentheses nothing can be written: the server then reports it in many
  // ways.
  const std::string word = QueryText(spec.query, kQuotes).writing_word();
  if (!word.empty() && state != "42P01" && state != "42703")
    return writes(connection, "the query contains " + word + "; " + says);
  return refusal(connection, says,
                 "try the query with: psql '" + connection.place() + "'");
}

Table find_query(Connection& connection, const SourceSpec& spec) {
  const QueryText text(spec.query, kQuotes);
  if (text.statement().empty())
    throw refusal(connection, "the query is empty", "write SELECT ...");
  // With no parentheses around it, so that it closes none that it did not open,
  // and by the protocol that takes one statement.
  const Result alone = described(connection, spec, text.statement());
  if (PQnparams(alone.get()) != 0)
    throw refusal(connection,
                  "the query has a parameter, but parameters get no values",
                  "write the value instead of the parameter");
  Table table;
  table.shown = "the query";
  table.identifier = "(" + text.statement() + "\n) AS penstock_query";
  table.relkind = 'q';
  const Result about =
      described(connection, spec, "SELECT * FROM " + table.identifier);
  if (PQnfields(about.get()) == 0)
    throw refusal(connection, "the query returns no columns",
                  "write SELECT ...");
  add_columns(connection, about, table);
  return table;
}

Table find_rows(Connection& connection, const SourceSpec& spec) {
  return spec.query.empty() ? find_table(connection, spec)
                            : find_query(connection, spec);
}

void number_rows(const SourceSpec& spec, const std::string& place,
                 Table& query) {
  const QueryText text(spec.query, kQuotes);
  query.identifier = numbered_rows(
      text.statement(), order_of_rows(text, query.schema, true, place));
  query.row_number = kRowNumber;
}

}  // namespace penstock::postgres
