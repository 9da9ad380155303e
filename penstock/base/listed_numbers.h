#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "penstock/base/block.h"

namespace penstock {

// How a block carries lists of numbers. Where a field requests such a column as
// ReadAs::value (and not to hash it), the block's column is
//
//   list   rows of any length: one child of kind `number`, of any width, with
//          the rows' numbers one after the other. Rows may be null. A number in
//          a list may be null where the list came from Arrow or JSON, never in
//          one of a database. A list of anything else has a child of another
//          kind.
//   fixed  rows of one shape, `Column::item`, of one dtype.
//   binary, or text of a database that does not say: the row's own bytes; what
//          numbers these are only the user knows.
//
// PostgreSQL: smallint[], integer[], bigint[], real[] and double precision[] of
// one dimension are lists of their own width, pgvector's vector is a list of
// float32, bytea is binary. SQLite: a column declared BLOB is binary. Arrow,
// JSON and tables in memory: lists and fixed-size lists as they are.

/// The numbers of one row.
struct ListedNumbers {
  Dtype dtype;
  std::span<const std::byte> bytes;
  std::int64_t count = 0;
};

/// Nullopt where the column holds no lists of numbers; else the numbers of a
/// row that is valid, as they lie in the column. Whether one of them is null,
/// the child says (`children[0].valid(column.offset(row) + i)`).
inline std::optional<ListedNumbers> listed_numbers(const Column& column,
                                                   std::int64_t row) {
  const bool list = column.type.kind == ColumnKind::list;
  if (list ? column.children[0].type.kind != ColumnKind::number
           : column.type.kind != ColumnKind::fixed)
    return std::nullopt;
  const Column& numbers = list ? column.children[0] : column;
  ListedNumbers found{.dtype = numbers.type.dtype, .bytes = {}};
  found.count = list ? column.offset(row + 1) - column.offset(row)
                     : elements_of(column.item);
  const std::int64_t first =
      list ? numbers.first + column.offset(row)
           : (column.first + row) * elements_of(column.item);
  const std::size_t width = size_of(found.dtype);
  found.bytes = numbers.values.span().subspan(
      width * static_cast<std::size_t>(first),
      width * static_cast<std::size_t>(found.count));
  return found;
}

}  // namespace penstock
