#pragma once

#include "penstock/sources/postgres/table.h"

namespace penstock::postgres {

/// `spec.query` as a table, once the server has parsed it: one statement that
/// can stand in parentheses after FROM, so it writes nothing by itself, and has
/// no parameters. Error(request): source.query_writes, source.query.
Table find_query(Connection& connection, const SourceSpec& spec);

/// What the rows of a job are: those of a table, or of its query.
Table find_rows(Connection& connection, const SourceSpec& spec);

/// The same with a column that numbers its rows, where its ORDER BY fixes them.
/// Error(request), source.query_order.
void number_rows(const SourceSpec& spec, const std::string& place,
                 Table& query);

/// What is wrong with a query, where `result` says that a statement around it
/// failed for a reason that lies in it; else another error.
Error query_failure(const Connection& connection, const SourceSpec& spec,
                    const Result& result);

}  // namespace penstock::postgres
