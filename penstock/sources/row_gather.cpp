#include "penstock/sources/row_gather.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/sources/blocks.h"

namespace penstock {

RowGather::RowGather(std::vector<ColumnType> types, std::int64_t rows)
    : types_(std::move(types)), places_(static_cast<std::size_t>(rows)) {}

void RowGather::add(Block found, std::vector<std::int64_t> rows) {
  for (std::size_t row = 0; row < rows.size(); ++row)
    places_[static_cast<std::size_t>(rows[row])] = {
        parts_.size(), static_cast<std::int64_t>(row)};
  parts_.push_back({std::move(found), std::move(rows)});
}

// Invariant: places_[row] names the last part that was added for a row, and
// only the problems of that part count; those of earlier parts were of nulls
// that stood in for the row.
void RowGather::finish(Block& out) {
  // All rows are of one block, in its order: nothing to do.
  if (parts_.size() == 1 && std::ranges::is_sorted(parts_[0].rows)) {
    out = std::move(parts_[0].block);
    return;
  }
  out = block_in(std::move(out), types_);
  for (const Place& place : places_) {
    PENSTOCK_ASSERT(place.row >= 0, "every row was found somewhere");
    const Block& from = parts_[place.part].block;
    for (std::size_t c = 0; c < types_.size(); ++c)
      out.columns[c].append_from(from.columns[c], place.row);
    ++out.rows;
  }
  for (std::size_t p = 0; p < parts_.size(); ++p)
    for (RowProblem& problem : parts_[p].block.problems) {
      std::int64_t row = parts_[p].rows[static_cast<std::size_t>(problem.row)];
      if (places_[static_cast<std::size_t>(row)].part != p) continue;
      out.problems.push_back({row, problem.column, std::move(problem.why)});
    }
  std::ranges::stable_sort(out.problems, {}, &RowProblem::row);
}

}  // namespace penstock
