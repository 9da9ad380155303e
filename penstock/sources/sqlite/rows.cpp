#include "penstock/sources/sqlite/rows.h"

#include <algorithm>

#include "penstock/base/name_index.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/block_writer.h"
#include "penstock/sources/condition.h"
#include "penstock/sources/key_parts.h"
#include "penstock/sources/query_text.h"
#include "penstock/sources/schema.h"

namespace penstock::sqlite {
namespace {

/// The type of the first key in the table, where the declaration does not give
/// it.
ColumnType first_key_type(Connection& connection, const SourceSpec& spec,
                          const Table& table, const std::string& column) {
  std::string name = identifier(column);
  std::string sql = "SELECT typeof(" + name + ") FROM " + table.from +
                    " WHERE " + name + " IS NOT NULL";
  if (!spec.where.empty()) sql += " AND " + in_parentheses(spec.where);
  Statement first = connection.prepare(sql + " LIMIT 1");
  if (!connection.send(first.get())) return ColumnType::int64;
  std::string found(text_at(first.get(), 0, false));
  if (found == "integer") return ColumnType::int64;
  if (found == "text") return ColumnType::text;
  throw Error(
      ErrorKind::request,
      {.code = "source.key_type",
       .what = "cannot use '" + column + "' as the key of " + table.shown,
       .where = spec.path,
       .why = "the first value of the column is a " + found,
       .next = "name a column of integers or texts as source.key"});
}

ColumnType type_of(Connection& connection, const SourceSpec& spec,
                   const Table& table, const ColumnInfo& column, ReadAs as,
                   bool hashed) {
  if (std::optional<ColumnType> given = type_given_by(as)) return *given;
  Affinity affinity = affinity_of(column.declared);
  if (as == ReadAs::key) {
    if (affinity == Affinity::integer) return ColumnType::int64;
    if (affinity == Affinity::text) return ColumnType::text;
    return first_key_type(connection, spec, table, column.name);
  }
  if (affinity == Affinity::integer || column.boolean) return ColumnType::int64;
  if (affinity == Affinity::real) return ColumnType::float64;
  // Without a declared type anything may be in it, mostly text.
  const bool binary =
      affinity == Affinity::blob && !column.declared.empty() && !hashed;
  return binary ? ColumnType::binary : ColumnType::text;
}

Times times_of(const ColumnInfo& column, const ColumnRequest& want) {
  if (column.timestamp || column.text) return Times::taken;
  if (affinity_of(column.declared) != Affinity::blob) return Times::unexpected;
  return want.rounded ? Times::rounded : Times::taken;
}

bool keeps_utf8(Connection& connection) {
  Statement encoding = connection.prepare("PRAGMA encoding");
  connection.send(encoding.get());
  return text_at(encoding.get(), 0, false) == "UTF-8";
}

}  // namespace

RowFormat::RowFormat(Connection& connection, const SourceSpec& spec,
                     const Table& table,
                     const std::vector<ColumnRequest>& requests, bool keys)
    : table_(table.name),
      shown_(table.shown),
      query_(spec.query),
      path_(spec.path),
      utf8_(keeps_utf8(connection)) {
  std::string place =
      (query_.empty() ? table.name : "query") + " in " + spec.path;
  int selected = 0;
  auto select_column = [&](const ColumnInfo& column,
                           const ColumnRequest& request) {
    // The key may be requested as a value too: SQLite limits the columns.
    auto again = std::ranges::find(key_, column.name, &SelectedColumn::name);
    if (again == key_.end())
      select_ += (selected == 0 ? "SELECT " : ", ") + identifier(column.name);
    return SelectedColumn{
        column.name,
        request.as,
        type_of(connection, spec, table, column, request.as, request.hashed),
        column.boolean,
        times_of(column, request),
        request.hashed,
        again == key_.end() ? selected++ : again->at};
  };
  if (keys)
    for (const ColumnInfo& column : table.key_columns(spec.key, place)) {
      key_.push_back(select_column(column, {.as = ReadAs::key}));
      key_names_.push_back(identifier(column.name));
    }
  const NameIndex names(table.schema.columns, &ColumnInfo::name);
  for (const ColumnRequest& request : requests) {
    const std::optional<std::size_t> found = names.find(request.column);
    selected_.push_back(select_column(
        found ? table.schema.columns[*found]
              : column_of(table.schema, request.column, request.setting, place),
        request));
  }
  if (selected == 0) select_ = "SELECT 0";
  int most = sqlite3_limit(connection.get(), SQLITE_LIMIT_COLUMN, -1);
  if (has_key() && !table.rowid.empty() && selected < most) {
    select_ += ", " + table.from + "." + table.rowid;
    rowid_at_ = selected;
  }
}

std::vector<ColumnType> RowFormat::types() const { return types_of(selected_); }

Json RowFormat::identity() const {
  Json identity(Json::Object{});
  identity["kind"] = "sqlite";
  identity["path"] = path_;
  if (query_.empty())
    identity["table"] = table_;
  else
    identity["query"] = query_;
  identity["key"] = key_.size() == 1 ? Json(key_[0].name)
                    : has_key()      ? names_of(key_)
                                     : Json();
  identity["columns"] = names_of(selected_);
  return identity;
}

Block RowFormat::empty_block() const { return block_of(selected_); }

bool RowFormat::fits(const Block& block) const {
  return is_block_of(selected_, block);
}

std::size_t RowFormat::bytes_of(sqlite3_stmt* row) const {
  constexpr std::size_t kLongestNumber = 24;  // in decimal digits
  std::size_t bytes = 0;
  for (const SelectedColumn& from : selected_) {
    bytes += bytes_beside_text(from.type);
    if (!grows_with_value(from.type)) continue;
    // Not by the functions for columns, each of which checks for errors.
    sqlite3_value* value = sqlite3_column_value(row, from.at);
    int type = sqlite3_value_type(value);
    bytes += type == SQLITE_TEXT || type == SQLITE_BLOB
                 ? static_cast<std::size_t>(sqlite3_value_bytes(value))
                 : kLongestNumber;
  }
  return bytes;
}

void RowFormat::check_key(const SelectedColumn& from, const Value& value,
                          std::int64_t number) const {
  bool integers = from.type == ColumnType::int64;
  if (integers ? value.type == SQLITE_INTEGER
               : value.type == SQLITE_TEXT && is_utf8(value.text()))
    return;
  if (from.name == kRowNumber) refuse_same_order("query in " + path_);
  std::string which =
      rowid_at_
          ? "rowid " +
                std::to_string(sqlite3_column_int64(value.row, *rowid_at_))
          : "row number " + std::to_string(number + 1) + " of the result";
  throw Error(ErrorKind::source,
              {.code = "source.bad_key",
               .what = "cannot use the key '" + from.name + "' of " + shown_,
               .where = path_ + ", " + which,
               .why = "the key holds " + value.shown() + " where " +
                      (integers ? "an integer" : "a text") + " is expected",
               .next = "correct that row, or leave it out with " +
                       std::string(query_.empty() ? "source.where"
                                                  : "the query's WHERE")});
}

void RowFormat::append_key(sqlite3_stmt* row, std::int64_t number,
                           KeyList& keys) const {
  KeyOfParts parts;
  for (const SelectedColumn& from : key_) {
    Value value{row, from.at, utf8_};
    check_key(from, value, number);
    bool integers = from.type == ColumnType::int64;
    if (key_.size() == 1 && integers)
      keys.append_integer(sqlite3_column_int64(row, from.at));
    else if (key_.size() == 1)
      keys.append_bytes(value.text());
    else if (integers)
      parts.add(sqlite3_column_int64(row, from.at));
    else
      parts.add(value.text());
  }
  if (key_.size() > 1) keys.append_bytes(parts.key());
}

bool RowFormat::append_value(const Value& value, const SelectedColumn& from,
                             Column& column, const char*& expected) const {
  bool boolean = from.boolean && !from.hashed;
  bool taken = true;
  if (from.type == ColumnType::int64)
    taken = append_integer(value, boolean, column, expected);
  else if (from.type == ColumnType::float64)
    taken = append_number(value, false, Times::unexpected, column, expected);
  else if (from.type == ColumnType::binary)
    taken = append_bytes(value, column, expected);
  else
    append_as_text(value, column);
  if (taken || !from.hashed) return taken;
  append_stand_in(value, column);
  return true;
}

void RowFormat::append(sqlite3_stmt* row, std::int64_t number, KeyList& keys,
                       Block& block) const {
  if (has_key()) append_key(row, number, keys);
  for (std::size_t at = 0; at < selected_.size(); ++at) {
    const SelectedColumn& from = selected_[at];
    Column& column = block.columns[at];
    Value value{row, from.at, utf8_};
    const char* expected = "";
    bool taken = true;
    switch (from.as) {
      case ReadAs::number:
        taken =
            append_number(value, from.boolean, from.times, column, expected);
        break;
      case ReadAs::integer:
        taken = append_integer(value, from.boolean, column, expected);
        break;
      case ReadAs::json:
        taken = append_json(value, column, expected);
        break;
      case ReadAs::key:
      case ReadAs::value:
        taken = append_value(value, from, column, expected);
        break;
    }
    if (taken) continue;
    block.problems.push_back(
        {block.rows, at,
         "holds " + value.shown() + " where " + expected + " is expected"});
    column.append_null();
  }
  ++block.rows;
}

}  // namespace penstock::sqlite
