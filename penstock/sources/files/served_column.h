#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/columns.h"
#include "penstock/sources/files/row_file.h"

namespace penstock::files {

/// How a column of a file answers a request.
struct ServedColumn {
  ColumnType type;  ///< that the block has
  enum class By : unsigned char {
    itself,    ///< as the file's reader gives it
    number,    ///< a number of another width, which must be the same number
    time,      ///< text, as an ISO-8601 time
    parsed,    ///< text, as a number
    json,      ///< a list of numbers, as JSON
    text,      ///< a number, as text
    stand_in,  ///< something to be hashed in its place
    nulls,     ///< there is no value in any row
  } by = By::itself;
};

/// What `chosen`, one of column_type_names(), makes of a column of a file.
/// Error(request) where it cannot be that.
ServedColumn chosen_type(const FileColumn& column, const std::string& chosen);

/// What a request makes of it. Error(request), source.column_type.
ServedColumn served(const FileColumn& column, const ColumnRequest& request);

/// Turns a column into the one that was served; values that cannot be are null
/// and become problems of column `at`.
Column converted(Column&& from, const ServedColumn& to, std::size_t at,
                 std::vector<RowProblem>& problems);

}  // namespace penstock::files
