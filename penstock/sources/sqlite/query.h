#pragma once

#include "penstock/sources/sqlite/table.h"

namespace penstock::sqlite {

/// `spec.query` as a table, once SQLite has parsed it: one statement that
/// returns rows, writes nothing and has no parameters. Error(request):
/// source.query_writes, source.query.
Table find_query(Connection& connection, const SourceSpec& spec);

/// What the rows of a job are: those of a table, or of its query.
Table find_rows(Connection& connection, const SourceSpec& spec);

/// The same with a column that numbers its rows, where its ORDER BY fixes them.
/// Error(request), source.query_order.
void number_rows(Connection& connection, const SourceSpec& spec, Table& query);

}  // namespace penstock::sqlite
