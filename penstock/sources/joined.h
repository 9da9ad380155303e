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

/// Rows with columns of two sources: those of `left`, each with what `right`
/// has for the same key; or, where neither has keys, for the same position
/// (then both have as many rows). Else an Error(request).
///
/// A row of `left` whose key `right` does not have is a row with a problem,
/// which `source.on_bad` decides about. Rows of `right` alone are not looked
/// for. Rows of `right` are read by their keys block by block: changes that are
/// made to it during a scan are seen.
///
/// `columns`: the order of the columns; empty: all of left, then all of right.
std::unique_ptr<Source> joined(std::unique_ptr<Source> left,
                               std::unique_ptr<Source> right,
                               std::vector<JoinedColumn> columns = {});

}  // namespace penstock
