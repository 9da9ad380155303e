#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

#include "penstock/base/block.h"

namespace penstock::sqlite {

/// The value in column `at` of the current row of a result.
struct Value {
  sqlite3_stmt* row;
  int at;
  bool utf8;  ///< the database's encoding: TEXT can be handed out as it lies
  int type = sqlite3_column_type(row, at);

  std::string_view text() const;
  /// As in a message: "text 'abc'", "2.5", "NULL", "a BLOB of 3 bytes", "text
  /// x'ff61', which is not UTF-8".
  std::string shown() const;
};

/// Whether a text may be a number, as a time.
enum class Times {
  taken,       ///< ISO-8601 becomes seconds since 1970 UTC
  rounded,     ///< not here: float32 would round them
  unexpected,  ///< not here: the column declares numbers
};

/// These add a value to a column of their type; NULL stays null. False, with
/// nothing added, when the value is of another kind; `expected` then says
/// what it should have been.
bool append_number(const Value& value, bool boolean, Times times, Column& to,
                   const char*& expected);
bool append_integer(const Value& value, bool boolean, Column& to,
                    const char*& expected);
bool append_json(const Value& value, Column& to, const char*& expected);
bool append_bytes(const Value& value, Column& to, const char*& expected);
/// Any value as text: numbers in their shortest decimal form, whole ones
/// without a point or exponent.
void append_as_text(const Value& value, Column& to);
/// A number that stands for a value whose type the column lacks: a hash of
/// its text.
void append_stand_in(const Value& value, Column& to);

}  // namespace penstock::sqlite
