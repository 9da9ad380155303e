#include "penstock/sources/sqlite/value.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "penstock/sources/sqlite/connection.h"
#include "penstock/sources/timestamp.h"

namespace penstock::sqlite {
namespace {

constexpr std::size_t kShownBytes = 40;
constexpr const char* kBoolean = "a boolean (0 or 1)";

bool null(const Value& value, ColumnData& to) {
  if (value.type != SQLITE_NULL) return false;
  to.append_null();
  return true;
}

/// The beginning of a text, not cut within a character.
std::string beginning(std::string_view text) {
  if (text.size() <= kShownBytes) return std::string(text);
  std::size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return std::string(text.substr(0, end)) + "...";
}

template <class T>
std::string_view decimal(T number, char (&buffer)[32]) {
  char* end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  return {buffer, static_cast<std::size_t>(end - buffer)};
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
      return "text '" + beginning(text()) + "'";
    case SQLITE_BLOB:
      return "a BLOB of " + std::to_string(sqlite3_column_bytes(row, at)) +
             " bytes";
    default:
      return "NULL";
  }
}

bool append_number(const Value& value, bool boolean, ColumnData& to,
                   const char*& expected) {
  if (null(value, to)) return true;
  expected = boolean ? kBoolean : "a number or an ISO-8601 time";
  std::optional<double> number;
  if (value.type == SQLITE_INTEGER || value.type == SQLITE_FLOAT)
    number = sqlite3_column_double(value.row, value.at);
  else if (value.type == SQLITE_TEXT && !boolean)
    number = timestamp_from(value.text());
  if (!number || (boolean && *number != 0 && *number != 1)) return false;
  if (!std::isfinite(*number)) {
    expected = "a finite number";
    return false;
  }
  to.append_float64(*number);
  return true;
}

bool append_integer(const Value& value, bool boolean, ColumnData& to,
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

bool append_json(const Value& value, ColumnData& to, const char*& expected) {
  if (null(value, to)) return true;
  expected = "JSON as text";
  if (value.type != SQLITE_TEXT && value.type != SQLITE_BLOB) return false;
  to.append_text(value.text());
  return true;
}

void append_as_text(const Value& value, ColumnData& to) {
  char buffer[32];
  switch (value.type) {
    case SQLITE_NULL:
      return to.append_null();
    case SQLITE_INTEGER:
      return to.append_text(
          decimal(sqlite3_column_int64(value.row, value.at), buffer));
    case SQLITE_FLOAT:
      return to.append_text(
          decimal(sqlite3_column_double(value.row, value.at), buffer));
    default:
      return to.append_text(value.text());
  }
}

}  // namespace penstock::sqlite
