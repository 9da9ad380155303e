#pragma once

#include <optional>
#include <string>

#include "penstock/base/block.h"
#include "penstock/sources/postgres/kind.h"

namespace penstock::postgres {

/// The kind of the numbers in an array or a vector of pgvector's; nullopt of
/// what is neither.
std::optional<Kind> element_of(Kind kind);

/// Whether these bytes, which are not NULL, are an array or vector of that
/// kind, of any dimensions.
bool well_formed_list(Kind kind, const Field& field);

/// Adds a well-formed array or vector to a column of lists, whose child is of
/// `number_type(*element_of(kind))`. Of several dimensions, all elements in C
/// order. False, with nothing added, for one with NULLs in it.
bool append_list(Kind kind, const Field& field, Column& to);

/// Such an array as in a message: "an array whose element 2 is NULL".
std::string shown_list(Kind kind, const Field& field);

}  // namespace penstock::postgres
