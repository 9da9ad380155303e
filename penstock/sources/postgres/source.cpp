#include <charconv>

#include "penstock/base/log.h"
#include "penstock/sources/condition.h"
#include "penstock/sources/postgres/arrays.h"
#include "penstock/sources/postgres/big_endian.h"
#include "penstock/sources/postgres/postgres.h"
#include "penstock/sources/postgres/query.h"
#include "penstock/sources/postgres/reader.h"
#include "penstock/sources/schema.h"
#include "penstock/sources/this_copy.h"

namespace penstock::postgres {
namespace {

/// Up to this size counting all rows takes a few milliseconds.
constexpr std::int64_t kCountedBytes = 16 << 20;

std::string place_of(const Table& table, const Connection& connection) {
  return (table.relkind == 'q' ? "query" : table.name) + " in " +
         connection.place();
}

/// Lets the server plan the statement and check privileges, without reading a
/// row. The table may have changed since its columns were read.
void check_statement(Connection& connection, const OpenTable& opened) {
  const SourceSpec& spec = opened.spec;
  auto attempt = [&](const std::string& sql) {
    // Not as simple text, which may hold several statements.
    return connection.attempt(sql + " LIMIT 0");
  };
  auto worked = [](const Result& result) {
    return PQresultStatus(result.get()) == PGRES_TUPLES_OK;
  };
  Result result = attempt(opened.select_where(""));
  if (worked(result)) opened.format.check_types(result);
  if (worked(result) && !spec.where.empty())
    result = attempt(opened.format.select() + " WHERE " + bare(spec.where));
  if (worked(result)) return;
  if (!spec.query.empty()) throw query_failure(connection, spec, result);
  const char* found = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  std::string_view state = found == nullptr ? "" : found;
  // Class 42 is what SQL itself finds wrong, 42501 a missing privilege; 22 a
  // constant that is not a value of its type, 0A an unsupported feature, 08P01
  // a missing value.
  bool parameter = state == "08P01";
  bool wrong = parameter || (state.starts_with("42") && state != "42501") ||
               state.starts_with("22") || state.starts_with("0A");
  if (spec.where.empty() || !wrong) throw connection.error(result.get());
  throw condition_error(
      spec, opened.table.schema,
      parameter ? "the condition has a parameter, but parameters get no values"
                : "PostgreSQL says: " + connection.says(result.get()));
}

/// Rows that are named by their place are in an order of this moment: what was
/// kept of them is that of no other one. The server's own name of the moment
/// changes with every transaction that writes.
void tell_of_places(Connection& connection, OpenTable& opened) {
  opened.snapshot =
      text_in(connection.execute(connection.version() >= 130000
                                     ? "SELECT pg_current_snapshot()"
                                     : "SELECT txid_current_snapshot()"),
              0, 0);
  log(LogLevel::warning,
      opened.format.place() +
          " has no primary key, so its rows are numbered by their physical "
          "position (ctid), which may differ in another run. For a stable "
          "order name a unique column, or several, as source.key");
}

/// Settings come from the connection string, from the environment (PGOPTIONS),
/// from the role and from the database: the server knows all of them.
std::string session_of(Connection& connection) {
  const Result result = connection.execute(
      "SELECT concat_ws(E'\\n', current_user, current_schemas(false)::text, "
      "(SELECT string_agg(name || '=' || setting, E'\\n' ORDER BY name) "
      "FROM pg_settings WHERE source IN ('client', 'session', 'user', "
      "'database', 'database user', 'interactive') "
      "AND name <> 'application_name'))");
  return std::string(text_in(result, 0, 0));
}

SourceFacts facts_of(const OpenTable& opened) {
  SourceFacts facts{.shown = opened.format.place(),
                    .schema = opened.table.schema,
                    .types = opened.format.types(),
                    .abilities = {.by_key = !opened.format.key().empty()},
                    .key = opened.format.key().type(),
                    .identity = opened.format.identity()};
  if (opened.spec.query.empty()) facts.identity["where"] = opened.spec.where;
  if (!opened.snapshot.empty()) facts.identity["snapshot"] = opened.snapshot;
  facts.identity[kThisCopy] = opened.session;
  return facts;
}

class PostgresSource : public Source {
 public:
  explicit PostgresSource(std::shared_ptr<OpenTable> opened)
      : Source(facts_of(*opened)), opened_(std::move(opened)) {}

  RowCount count() const override;
  std::vector<Partition> partitions(int readers) override;
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<PostgresReader>(opened_);
  }

 private:
  std::shared_ptr<OpenTable> opened_;
};

std::vector<Partition> PostgresSource::partitions(int readers) {
  auto snapshot = std::make_shared<Snapshot>(*opened_, readers);
  std::vector<Partition> parts;
  for (std::size_t at = 0; at < snapshot->parts(); ++at)
    parts.push_back(
        {snapshot->range(at), static_cast<std::int64_t>(at), snapshot});
  return parts;
}

/// Exact for a small table; else the server's own estimate, scaled to the size
/// that the table has now.
RowCount PostgresSource::count() const {
  const Table& table = opened_->table;
  const std::string& where = opened_->spec.where;
  if (!table.has_pages()) return {};
  Connection connection = opened_->connect();
  auto number_of = [&](const std::string& sql) {
    Result result = connection.execute(sql);
    std::string_view text = text_in(result, 0, 0);
    std::int64_t number = -1;  // stays for NULL: it was never estimated
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  };
  std::int64_t rows = -1;
  std::string size = "pg_relation_size(" + table.oid + ")";
  const bool counted = number_of("SELECT " + size) <= kCountedBytes;
  if (counted)
    rows = number_of("SELECT count(*) FROM " + table.identifier +
                     (where.empty() ? "" : " WHERE (" + where + "\n)"));
  else if (where.empty())
    rows = number_of(
        "SELECT CASE WHEN relpages > 0 AND reltuples >= 0 THEN (reltuples / "
        "relpages * (" +
        size +
        " / current_setting('block_size')::int))::bigint END FROM pg_class "
        "WHERE oid = " +
        table.oid);
  opened_->give(std::move(connection));
  if (rows < 0) return {};
  return {.rows = rows, .exact = counted};
}

/// Columns of arrays of which the first rows have several dimensions are called
/// so: a type of PostgreSQL does not say it.
void look_at_dimensions(Connection& connection, const SourceSpec& spec,
                        Table& table) {
  std::string names, dimensions;
  std::vector<ColumnInfo*> arrays;
  for (std::size_t at = 0; at < table.kinds.size(); ++at) {
    if (!element_of(table.kinds[at]) || table.kinds[at] == Kind::vector)
      continue;
    arrays.push_back(&table.schema.columns[at]);
    const std::string between = arrays.size() == 1 ? "" : ", ";
    const std::string name = identifier(arrays.back()->name);
    names += between + name;
    dimensions += between + "max(array_ndims(" + name + "))";
  }
  if (arrays.empty()) return;
  const Result found = connection.attempt(
      "SELECT " + dimensions + " FROM (SELECT " + names + " FROM " +
      table.identifier +
      (spec.where.empty() ? "" : " WHERE " + in_parentheses(spec.where)) +
      " LIMIT 64) AS first_rows");
  // Whoever opens the source says what is wrong with it.
  if (PQresultStatus(found.get()) != PGRES_TUPLES_OK) return;
  for (std::size_t at = 0; at < arrays.size(); ++at) {
    const std::string_view most = text_in(found, 0, static_cast<int>(at));
    if (most.empty()) continue;  // NULLs and empty arrays alone
    for (auto left = load_big<std::int32_t>(most.data()); left > 1; --left) {
      arrays[at]->nested = true;
      arrays[at]->declared += "[]";
    }
  }
}

}  // namespace

std::unique_ptr<Source> open_table(const SourceSpec& spec,
                                   const std::vector<ColumnRequest>& requests,
                                   SourceOptions options) {
  Connection connection(spec, Connection::Use::to_read, options.stop);
  Table table = find_rows(connection, spec);
  const std::string place = place_of(table, connection);
  if (!spec.query.empty() && spec.key.empty() && options.keys)
    number_rows(spec, place, table);
  SourceSpec found = spec;
  found.table = table.name;
  RowFormat format(found, table, place, requests, options.keys);
  auto opened = std::make_shared<OpenTable>(std::move(found), std::move(table),
                                            std::move(format), options.stop);
  check_statement(connection, *opened);
  opened->session = session_of(connection);
  if (opened->format.key().is_place()) tell_of_places(connection, *opened);
  opened->give(std::move(connection));
  return std::make_unique<PostgresSource>(std::move(opened));
}

Schema read_table_schema(const SourceSpec& spec) {
  Connection connection(spec, Connection::Use::to_read);
  Table table = find_rows(connection, spec);
  look_at_dimensions(connection, spec, table);
  return std::move(table.schema);
}

}  // namespace penstock::postgres
