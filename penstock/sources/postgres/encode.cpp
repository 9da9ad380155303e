#include "penstock/sources/postgres/encode.h"

#include <limits>
#include <optional>

#include "penstock/sources/postgres/big_endian.h"
#include "penstock/sources/postgres/pg_timestamp.h"
#include "penstock/sources/timestamp.h"

namespace penstock::postgres {
namespace {

constexpr char kJsonbVersion = 1;

template <class T>
void append_field(std::string& to, T value) {
  append_big(to, static_cast<std::int32_t>(sizeof(T)));
  append_big(to, value);
}

template <class T>
bool append_narrow(std::string& to, std::int64_t value) {
  if (value < std::numeric_limits<T>::min() ||
      value > std::numeric_limits<T>::max())
    return false;
  append_field(to, static_cast<T>(value));
  return true;
}

bool encode_integer(std::int64_t value, Kind kind, std::string& to) {
  switch (kind) {
    case Kind::int2:
      return append_narrow<std::int16_t>(to, value);
    case Kind::int4:
      return append_narrow<std::int32_t>(to, value);
    default:
      append_field(to, value);
      return true;
  }
}

bool encode_time(std::optional<double> seconds, std::string& to) {
  if (!seconds) return false;
  std::optional<PgTimestamp> moment = PgTimestamp::at(*seconds);
  if (!moment) return false;
  append_field(to, moment->microseconds());
  return true;
}

// jsonb_recv expects a version byte (1) before the text.
bool encode_text(std::string_view text, Kind kind, std::string& to) {
  if (kind == Kind::timestamp || kind == Kind::timestamptz)
    return encode_time(timestamp_from(text), to);
  std::size_t version = kind == Kind::jsonb ? 1 : 0;
  if (text.size() + version > std::numeric_limits<std::int32_t>::max())
    return false;
  append_big(to, static_cast<std::int32_t>(text.size() + version));
  to.append(version, kJsonbVersion);
  to += text;
  return true;
}

}  // namespace

void append_copy_header(std::string& to) {
  to += std::string_view("PGCOPY\n\377\r\n\0", 11);
  append_big(to, std::int32_t{0});  // flags
  append_big(to, std::int32_t{0});  // bytes of more header
}

void append_row_head(std::string& to, std::size_t fields) {
  append_big(to, static_cast<std::int16_t>(fields));
}

void append_copy_trailer(std::string& to) { append_big(to, std::int16_t{-1}); }

bool can_encode(ColumnType type, Kind kind) {
  bool time = kind == Kind::timestamp || kind == Kind::timestamptz;
  bool text = kind == Kind::text || kind == Kind::padded_text ||
              kind == Kind::json || kind == Kind::jsonb;
  switch (type.kind) {
    case ColumnKind::boolean:
      return kind == Kind::boolean;
    case ColumnKind::number:
      if (type == ColumnType::int64)
        return kind == Kind::int2 || kind == Kind::int4 || kind == Kind::int8;
      return type == ColumnType::float64 &&
             (kind == Kind::float4 || kind == Kind::float8 || time);
    case ColumnKind::utf8:
      return text || (time && type == ColumnType::text);
    case ColumnKind::uuid:
      return kind == Kind::uuid;
    default:
      return false;
  }
}

bool encode(const Column& column, std::int64_t row, Kind kind,
            std::string& to) {
  if (!column.valid(row)) {
    append_big(to, kNullLength);
    return true;
  }
  switch (column.type.kind) {
    case ColumnKind::boolean:
      append_big(to, std::int32_t{1});
      to += static_cast<char>(column.boolean(row));
      return true;
    case ColumnKind::number: {
      if (column.type == ColumnType::int64)
        return encode_integer(column.int64(row), kind, to);
      double value = column.float64(row);
      if (kind == Kind::float4)
        append_field(to, static_cast<float>(value));
      else if (kind == Kind::float8)
        append_field(to, value);
      else
        return encode_time(value, to);
      return true;
    }
    case ColumnKind::uuid:
      append_big(to, std::int32_t{16});
      to.append(reinterpret_cast<const char*>(column.uuid(row)), 16);
      return true;
    default:
      return encode_text(column.text(row), kind, to);
  }
}

}  // namespace penstock::postgres
