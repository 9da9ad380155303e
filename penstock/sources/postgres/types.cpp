#include "penstock/sources/postgres/types.h"

#include <cmath>
#include <limits>
#include <optional>

#include "penstock/base/utf8.h"
#include "penstock/sources/decimal.h"
#include "penstock/sources/postgres/arrays.h"
#include "penstock/sources/postgres/big_endian.h"
#include "penstock/sources/postgres/numeric.h"
#include "penstock/sources/postgres/pg_timestamp.h"
#include "penstock/sources/timestamp.h"

namespace penstock::postgres {
namespace {

constexpr const char* kInteger = "an integer of 64 bits";
constexpr const char* kFloat64 = "a number in the range of float64";

double float_in(Kind kind, const Field& field) {
  return kind == Kind::float4 ? static_cast<double>(load_big<float>(field.data))
                              : load_big<double>(field.data);
}

std::optional<std::int64_t> whole(double number) {
  bool fits = number >= -0x1p63 && number < 0x1p63;
  if (!fits || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

PgTimestamp moment_in(Kind kind, const Field& field) {
  return kind == Kind::date
             ? PgTimestamp::of_days(load_big<std::int32_t>(field.data))
             : PgTimestamp::of_microseconds(load_big<std::int64_t>(field.data));
}

/// An interval in binary: microseconds, days and months (interval_send in
/// PostgreSQL). How long a month is, nobody knows.
std::optional<double> seconds_in(const Field& interval) {
  if (load_big<std::int32_t>(interval.data + 12) != 0) return std::nullopt;
  return static_cast<double>(load_big<std::int64_t>(interval.data)) / 1e6 +
         86400.0 * load_big<std::int32_t>(interval.data + 8);
}

std::string shown_interval(const Field& interval) {
  char buffer[32];
  if (std::optional<double> seconds = seconds_in(interval))
    return std::string(decimal(*seconds, buffer)) + " seconds";
  return "an interval with " +
         std::to_string(load_big<std::int32_t>(interval.data + 12)) + " months";
}

/// The text of a value of kind text, json or jsonb.
std::string_view text_of(Kind kind, const Field& field) {
  return kind == Kind::jsonb ? field.text().substr(1) : field.text();
}

}  // namespace

bool well_formed(Kind kind, const Field& field) {
  if (field.null()) return true;
  switch (kind) {
    case Kind::boolean:
      return field.size == 1;
    case Kind::int2:
    case Kind::int4:
    case Kind::int8:
    case Kind::float4:
    case Kind::float8:
      return field.size == width_of(kind);
    case Kind::date:
      return field.size == 4;
    case Kind::ctid:
      return field.size == 6;
    case Kind::timestamp:
    case Kind::timestamptz:
      return field.size == 8;
    case Kind::uuid:
    case Kind::interval:
      return field.size == 16;
    case Kind::numeric:
      return Numeric::from(field.text()).has_value();
    case Kind::jsonb:  // the one version that there is
      return field.size > 0 && field.data[0] == 1;
    default:
      return !element_of(kind) || well_formed_list(kind, field);
  }
}

std::int64_t integer_in(Kind kind, const Field& field) {
  switch (kind) {
    case Kind::int2:
      return load_big<std::int16_t>(field.data);
    case Kind::int4:
      return load_big<std::int32_t>(field.data);
    case Kind::ctid:
      return std::int64_t{load_big<std::uint32_t>(field.data)} << 16 |
             load_big<std::uint16_t>(field.data + 4);
    default:
      return load_big<std::int64_t>(field.data);
  }
}

std::string shown(Kind kind, const Field& field) {
  if (field.null()) return "NULL";
  char buffer[32];
  switch (kind) {
    case Kind::boolean:
      return field.data[0] != 0 ? "true" : "false";
    case Kind::int2:
    case Kind::int4:
    case Kind::int8:
      return std::to_string(integer_in(kind, field));
    case Kind::float4:
      return std::string(decimal(load_big<float>(field.data), buffer));
    case Kind::float8:
      return std::string(decimal(load_big<double>(field.data), buffer));
    case Kind::numeric:
      return beginning(Numeric::from(field.text())->text());
    case Kind::date:
    case Kind::timestamp:
    case Kind::timestamptz:
      return moment_in(kind, field).text(kind == Kind::timestamptz);
    case Kind::uuid:
      return "a uuid";
    case Kind::interval:
      return shown_interval(field);
    case Kind::bytea:
      return std::to_string(field.size) + " bytes";
    default:
      if (element_of(kind)) return shown_list(kind, field);
      return shown_text(text_of(kind, field));
  }
}

namespace {

/// The number that another type's value is converted to.
std::optional<double> converted(Kind kind, const Field& field,
                                const char*& expected) {
  if (kind == Kind::numeric) return Numeric::from(field.text())->float64();
  if (is_time(kind)) {
    expected = "a finite time";
    return moment_in(kind, field).seconds();
  }
  if (kind == Kind::interval) {
    expected = "an interval without months, which differ in length,";
    return seconds_in(field);
  }
  expected = "a number or an ISO-8601 time";
  return timestamp_from(text_of(kind, field));
}

}  // namespace

ColumnType number_type(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return ColumnType::boolean;
    case Kind::int2:
      return ColumnType::number(Dtype::int16);
    case Kind::int4:
      return ColumnType::number(Dtype::int32);
    case Kind::int8:
      return ColumnType::int64;
    case Kind::float4:
      return ColumnType::number(Dtype::float32);
    default:
      return ColumnType::float64;
  }
}

bool append_number(Kind kind, const Field& field, Column& to,
                   const char*& expected) {
  if (field.null()) return to.append_null(), true;
  expected = kFloat64;
  switch (kind) {
    case Kind::boolean:
      return to.append_boolean(field.data[0] != 0), true;
    case Kind::int2:
      return to.append_number(load_big<std::int16_t>(field.data)), true;
    case Kind::int4:
      return to.append_number(load_big<std::int32_t>(field.data)), true;
    case Kind::int8:
      return to.append_number(load_big<std::int64_t>(field.data)), true;
    case Kind::float4:
      return to.append_number(load_big<float>(field.data)), true;
    case Kind::float8:
      return to.append_number(load_big<double>(field.data)), true;
    default:
      break;
  }
  std::optional<double> number = converted(kind, field, expected);
  if (!number) return false;
  to.append_float64(*number);
  return true;
}

bool append_integer(Kind kind, const Field& field, Column& to,
                    const char*& expected) {
  if (field.null()) return to.append_null(), true;
  expected = kInteger;
  std::optional<std::int64_t> integer;
  switch (kind) {
    case Kind::boolean:
      integer = field.data[0] != 0 ? 1 : 0;
      break;
    case Kind::int2:
    case Kind::int4:
    case Kind::int8:
      integer = integer_in(kind, field);
      break;
    case Kind::float4:
    case Kind::float8:
      integer = whole(float_in(kind, field));
      break;
    case Kind::numeric:
      integer = Numeric::from(field.text())->int64();
      break;
    default:
      break;
  }
  if (!integer) return false;
  to.append_int64(*integer);
  return true;
}

void append_text(Kind kind, const Field& field, Column& to) {
  if (field.null()) return to.append_null();
  to.append_text(text_of(kind, field));
}

ColumnType value_type(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return ColumnType::boolean;
    case Kind::int2:
    case Kind::int4:
    case Kind::int8:
      return ColumnType::int64;
    case Kind::float4:
    case Kind::float8:
    case Kind::interval:
      return ColumnType::float64;
    case Kind::uuid:
      return ColumnType::uuid;
    case Kind::bytea:
      return ColumnType::binary;
    default:
      return element_of(kind) ? ColumnType::list : ColumnType::text;
  }
}

namespace {

/// As text that is the same from other sources.
void append_own_text(Kind kind, const Field& field, Column& to) {
  char buffer[32];
  if (is_time(kind))
    return to.append_text(
        moment_in(kind, field).text(kind == Kind::timestamptz));
  if (kind != Kind::numeric) return to.append_text(text_of(kind, field));
  Numeric number = *Numeric::from(field.text());
  if (std::optional<std::int64_t> integer = number.int64())
    return to.append_text(decimal(*integer, buffer));
  if (std::optional<double> real = number.float64();
      real && std::isfinite(*real))
    return to.append_text(decimal(*real, buffer));
  to.append_text(number.text());
}

}  // namespace

bool append_value(Kind kind, const Field& field, Column& to,
                  const char*& expected) {
  if (field.null()) return to.append_null(), true;
  if (kind == Kind::interval) return append_number(kind, field, to, expected);
  const ColumnType type = value_type(kind);
  switch (type.kind) {
    case ColumnKind::boolean:
      to.append_boolean(field.data[0] != 0);
      break;
    case ColumnKind::number:
      if (type == ColumnType::int64)
        to.append_int64(integer_in(kind, field));
      else
        to.append_float64(float_in(kind, field));
      break;
    case ColumnKind::uuid:
      to.append_uuid(reinterpret_cast<const std::byte*>(field.data));
      break;
    case ColumnKind::binary:
      to.append_text(field.text());
      break;
    case ColumnKind::list:
      expected = "a list of numbers";
      return append_list(kind, field, to);
    default:
      append_own_text(kind, field, to);
  }
  return true;
}

}  // namespace penstock::postgres
