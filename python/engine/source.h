#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "python/engine/rows.h"

namespace penstock::python {

namespace nb = nanobind;

/// A column of a source that Python reads, before a row is read.
struct OwnColumn {
  std::string name;
  ColumnType type;
  Dtype element = Dtype::float64;  ///< of a list
  Shape item = {};                 ///< of a fixed tensor
  /// Of each row; missing: not known without reading it.
  std::optional<std::vector<std::int32_t>> lengths = std::nullopt;
};

/// A source that Python reads by position.
struct OwnSource {
  std::string shown;  ///< for messages
  Json identity;
  std::int64_t rows = 0;
  std::vector<OwnColumn> columns;
  std::vector<std::int64_t> chunk_ends;  ///< empty: rows are read one by one
  bool global_lock = false;
};

/// Rows that the job's fields make of such a source. `read` is called on the
/// engine's threads with the positions, an array [n] of int64, and with what is
/// requested, a list of (name, dtype that numbers are converted to or ""). It
/// returns a list of (validity, offsets, values), an array or None each, laid
/// out as Arrow has them, and a list of problems (row, request, why).
OwnRows rows_of_source(OwnSource source, nb::object read);

void bind_source(nb::module_& module);

}  // namespace penstock::python
