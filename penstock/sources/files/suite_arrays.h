#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/conformance/source_suite.h"

namespace penstock::files {

/// The columns of the suite of sources as the bytes of arrays, which have no
/// missing values and texts of one width.
struct SuiteArrays {
  explicit SuiteArrays(const std::vector<SuiteRow>& rows) {
    for (const SuiteRow& row : rows)
      width = std::max(width, row.doc.value_or("").size());
    for (const SuiteRow& row : rows) {
      const double number =
          row.number.value_or(std::numeric_limits<double>::quiet_NaN());
      const std::int64_t whole = row.whole.value_or(0);
      numbers.append(reinterpret_cast<const char*>(&number), 8);
      wholes.append(reinterpret_cast<const char*>(&whole), 8);
      std::string doc = row.doc.value_or("");
      doc.resize(width, '\0');
      docs += doc;
    }
  }

  std::string numbers, wholes, docs;
  std::size_t width = 1;  ///< of a text
};

/// The same columns by their paths in a file: "/number".
inline std::vector<ColumnRequest> by_path(std::vector<ColumnRequest> requests) {
  for (ColumnRequest& request : requests)
    if (!request.column.starts_with('/')) request.column = "/" + request.column;
  return requests;
}

}  // namespace penstock::files
