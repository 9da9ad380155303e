#pragma once

#include <string>
#include <vector>

#include "penstock/sources/postgres/cast.h"
#include "penstock/sources/postgres/connection.h"
#include "penstock/sources/postgres/types.h"

namespace penstock::postgres {

/// A table, a view, or another relation that rows can be selected from; or a
/// query (query.h), which has no name.
struct Table {
  std::string shown;       ///< in messages: "table 'lab.t'", "the query"
  std::string name;        ///< as people write it: "lab.measurements"
  std::string identifier;  ///< as SQL does: "\"lab\".\"measurements\""
  std::string oid;
  char relkind = 'r';      ///< of pg_class: r, m, v, p or f; q: it is a query
  std::string row_number;  ///< the column that numbers the rows of a query
  Schema schema;
  std::vector<Kind> kinds;     ///< by column; a domain has its base type's
  std::vector<SqlType> types;  ///< by column
  bool inherited = false;      ///< other tables' rows are shown as its own

  void add_column(std::string column, std::string declared, std::uint32_t oid,
                  SqlType type);
  /// Rows lie in numbered pages of one file.
  bool has_pages() const { return relkind == 'r' || relkind == 'm'; }
  /// A row's place, its ctid, is that of no other row.
  bool has_places() const { return has_pages() && !inherited; }
  /// LOCK TABLE takes nothing else.
  bool can_be_locked() const {
    return relkind == 'r' || relkind == 'p' || relkind == 'v';
  }
};

/// A table's name as a user wrote it, perhaps with a schema in front: lab.t, or
/// "lab"."t" as SQL quotes it. The schema ends at the first dot that is not
/// quoted.
struct TableName {
  std::string schema;  ///< empty: what the search path says
  std::string name;

  explicit TableName(const std::string& written);
  std::string identifier() const;
};

/// Throws Error(request): a column has a type that cannot be read as `want`
/// says, with the view and the cast to write.
[[noreturn]] void refuse_type(const ColumnInfo& column, const Table& table,
                              const std::string& place,
                              const ColumnRequest& want);

/// The table that `spec.table` names: exactly as written, with the schema
/// up to the first dot, else up to another, else all that as SQL would read it
/// (in small letters). An empty name stands for the only table
/// in the search path. Error(request) with the nearest name if none exists.
Table find_table(Connection& connection, const SourceSpec& spec);

}  // namespace penstock::postgres
