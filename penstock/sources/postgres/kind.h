#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::postgres {

/// The types whose binary form we read. `other` is everything else.
enum class Kind : std::uint8_t {
  boolean,
  int2,
  int4,
  int8,
  float4,
  float8,
  numeric,
  text,         ///< and varchar
  padded_text,  ///< char(n): asked for as text, which drops its blanks
  json,
  jsonb,
  date,
  timestamp,
  timestamptz,
  uuid,
  interval,  ///< seconds, where it has no months
  bytea,
  int2_array,  ///< arrays.h has these and vectors
  int4_array,
  int8_array,
  float4_array,
  float8_array,
  vector,       ///< of the extension pgvector; known by its name
  ctid,         ///< a row's place: page and line, as one number
  enumeration,  ///< of a type of the database's own; requested as text
  other,
};

/// The kind of a pg_type.oid, which are the same on every server.
Kind kind_of(std::uint32_t oid);

/// What PostgreSQL calls it: "double precision".
const char* sql_name(Kind kind);

/// Bytes of each value of an integer or float; 0 of other kinds.
std::size_t width_of(Kind kind);

/// int2, int4 and int8: not numeric, which has a fraction too.
constexpr bool is_integer(Kind kind) {
  return kind == Kind::int2 || kind == Kind::int4 || kind == Kind::int8;
}

/// A point in time: date and both timestamps, not interval.
constexpr bool is_time(Kind kind) {
  return kind == Kind::date || kind == Kind::timestamp ||
         kind == Kind::timestamptz;
}

/// The length of SQL NULL, in COPY's binary rows and within arrays.
constexpr std::int32_t kNullLength = -1;

/// A binary value where it lies in a message; no data is SQL NULL.
struct Field {
  const char* data = nullptr;
  std::size_t size = 0;

  bool null() const { return data == nullptr; }
  std::string_view text() const { return {data, size}; }
};

}  // namespace penstock::postgres
