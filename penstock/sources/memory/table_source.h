#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/memory/arrow_data.h"
#include "penstock/sources/source.h"
#include "penstock/sources/stop.h"

namespace penstock {

/// What a table in memory is called, and what tells it from another one.
struct TableName {
  std::string shown;   ///< in messages: "DataFrame"
  std::string digest;  ///< of its contents, as much of them as was read
  std::string where;   ///< a condition, as of files; may be empty
  /// Which rows of it are meant, in this order, any of them more than once;
  /// null: all. No condition is beside it.
  std::shared_ptr<const std::vector<std::int64_t>> picked = nullptr;
};

/// The rows of a table in memory, by position, like those of a file: its record
/// batches are the chunks, whose bytes are borrowed where their layout is ours.
/// Throws Error(request) for columns that are not there or hold something else.
std::unique_ptr<Source> open_arrow_table(
    std::shared_ptr<const ArrowTable> table, const TableName& name,
    const std::vector<ColumnRequest>& requests, StopFlag stop = nullptr);

}  // namespace penstock
