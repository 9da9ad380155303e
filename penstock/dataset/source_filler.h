#pragma once

#include <vector>

#include "penstock/dataset/row_finisher.h"
#include "penstock/dataset/table_dataset.h"

namespace penstock {

/// Fills rows of a data set that keeps none: reads them again by their keys.
class SourceFiller final : public SlotFiller {
 public:
  SourceFiller(const TableDataset& dataset, FillMeters& meters,
               const FillerOptions& options);

  void fill(const FillItem& item, Stream& stream, Faults& faults) override;
  void queue(const FillItem& batch, std::byte* scratch,
             Stream& stream) override;

 private:
  /// Reads and encodes the rows of `present_` into `rows_` and `runs_`.
  void read(ItemRead* ahead);

  const TableDataset& dataset_;
  FillMeters& meters_;
  const bool per_sample_;
  TableDataset::RowReader reader_;
  ParsedBlock parsed_;
  RowEncoder encoder_;
  RowFinisher finisher_;
  std::vector<std::byte> rows_;
  std::vector<Values> runs_;              // by field
  std::vector<std::size_t> order_;        // in which ranges are read
  std::vector<SampleId> present_;         // in that order
  std::vector<const std::byte*> stored_;  // by range; null: padding
  std::vector<std::int64_t> number_;      // of each range's row in rows_
};

}  // namespace penstock
