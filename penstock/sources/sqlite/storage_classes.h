#pragma once

#include "penstock/sources/sqlite/table.h"

namespace penstock::sqlite {

/// Looks at the first rows of `table` for what columns hold whose declaration
/// does not say it: those without one, as expressions of a query are, and those
/// of numbers that may be texts, as DECIMAL is
/// (https://sqlite.org/datatype3.html, sections 2 and 3). Where all their
/// values are numbers, the schema then reports it; a column that declares
/// nothing is called as `typeof` does, also where all are texts.
void look_at_storage_classes(Connection& connection, const SourceSpec& spec,
                             Table& table);

}  // namespace penstock::sqlite
