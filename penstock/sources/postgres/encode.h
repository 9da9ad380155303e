#pragma once

#include <string>

#include "penstock/sources/postgres/types.h"

namespace penstock::postgres {

/// The pieces of a COPY ... FROM STDIN (FORMAT binary): a header, rows that
/// begin with the number of their fields, a trailer.
void append_copy_header(std::string& to);
void append_row_head(std::string& to, std::size_t fields);
void append_copy_trailer(std::string& to);

/// Whether a block's column of this type can be written as that kind.
bool can_encode(ColumnType type, Kind kind);

/// Adds a value with its length as a field. Times are written from ISO-8601
/// text or from seconds since 1970 UTC. False when it does not fit: a text
/// that is no time, a number that is too large.
bool encode(const Column& column, std::int64_t row, Kind kind, std::string& to);

}  // namespace penstock::postgres
