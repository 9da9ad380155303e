#include "penstock/sources/postgres/table.h"

#include <charconv>
#include <map>

#include "penstock/base/ascii.h"
#include "penstock/sources/schema.h"

namespace penstock::postgres {
namespace {

constexpr const char* kTables =
    "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname "
    "ELSE n.nspname || '.' || c.relname END, "
    "pg_table_is_visible(c.oid) AND c.relkind IN ('r', 'p') "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'm', 'v', 'p', 'f') AND NOT c.relispartition "
    "AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' "
    "ORDER BY 1";

// Followed by the expression for the oid. to_regclass gives NULL for a name
// that does not exist.
constexpr const char* kFind =
    "SELECT c.oid, c.relkind, quote_ident(n.nspname) || '.' || "
    "quote_ident(c.relname), c.relhassubclass FROM pg_class c JOIN "
    "pg_namespace n ON "
    "n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm', 'v', 'p', 'f') "
    "AND c.oid = ";

// The values of a domain are sent as those of its base type.
constexpr const char* kColumns =
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod), base.oid, "
    "(SELECT array_position(i.indkey::int2[], a.attnum) FROM pg_index i WHERE "
    "i.indrelid = a.attrelid AND i.indisprimary AND "
    "array_position(i.indkey::int2[], a.attnum) < i.";
/// A primary key may INCLUDE other columns since this version.
constexpr int kHasIncluded = 110000;
constexpr const char* kOfTable =
    "), base.typcategory, format_type(base.oid, NULL) FROM pg_attribute a "
    "CROSS "
    "JOIN LATERAL (WITH RECURSIVE b AS (SELECT t.oid, t.typbasetype, "
    "t.typcategory FROM pg_type t WHERE t.oid = a.atttypid UNION ALL SELECT "
    "t.oid, t.typbasetype, t.typcategory FROM b JOIN pg_type t ON t.oid = "
    "b.typbasetype) SELECT oid, typcategory FROM b WHERE typbasetype = 0) base "
    "WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER "
    "BY a.attnum";

Error no_table(const Connection& connection, std::string what, std::string why,
               std::string next) {
  return Error(ErrorKind::request, {.code = "source.unknown_table",
                                    .what = std::move(what),
                                    .where = connection.place(),
                                    .why = std::move(why),
                                    .next = std::move(next)});
}

std::string only_table(Connection& connection) {
  Result list = connection.execute(kTables);
  std::string name, all;
  int tables = 0;
  for (int row = 0; row < PQntuples(list.get()); ++row) {
    if (text_in(list, row, 1) != "t") continue;
    name = text_in(list, row, 0);
    all += (tables++ == 0 ? "" : ", ") + name;
  }
  if (tables == 1) return name;
  if (tables == 0)
    throw no_table(connection, "cannot read the database",
                   "the database holds no table that user '" +
                       connection.about().user + "' finds in the search path",
                   "name a table with its schema as source.table, and check "
                   "the database in source.uri");
  throw no_table(connection, "cannot choose a table",
                 "the database holds " + std::to_string(tables) + " tables",
                 "name one of them as source.table: " + all);
}

[[noreturn]] void refuse_unknown(Connection& connection,
                                 const std::string& name) {
  Result list = connection.execute(kTables);
  std::vector<std::string> names;
  for (int row = 0; row < PQntuples(list.get()); ++row)
    names.emplace_back(text_in(list, row, 0));
  throw no_table(connection, "cannot read table '" + name + "'",
                 "the table does not exist", did_you_mean(name, names));
}

/// The parts of a name that is quoted as in SQL: "a.b"."t", or "a.b".t; none
/// where it is not written so.
std::vector<std::string> quoted_parts(std::string_view written) {
  std::vector<std::string> parts;
  bool quotes = false;
  for (std::size_t at = 0; at <= written.size(); ++at) {
    std::string part;
    if (at < written.size() && written[at] == '"') {
      quotes = true;
      for (++at;; ++at) {
        if (at >= written.size()) return {};
        if (written[at] == '"' && written.substr(at + 1, 1) != "\"") break;
        if (written[at] == '"') ++at;
        part += written[at];
      }
      ++at;
    } else {
      for (; at < written.size() && written[at] != '.'; ++at)
        part += written[at];
    }
    bool ends = at == written.size() || written[at] == '.';
    if (!ends || part.empty()) return {};
    parts.push_back(std::move(part));
  }
  if (!quotes || parts.size() > 2) return {};
  return parts;
}

/// What a name may mean, as SQL writes it: a schema or a table may have a dot
/// in its name.
void add_readings(const std::string& written, std::vector<std::string>& to) {
  to.push_back(TableName(written).identifier());
  to.push_back(identifier(written));
  for (std::size_t dot = written.find('.'); dot != written.npos;
       dot = written.find('.', dot + 1))
    if (dot > 0 && dot + 1 < written.size())
      to.push_back(identifier(written.substr(0, dot)) + "." +
                   identifier(written.substr(dot + 1)));
}

void read_columns(Connection& connection, Table& table) {
  const char* in_key =
      connection.version() >= kHasIncluded ? "indnkeyatts" : "indnatts";
  Result list =
      connection.ask(std::string(kColumns) + in_key + kOfTable, {table.oid});
  std::map<int, std::string> key;  // by place in it
  for (int row = 0; row < PQntuples(list.get()); ++row) {
    std::string_view digits = text_in(list, row, 2);
    std::uint32_t oid = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), oid);
    table.add_column(std::string(text_in(list, row, 0)),
                     std::string(text_in(list, row, 1)), oid,
                     {.category = text_in(list, row, 4)[0],
                      .base = std::string(text_in(list, row, 5))});
    if (std::string place(text_in(list, row, 3)); !place.empty())
      key[std::stoi(place)] = table.schema.columns.back().name;
  }
  set_primary_key(key, table.schema);
}

}  // namespace

void Table::add_column(std::string column, std::string declared,
                       std::uint32_t oid, SqlType type) {
  type.oid = oid;
  Kind kind = kind_of(oid);
  if (type.category == 'E') kind = Kind::enumeration;
  // Types of extensions have other numbers on every server.
  if (type.category == 'U' &&
      (type.base == "vector" || type.base.ends_with(".vector")))
    kind = Kind::vector;
  // Those of texts or decimals are read as SQL writes them, "{a,b}".
  const bool list = type.category == 'A' && kind == Kind::other;
  kinds.push_back(kind);
  types.push_back(std::move(type));
  schema.columns.push_back(
      {.name = std::move(column),
       .declared = std::move(declared),
       .boolean = kind == Kind::boolean,
       .timestamp = kind == Kind::date || kind == Kind::timestamp ||
                    kind == Kind::timestamptz,
       .text = kind == Kind::text || kind == Kind::padded_text,
       .as = kind == Kind::numeric ? ReadAs::number : ReadAs::value,
       .nested = list});
}

TableName::TableName(const std::string& written) : name(written) {
  std::vector<std::string> parts = quoted_parts(written);
  if (parts.size() == 2) schema = parts[0];
  if (!parts.empty()) {
    name = parts.back();
    return;
  }
  std::size_t dot = written.find('.');
  if (dot == written.npos || dot == 0 || dot + 1 == written.size()) return;
  schema = written.substr(0, dot);
  name = written.substr(dot + 1);
}

std::string TableName::identifier() const {
  return (schema.empty() ? "" : postgres::identifier(schema) + ".") +
         postgres::identifier(name);
}

void refuse_type(const ColumnInfo& column, const Table& table,
                 const std::string& place, const ColumnRequest& want) {
  const auto at =
      static_cast<std::size_t>(&column - table.schema.columns.data());
  std::string name = identifier(column.name);
  std::string cast = cast_of(want.as, table.kinds[at], table.types[at], name);
  std::string next = "name another column";
  if (!cast.empty() && table.relkind == 'q')
    next += ", or cast it in the query: " + cast + " AS " + name;
  else if (!cast.empty())
    next +=
        ", or a view with a cast as source.table: CREATE VIEW v AS SELECT "
        "..., " +
        cast + " AS " + name + " FROM " + table.identifier;
  throw Error(ErrorKind::request,
              {.code = want.as == ReadAs::key ? "source.key_type"
                                              : "source.column_type",
               .what = "cannot read column '" + column.name + "' of " + place,
               .where = want.setting,
               .why = "its type is " + column.declared + ", expected " +
                      expected_of(want.as),
               .next = std::move(next)});
}

Table find_table(Connection& connection, const SourceSpec& spec) {
  Table table;
  table.name = spec.table.empty() ? only_table(connection) : spec.table;
  std::vector<std::string> names;
  add_readings(table.name, names);
  add_readings(ascii_lower(table.name), names);
  std::string first;
  for (std::size_t at = 1; at <= names.size(); ++at)
    first += (at == 1 ? "coalesce(to_regclass($" : "), to_regclass($") +
             std::to_string(at);
  Result found = connection.ask(kFind + first + "))", names);
  if (PQntuples(found.get()) == 0) refuse_unknown(connection, table.name);
  table.shown = "table '" + table.name + "'";
  table.oid = text_in(found, 0, 0);
  table.relkind = text_in(found, 0, 1)[0];
  table.identifier = text_in(found, 0, 2);
  table.inherited = text_in(found, 0, 3) == "t";
  read_columns(connection, table);
  return table;
}

}  // namespace penstock::postgres
