#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/base/block.h"
#include "penstock/sources/sources.h"

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

/// A binary value where it lies in a message; no data is SQL NULL.
struct Field {
  const char* data = nullptr;
  std::size_t size = 0;

  bool null() const { return data == nullptr; }
  std::string_view text() const { return {data, size}; }
};

/// Whether these bytes can be a value of that kind.
bool well_formed(Kind kind, const Field& field);

/// A value as in a message: "2.5", "text 'abc'", "infinity".
std::string shown(Kind kind, const Field& field);

/// These add a well-formed value to a column of their type (of numbers:
/// `number_type`); NULL stays null.
/// False, with nothing added, when the value is of another kind; `expected`
/// then says what it should have been.
bool append_number(Kind kind, const Field& field, Column& to,
                   const char*& expected);
bool append_integer(Kind kind, const Field& field, Column& to,
                    const char*& expected);
void append_text(Kind kind, const Field& field, Column& to);
/// As the source holds it: int64, float64 (an interval: its seconds), boolean,
/// uuid, binary, lists of numbers; all else as text that is the same from other
/// sources (numbers in their shortest decimal form, times in ISO-8601). False,
/// with nothing added, where it cannot be; `expected` then says what it should
/// have been.
bool append_value(Kind kind, const Field& field, Column& to,
                  const char*& expected);

/// What `append_value` makes of a kind.
ColumnType value_type(Kind kind);
/// What `append_number` makes of a kind: integers, floats and booleans in their
/// own width; all else, which is converted, as float64.
ColumnType number_type(Kind kind);

/// The integer in a field of kind int2, int4, int8 or ctid.
std::int64_t integer_in(Kind kind, const Field& field);

}  // namespace penstock::postgres
