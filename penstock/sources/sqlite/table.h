#pragma once

#include <string>
#include <string_view>

#include "penstock/sources/sqlite/connection.h"

namespace penstock::sqlite {

/// How SQLite treats values of a column, by its declared type
/// (https://sqlite.org/datatype3.html, section 3.1).
enum class Affinity { integer, text, blob, real, numeric };

Affinity affinity_of(std::string_view declared);

/// A table or view and its columns.
struct Table {
  std::string name;
  bool view = false;
  std::string rowid;  ///< the name that gives a row's number; empty: none
  Schema schema;
};

/// The table `name`; an empty name stands for the only one. Error(request)
/// with the nearest table when there is none of that name.
Table find_table(Connection& connection, const SourceSpec& spec);

}  // namespace penstock::sqlite
