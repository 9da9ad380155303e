#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/base/block.h"
#include "penstock/sources/postgres/kind.h"
#include "penstock/sources/sources.h"

namespace penstock::postgres {

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
