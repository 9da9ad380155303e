#include "penstock/sources/postgres/rows.h"

#include "penstock/base/name_index.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/block_writer.h"
#include "penstock/sources/postgres/arrays.h"
#include "penstock/sources/query_text.h"
#include "penstock/sources/schema.h"

namespace penstock::postgres {
namespace {

bool is_text(Kind kind) {
  return kind == Kind::text || kind == Kind::padded_text;
}
bool is_real(Kind kind) {
  return kind == Kind::float4 || kind == Kind::float8 || kind == Kind::numeric;
}

/// Whether a column of this kind may be read in this way.
bool allowed(Kind kind, ReadAs as) {
  bool number = is_integer(kind) || is_real(kind) || kind == Kind::boolean;
  switch (as) {
    case ReadAs::number:
      return number || is_time(kind) || is_text(kind) || kind == Kind::interval;
    case ReadAs::integer:
      return number;
    case ReadAs::json:
      return is_text(kind) || kind == Kind::json || kind == Kind::jsonb;
    case ReadAs::key:
    case ReadAs::value:
      return true;
  }
  return false;
}

/// So that the side of a row that is split by it depends on its value alone.
bool hashed_as_text(Kind kind) {
  return kind == Kind::interval || kind == Kind::bytea || element_of(kind);
}

ColumnType type_of(Kind kind, ReadAs as) {
  if (as == ReadAs::number) return number_type(kind);
  if (std::optional<ColumnType> given = type_given_by(as)) return *given;
  return value_type(kind);
}

}  // namespace

RowFormat::RowFormat(const SourceSpec& spec, const Table& table,
                     std::string place,
                     const std::vector<ColumnRequest>& requests, bool keys)
    : table_(table.name),
      shown_(table.shown),
      query_(spec.query),
      place_(std::move(place)) {
  if (keys) key_ = RowKey(spec, table, place_);
  for (const RowKey::Part& part : key_.parts())
    select_ += (select_.empty() ? "SELECT " : ", ") + part.selected;
  const NameIndex names(table.schema.columns, &ColumnInfo::name);
  for (const ColumnRequest& request : requests) {
    const std::optional<std::size_t> found = names.find(request.column);
    selected_.push_back(select_column(
        found
            ? table.schema.columns[*found]
            : column_of(table.schema, request.column, request.setting, place_),
        table, request));
  }
  if (select_.empty()) select_ = "SELECT 0::int8";
  select_ += " FROM " + table.identifier;
}

RowFormat::SelectedColumn RowFormat::select_column(
    const ColumnInfo& column, const Table& table,
    const ColumnRequest& request) {
  ReadAs as = request.as;
  auto at = static_cast<std::size_t>(&column - table.schema.columns.data());
  Kind kind = table.kinds[at];
  if (!allowed(kind, as)) refuse_type(column, table, place_, request);
  select_ += (select_.empty() ? "SELECT " : ", ") + identifier(column.name);
  // To be looked at or hashed, everything is a text.
  const bool as_text = kind == Kind::other || kind == Kind::enumeration ||
                       (request.hashed && hashed_as_text(kind));
  if (as_text || kind == Kind::padded_text) select_ += "::text";
  if (as_text) kind = Kind::text;
  return {.name = column.name,
          .as = as,
          .kind = kind,
          .type = type_of(kind, as),
          .numbers = number_type(element_of(kind).value_or(Kind::float8)).dtype,
          .oid = table.types[at].oid};
}

std::vector<ColumnType> RowFormat::types() const { return types_of(selected_); }

std::vector<BlockColumn> RowFormat::columns() const {
  return block_columns(selected_);
}

Json RowFormat::identity() const {
  Json identity(Json::Object{});
  identity["kind"] = "postgres";
  identity["place"] = place_;
  if (query_.empty())
    identity["table"] = table_;
  else
    identity["query"] = query_;
  identity["key"] = key_.identity();
  identity["columns"] = names_of(selected_);
  return identity;
}

void RowFormat::check_types(const Result& result) const {
  int at = 0;
  auto check = [&](const std::string& name, Kind kind, Oid oid) {
    // char(n) is requested as text. A domain is reported as its base type.
    Kind expected = kind == Kind::padded_text ? Kind::text : kind;
    const Oid type = PQftype(result.get(), at++);
    Kind found = kind_of(type);
    if (kind == Kind::vector && type == oid) return;
    if (found == expected) return;
    throw Error(ErrorKind::source,
                {.code = "postgres.changed",
                 .what = "cannot read column '" + name + "'",
                 .where = place_,
                 .why = "its type is " + std::string(sql_name(found)) +
                        " now, but was " + sql_name(kind) +
                        " when the table was opened",
                 .next = "another program has changed the table: start again"});
  };
  for (const RowKey::Part& part : key_.parts()) check(part.name, part.kind, 0);
  for (const SelectedColumn& from : selected_)
    check(from.name, from.kind, from.oid);
}

Block RowFormat::empty_block() const { return block_of(selected_); }

bool RowFormat::fits(const Block& block) const {
  return is_block_of(selected_, block);
}

void RowFormat::refuse_bytes(const std::string& column,
                             const Field& field) const {
  throw Error(
      ErrorKind::source,
      {.code = "postgres.stream",
       .what = "cannot read column '" + column + "'",
       .where = place_,
       .why = "the server sent " + std::to_string(field.size) +
              " bytes that are not a value of its type",
       .next = "the columns of the table may have changed: start again"});
}

void RowFormat::check_key(std::span<const Field> row, std::int64_t number,
                          const std::string& range) const {
  for (std::size_t at = 0; at < key_.parts().size(); ++at)
    if (!well_formed(key_.parts()[at].kind, row[at]))
      refuse_bytes(key_.parts()[at].name, row[at]);
  const RowKey::Part* part = key_.fault_in(row);
  if (part == nullptr) return;
  const Field& key = row[static_cast<std::size_t>(part - key_.parts().data())];
  auto refuse = [&](std::string why, std::string next) {
    throw Error(ErrorKind::source,
                {.code = "source.bad_key",
                 .what = "cannot use the key '" + part->name + "' of " + shown_,
                 .where = place_ + ", row number " + std::to_string(number) +
                          " of " + range,
                 .why = std::move(why),
                 .next = std::move(next)});
  };
  std::string name = identifier(part->name);
  if (key.null() && part->name == kRowNumber) refuse_same_order(place_);
  if (key.null() && !query_.empty())
    refuse("the key is NULL", "leave such rows out in the query's WHERE");
  if (key.null())
    refuse("the key is NULL",
           "correct the rows that SELECT ctid, * FROM " + table_ + " WHERE " +
               name + " IS NULL shows, or leave them out with source.where: " +
               name + " IS NOT NULL");
  if (!query_.empty())
    refuse("the key holds " + shown_text(key.text()),
           "correct that row, or convert the column in the query");
  refuse("the key holds " + shown_text(key.text()),
         "correct that row, or name a view as source.table that converts the "
         "column, from LATIN1 say: CREATE VIEW v AS SELECT ..., "
         "convert_from(convert(convert_to(" +
             name + ", 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII') AS " +
             name + " FROM " + table_);
}

bool RowFormat::append(const SelectedColumn& from, const Field& field,
                       Column& column, const char*& expected) const {
  switch (from.as) {
    case ReadAs::number:
      return append_number(from.kind, field, column, expected);
    case ReadAs::integer:
      return append_integer(from.kind, field, column, expected);
    case ReadAs::json:
      append_text(from.kind, field, column);
      return true;
    case ReadAs::key:
    case ReadAs::value:
      return append_value(from.kind, field, column, expected);
  }
  return false;
}

std::size_t RowFormat::bytes_of(std::span<const Field> row) const {
  constexpr std::size_t kLongestNumber = 32;  // as a text, as are times
  std::size_t bytes = 0;
  row = row.subspan(key_.parts().size());
  for (std::size_t at = 0; at < selected_.size(); ++at) {
    bytes += bytes_beside_text(selected_[at].type);
    if (grows_with_value(selected_[at].type))
      bytes += std::max(row[at].size, kLongestNumber);
  }
  return bytes;
}

void RowFormat::append(std::span<const Field> row, std::int64_t number,
                       const std::string& range, KeyList& keys,
                       Block& block) const {
  if (!key_.empty()) {
    check_key(row, number, range);
    key_.append(row, keys);
    row = row.subspan(key_.parts().size());
  }
  for (std::size_t at = 0; at < selected_.size(); ++at) {
    const SelectedColumn& from = selected_[at];
    if (!well_formed(from.kind, row[at])) refuse_bytes(from.name, row[at]);
    Column& column = block.columns[at];
    const char* expected = "";
    if (append(from, row[at], column, expected)) continue;
    block.problems.push_back({block.rows, at,
                              "holds " + shown(from.kind, row[at]) + " where " +
                                  expected + " is expected"});
    column.append_null();
  }
  ++block.rows;
}

}  // namespace penstock::postgres
