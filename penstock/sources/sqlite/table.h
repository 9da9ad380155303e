#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/sqlite/connection.h"

namespace penstock::sqlite {

/// How SQLite treats values of a column, by its declared type
/// (https://sqlite.org/datatype3.html, section 3.1).
enum class Affinity { integer, text, blob, real, numeric };

Affinity affinity_of(std::string_view declared);

/// A table or view and its columns; or a query (query.h), which has no name.
struct Table {
  std::string shown;  ///< in messages: "table 'measurements'", "the query"
  std::string name;
  std::string from;  ///< as SQL names it after FROM
  bool view = false;
  std::string rowid;  ///< the name that gives a row's number; empty: none
  /// The column that numbers the rows of a query; empty: none does.
  std::string row_number;
  /// The columns that name a row, in the order in which they do: those that
  /// `key` names or the primary key's, else the row's number. Error(request)
  /// if none exist.
  std::vector<ColumnInfo> key_columns(const std::vector<std::string>& key,
                                      const std::string& place) const;

  Schema schema;
};

/// A column, by its name and the word that declares it.
ColumnInfo column_info(std::string name, std::string declared);

/// The table `name`; an empty name stands for the only one. Error(request)
/// with the nearest table if none exists of that name.
Table find_table(Connection& connection, const SourceSpec& spec);

}  // namespace penstock::sqlite
