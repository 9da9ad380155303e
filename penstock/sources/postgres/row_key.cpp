#include "penstock/sources/postgres/row_key.h"

#include <algorithm>

#include "penstock/base/utf8.h"
#include "penstock/sources/blocks.h"
#include "penstock/sources/key_parts.h"
#include "penstock/sources/postgres/big_endian.h"
#include "penstock/sources/schema.h"

namespace penstock::postgres {
namespace {

// Of pg_type.dat.
constexpr std::uint32_t kInt8 = 20, kText = 25, kTid = 27, kPaddedText = 1042,
                        kUuid = 2950;

/// What a part is beside others that can be sent as its text: its text is the
/// same in every session, and has an order.
bool goes_by_text(Kind kind) {
  return kind == Kind::uuid || kind == Kind::boolean || is_time(kind) ||
         kind == Kind::enumeration;
}

/// Why a relation without a primary key has no places either.
std::string why_no_key(const Table& table) {
  switch (table.relkind) {
    case 'v':
      return "a view has no primary key";
    case 'p':
      return "the table has no primary key, and the physical position of rows "
             "(ctid) is not unique across its partitions";
    case 'f':
      return "a foreign table has no primary key";
    default:
      return "the table has no primary key, and other tables inherit from it, "
             "so the physical position of rows (ctid) is not unique";
  }
}

/// An array of one dimension (array_recv in PostgreSQL).
void append_array_head(std::string& to, std::uint32_t oid, std::size_t size) {
  append_big(to, std::int32_t{1});  // dimensions
  append_big(to, std::int32_t{0});  // no element is NULL
  append_big(to, oid);
  append_big(to, static_cast<std::int32_t>(size));
  append_big(to, std::int32_t{1});  // its first index
}

void append_bytes(std::string& to, std::string_view bytes) {
  append_big(to, static_cast<std::int32_t>(bytes.size()));
  to += bytes;
}

// A ctid is sent as its page (uint32) and its number there (uint16); keys hold
// both in one integer, page << 16 | number.
void append_integer(std::string& to, Kind kind, std::int64_t value) {
  if (kind == Kind::ctid) {
    append_big(to, std::int32_t{6});
    append_big(to, static_cast<std::uint32_t>(value >> 16));
    append_big(to, static_cast<std::uint16_t>(value & 0xffff));
    return;
  }
  append_big(to, std::int32_t{8});
  append_big(to, value);
}

}  // namespace

RowKey::RowKey(const SourceSpec& spec, const Table& table,
               const std::string& place) {
  const std::vector<const ColumnInfo*> columns =
      key_columns(table.schema, spec.key, place);
  for (const ColumnInfo* column : columns)
    parts_.push_back(part_of(*column, table, columns.size() == 1, place));
  if (!columns.empty()) return;
  if (!table.row_number.empty()) {
    parts_.push_back(
        {table.row_number, table.row_number, Kind::int8, "bigint[]", kInt8});
    return;
  }
  if (!table.has_places()) refuse_no_key(place, why_no_key(table));
  parts_.push_back({"ctid", "ctid", Kind::ctid, "tid[]", kTid});
}

RowKey::Part RowKey::part_of(const ColumnInfo& column, const Table& table,
                             bool alone, const std::string& place) const {
  const auto at =
      static_cast<std::size_t>(&column - table.schema.columns.data());
  const Kind kind = table.kinds[at];
  const std::string name = identifier(column.name);
  if (is_integer(kind)) return {column.name, name, kind, "bigint[]", kInt8};
  if (kind == Kind::text) return {column.name, name, kind, "text[]", kText};
  if (kind == Kind::padded_text)
    return {column.name, name + "::text", kind, "bpchar[]", kPaddedText};
  if (kind == Kind::uuid && alone)
    return {column.name, name, kind, "uuid[]", kUuid};
  if (goes_by_text(kind) && !alone)
    return {column.name, name + "::text", Kind::text,
            "text[]::" + table.types[at].base + "[]", kText};
  refuse_type(column, table, place,
              {.as = ReadAs::key, .setting = "source.key"});
}

ColumnType RowKey::type() const {
  if (parts_.empty()) return ColumnType::int64;
  const Kind kind = parts_[0].kind;
  if (parts_.size() > 1) return ColumnType::text;
  return kind == Kind::uuid                       ? ColumnType::uuid
         : is_integer(kind) || kind == Kind::ctid ? ColumnType::int64
                                                  : ColumnType::text;
}

Json RowKey::identity() const {
  if (parts_.empty()) return {};
  return parts_.size() == 1 ? Json(parts_[0].name) : names_of(parts_);
}

const RowKey::Part* RowKey::fault_in(std::span<const Field> fields) const {
  for (std::size_t at = 0; at < parts_.size(); ++at) {
    const Kind kind = parts_[at].kind;
    const bool text = kind == Kind::text || kind == Kind::padded_text;
    if (fields[at].null() || (text && !is_utf8(fields[at].text())))
      return &parts_[at];
  }
  return nullptr;
}

std::string RowKey::text_of(std::span<const Field> fields) const {
  KeyOfParts key;
  for (std::size_t at = 0; at < parts_.size(); ++at)
    if (is_integer(parts_[at].kind))
      key.add(integer_in(parts_[at].kind, fields[at]));
    else
      key.add(fields[at].text());
  return key.key();
}

void RowKey::append(std::span<const Field> fields, KeyList& keys) const {
  if (parts_.size() > 1)
    keys.append_bytes(text_of(fields));
  else if (type() == ColumnType::int64)
    keys.append_integer(integer_in(parts_[0].kind, fields[0]));
  else
    keys.append_bytes(fields[0].text());
}

std::optional<std::size_t> RowKey::find(std::span<const Field> fields,
                                        const KeyLookup& among) const {
  if (parts_.size() > 1) return among.find(std::string_view(text_of(fields)));
  if (type() == ColumnType::int64)
    return among.find(integer_in(parts_[0].kind, fields[0]));
  return among.find(fields[0].text());
}

// One statement for any number of keys: arrays are parameters, so it is planned
// once, and the index is probed for each element. Several columns go through
// unnest() in parallel; IN removes duplicates, so each row comes once.
std::string RowKey::condition() const {
  if (parts_.size() == 1)
    return parts_[0].name == "ctid" && is_place()
               ? "ctid = ANY($1::tid[])"
               : identifier(parts_[0].name) + " = ANY($1::" + parts_[0].array +
                     ")";
  std::string names, arrays;
  for (std::size_t at = 0; at < parts_.size(); ++at) {
    names += (at == 0 ? "" : ", ") + identifier(parts_[at].name);
    arrays += (at == 0 ? "$" : ", $") + std::to_string(at + 1) +
              "::" + parts_[at].array;
  }
  return "(" + names + ") IN (SELECT * FROM unnest(" + arrays + "))";
}

std::vector<std::string> RowKey::parameters(const KeyList& keys,
                                            const KeyLookup& asked) const {
  std::vector<std::string> arrays(parts_.size());
  for (std::size_t at = 0; at < parts_.size(); ++at)
    append_array_head(arrays[at], parts_[at].oid, asked.groups());
  for (std::size_t group = 0; group < asked.groups(); ++group) {
    const std::int64_t at = asked.position(group);
    if (parts_.size() == 1) {
      if (type() == ColumnType::int64)
        append_integer(arrays[0], parts_[0].kind, keys.integer(at));
      else
        append_bytes(arrays[0], keys.bytes(at));
      continue;
    }
    KeyParts parts(keys.bytes(at));
    for (std::size_t p = 0; p < parts_.size(); ++p)
      if (is_integer(parts_[p].kind))
        append_integer(arrays[p], parts_[p].kind, parts.integer());
      else
        append_bytes(arrays[p], parts.text());
  }
  return arrays;
}

}  // namespace penstock::postgres
