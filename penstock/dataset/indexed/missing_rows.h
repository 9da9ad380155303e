#pragma once

#include <vector>

#include "penstock/dataset/table/table_dataset.h"

namespace penstock {

/// Reads rows that a data set does not keep from its source, and stores them as
/// a table would. One per thread.
class MissingRows {
 public:
  MissingRows(const TableDataset& dataset, FillMeters& meters, bool per_sample);

  /// Reads those of `ids` that are not kept. `ahead`: as FillItem::read.
  void read(std::span<const SampleId> ids, ItemRead* ahead);
  /// The number of what was read for range i; -1 where it is kept, or padding.
  std::int64_t number(std::size_t i) const { return number_[i]; }
  /// Those of what was read that are damaged, by range.
  std::span<const RowFault> damaged() const { return damaged_.rows; }
  /// The first row; the others follow.
  const std::byte* rows() const { return rows_.data(); }
  std::span<const std::byte> run(std::size_t field, std::size_t i) const {
    return runs_[field].row(number_[i]);
  }

 private:
  const TableDataset& dataset_;
  FillMeters& meters_;
  const bool per_sample_;
  const SampleId first_;  // that is not kept
  TableDataset::RowReader reader_;
  ParsedBlock parsed_;
  RowEncoder encoder_;
  std::vector<std::byte> rows_;
  std::vector<Values> runs_;          // by field
  Faults found_, damaged_;            // of a call, of all
  std::vector<std::size_t> order_;    // in which ranges are read
  std::vector<SampleId> present_;     // in that order
  std::vector<std::int64_t> number_;  // of each range's row in rows_
};

}  // namespace penstock
