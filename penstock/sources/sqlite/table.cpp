#include "penstock/sources/sqlite/table.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "penstock/base/ascii.h"
#include "penstock/base/shown.h"
#include "penstock/sources/schema.h"

namespace penstock::sqlite {
namespace {

struct Entry {
  std::string name;
  bool view;
};

std::vector<Entry> tables_of(Connection& connection) {
  Statement list = connection.prepare(
      "SELECT name, type = 'view' FROM sqlite_master WHERE type IN ('table', "
      "'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rowid");
  std::vector<Entry> tables;
  for (bool row = connection.send(list.get()); row;
       row = connection.next(list.get()))
    tables.push_back({std::string(text_at(list.get(), 0, false)),
                      sqlite3_column_int(list.get(), 1) != 0});
  return tables;
}

Error no_table(const SourceSpec& spec, std::string what, std::string why,
               std::string next) {
  return Error(ErrorKind::request, {.code = "source.unknown_table",
                                    .what = std::move(what),
                                    .where = spec.path,
                                    .why = std::move(why),
                                    .next = std::move(next)});
}

Entry chosen(const std::vector<Entry>& tables, const SourceSpec& spec) {
  std::vector<std::string> names;  // of tables alone: what an open choice means
  for (const Entry& table : tables)
    if (!table.view) names.push_back(table.name);
  if (spec.table.empty() && names.size() == 1) return {names[0], false};
  if (tables.empty()) {
    std::error_code unknown;
    bool empty = std::filesystem::file_size(spec.path, unknown) == 0;
    throw no_table(
        spec, "cannot read the database",
        empty ? "the database holds no table: the file has 0 bytes"
              : "the database holds no table",
        empty ? "check source.path; an interrupted copy leaves such a file"
              : "check source.path");
  }
  if (spec.table.empty())
    throw no_table(
        spec, "cannot choose a table",
        "the database holds " + std::to_string(names.size()) + " tables",
        "name one of them as source.table" +
            (names.empty() ? "" : ": " + listed(names)));
  auto found = std::ranges::find(tables, spec.table, &Entry::name);
  if (found != tables.end()) return *found;
  for (const Entry& table : tables)
    if (table.view) names.push_back(table.name);
  throw no_table(spec, "cannot read table '" + spec.table + "'",
                 "the table does not exist", did_you_mean(spec.table, names));
}

Schema schema_of(Connection& connection, const std::string& table) {
  Statement list = connection.prepare(
      "SELECT name, type, pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1");
  sqlite3_bind_text(list.get(), 1, table.data(), static_cast<int>(table.size()),
                    SQLITE_STATIC);
  Schema schema;
  std::map<int, std::string> key;  // by place in it
  for (bool row = connection.send(list.get()); row;
       row = connection.next(list.get())) {
    ColumnInfo column = column_info(std::string(text_at(list.get(), 0, false)),
                                    std::string(text_at(list.get(), 1, false)));
    if (const int at = sqlite3_column_int(list.get(), 2); at > 0)
      key[at] = column.name;
    schema.columns.push_back(std::move(column));
  }
  set_primary_key(key, schema);
  return schema;
}

constexpr const char* kRowNumbers[] = {"rowid", "_rowid_", "oid"};

// Views and tables WITHOUT ROWID have none; a column may take its name.
// https://sqlite.org/rowidtable.html: a table has rowid, _rowid_ and oid as
// names of its row number, unless a column has that name. An INTEGER PRIMARY
// KEY is an alias of it.
std::string rowid_of(Connection& connection, const Table& table) {
  if (table.view) return "";
  for (const char* name : kRowNumbers) {
    bool taken = std::ranges::any_of(
        table.schema.columns, [&](const ColumnInfo& column) {
          return ascii_upper(column.name) == ascii_upper(name);
        });
    if (taken) continue;
    std::string sql =
        std::string("SELECT ") + name + " FROM " + identifier(table.name);
    sqlite3_stmt* statement = nullptr;
    int status = sqlite3_prepare_v2(connection.get(), sql.c_str(), -1,
                                    &statement, nullptr);
    sqlite3_finalize(statement);
    return status == SQLITE_OK ? name : "";
  }
  return "";
}

bool names_rowid(const std::string& name) {
  return std::ranges::any_of(kRowNumbers, [&](const char* number) {
    return ascii_upper(name) == ascii_upper(number);
  });
}

}  // namespace

std::vector<ColumnInfo> Table::key_columns(const std::vector<std::string>& key,
                                           const std::string& place) const {
  const bool asked = key.size() == 1 && !rowid.empty() &&
                     schema.find(key[0]) == nullptr && names_rowid(key[0]);
  std::vector<ColumnInfo> columns;
  if (!asked)
    for (const ColumnInfo* column : penstock::key_columns(schema, key, place))
      columns.push_back(*column);
  if (!columns.empty()) return columns;
  if (!row_number.empty()) return {{.name = row_number, .declared = "INTEGER"}};
  if (rowid.empty())
    refuse_no_key(place,
                  view ? "a view has no primary key"
                       : "the table has neither a primary key nor row numbers");
  return {{.name = rowid, .declared = "INTEGER"}};
}

ColumnInfo column_info(std::string name, std::string declared) {
  ColumnInfo column{.name = std::move(name), .declared = std::move(declared)};
  std::string word = ascii_upper(column.declared);
  column.boolean = word == "BOOL" || word == "BOOLEAN";
  column.timestamp = word.find("DATE") != std::string::npos ||
                     word.find("TIME") != std::string::npos;
  column.text =
      !column.timestamp && affinity_of(column.declared) == Affinity::text;
  return column;
}

// https://sqlite.org/datatype3.html, section 3.1, "Determination Of Column
// Affinity": five rules, of which the first that fits holds. CHARINT is INTEGER
// by rule 1, and "FLOATING POINT" is INTEGER as well, since it contains INT.
Affinity affinity_of(std::string_view declared) {
  std::string word = ascii_upper(declared);
  auto has = [&](const char* part) {
    return word.find(part) != std::string::npos;
  };
  if (has("INT")) return Affinity::integer;
  if (has("CHAR") || has("CLOB") || has("TEXT")) return Affinity::text;
  if (has("BLOB") || word.empty()) return Affinity::blob;
  if (has("REAL") || has("FLOA") || has("DOUB")) return Affinity::real;
  return Affinity::numeric;
}

Table find_table(Connection& connection, const SourceSpec& spec) {
  Entry entry = chosen(tables_of(connection), spec);
  Table table;
  table.name = entry.name;
  table.shown = "table '" + entry.name + "'";
  table.from = identifier(entry.name);
  table.view = entry.view;
  table.schema = schema_of(connection, table.name);
  table.rowid = rowid_of(connection, table);
  return table;
}

}  // namespace penstock::sqlite
