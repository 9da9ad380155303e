#pragma once

#include <memory>
#include <optional>

#include "penstock/dataset/table/placed_rows.h"

namespace penstock {

/// The rows of a table as an earlier run has left them in their store.
struct StoredTable {
  FoundRows found;
  PlacedRows placed;  ///< in the store
};

/// Missing: there is no store in `file` that can be used, and the log says why.
/// One that is damaged is repaired from the source.
std::optional<StoredTable> open_stored(
    const std::shared_ptr<const TableOrigin>& origin, const TableStore& file);

/// Says that a store cannot be used after `error`, which is being handled.
/// Throws it where it is not of a source.
void scan_instead(const Error& error);

MeasuredRows measured(const TableOrigin& origin, const StoredTable& stored);

}  // namespace penstock
