#include "penstock/sources/sqlite/value.h"

#include <cmath>
#include <optional>

#include "penstock/base/hash.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/decimal.h"
#include "penstock/sources/sqlite/connection.h"
#include "penstock/sources/timestamp.h"

namespace penstock::sqlite {
namespace {

constexpr const char* kBoolean = "a boolean (0 or 1)";

/// What a column expects that holds a time although it cannot be one there.
const char* instead_of_time(Times times) {
  return times == Times::rounded
             ? "a number (a time needs \"dtype\": \"float64\" or "
               "\"standardize\": true)"
             : "a number (times belong in a column declared TEXT, DATE or "
               "TIME)";
}

bool null(const Value& value, Column& to) {
  if (value.type != SQLITE_NULL) return false;
  to.append_null();
  return true;
}

/// Whole numbers look alike, whether they are INTEGER or REAL.
std::string_view decimal_of(const Value& value, char (&buffer)[32]) {
  if (value.type == SQLITE_INTEGER)
    return decimal(sqlite3_column_int64(value.row, value.at), buffer);
  double number = sqlite3_column_double(value.row, value.at);
  if (std::abs(number) < 0x1p63 && number == std::trunc(number))
    return decimal(static_cast<std::int64_t>(number), buffer);
  return decimal(number, buffer);
}

/// Any value but NULL as text.
std::string_view own_text(const Value& value, char (&buffer)[32]) {
  return value.type == SQLITE_INTEGER || value.type == SQLITE_FLOAT
             ? decimal_of(value, buffer)
             : value.text();
}

}  // namespace

std::string_view Value::text() const {
  return text_at(row, at, utf8 || type == SQLITE_BLOB);
}

std::string Value::shown() const {
  char buffer[32];
  switch (type) {
    case SQLITE_INTEGER:
      return std::string(decimal(sqlite3_column_int64(row, at), buffer));
    case SQLITE_FLOAT:
      return std::string(decimal(sqlite3_column_double(row, at), buffer));
    case SQLITE_TEXT:
      return shown_text(text());
    case SQLITE_BLOB:
      return "a BLOB of " + std::to_string(sqlite3_column_bytes(row, at)) +
             " bytes";
    default:
      return "NULL";
  }
}

bool append_number(const Value& value, bool boolean, Times times, Column& to,
                   const char*& expected) {
  if (null(value, to)) return true;
  expected = boolean                 ? kBoolean
             : times == Times::taken ? "a number or an ISO-8601 time"
                                     : "a number";
  std::optional<double> number;
  if (value.type == SQLITE_INTEGER || value.type == SQLITE_FLOAT)
    number = sqlite3_column_double(value.row, value.at);
  else if (value.type == SQLITE_TEXT && !boolean)
    number = timestamp_from(value.text());
  if (number && value.type == SQLITE_TEXT && times != Times::taken) {
    expected = instead_of_time(times);
    return false;
  }
  if (!number || (boolean && *number != 0 && *number != 1)) return false;
  to.append_float64(*number);
  return true;
}

// A column's type does not bind its values in SQLite: an INTEGER column may
// hold a REAL or a text. A REAL that is a whole number is taken; bounds are
// compared before the conversion, which would be undefined beyond them.
bool append_integer(const Value& value, bool boolean, Column& to,
                    const char*& expected) {
  if (null(value, to)) return true;
  expected = boolean ? kBoolean : "an integer of 64 bits";
  std::int64_t integer = 0;
  if (value.type == SQLITE_INTEGER) {
    integer = sqlite3_column_int64(value.row, value.at);
  } else if (value.type == SQLITE_FLOAT) {
    double number = sqlite3_column_double(value.row, value.at);
    bool fits = number >= -0x1p63 && number < 0x1p63;
    if (!fits || number != std::floor(number)) return false;
    integer = static_cast<std::int64_t>(number);
  } else {
    return false;
  }
  if (boolean && integer != 0 && integer != 1) return false;
  to.append_int64(integer);
  return true;
}

bool append_json(const Value& value, Column& to, const char*& expected) {
  if (null(value, to)) return true;
  expected = "JSON as text";
  if (value.type != SQLITE_TEXT && value.type != SQLITE_BLOB) return false;
  to.append_text(value.text());
  return true;
}

bool append_bytes(const Value& value, Column& to, const char*& expected) {
  if (null(value, to)) return true;
  expected = "a BLOB or a text";
  if (value.type != SQLITE_TEXT && value.type != SQLITE_BLOB) return false;
  to.append_text(value.text());
  return true;
}

void append_as_text(const Value& value, Column& to) {
  char buffer[32];
  if (!null(value, to)) to.append_text(own_text(value, buffer));
}

void append_stand_in(const Value& value, Column& to) {
  char buffer[32];
  if (null(value, to)) return;
  std::uint64_t hash = hash64(own_text(value, buffer));
  if (to.type == ColumnType::int64)
    to.append_int64(static_cast<std::int64_t>(hash));
  else  // float64 holds 53 bits
    to.append_float64(static_cast<double>(hash >> 11));
}

}  // namespace penstock::sqlite
