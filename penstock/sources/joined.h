#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/source.h"

namespace penstock {

/// Where a column of a joined source comes from.
struct JoinedColumn {
  bool right = false;       ///< from the right source, else from the left
  std::size_t request = 0;  ///< which of that source's own columns
};

/// Rows with columns of two sources: those of `left`, each with the row of
/// `right` of the same key; or, where neither has keys, of the same position
/// (then both have as many rows). Else an Error(request).
///
/// A row of `left` whose key is not in `right` is a row with a problem, which
/// `source.on_bad` decides about. Rows that are only in `right` are ignored.
/// Rows of `right` are read by their keys block by block: changes that are made
/// to it during a scan are seen.
///
/// `columns`: the order of the columns; empty: all of left, then all of right.
std::unique_ptr<Source> joined(std::unique_ptr<Source> left,
                               std::unique_ptr<Source> right,
                               std::vector<JoinedColumn> columns = {});

}  // namespace penstock
