#pragma once

#include <vector>

#include "penstock/dataset/table_dataset.h"

namespace penstock {

/// Fills rows of a data set that keeps none: reads them anew by their keys.
class SourceFiller final : public RowFiller {
 public:
  SourceFiller(const TableDataset& dataset, FillMeters& meters,
               bool per_sample);

  void fill(const RowTarget& target, Stream& stream) override;

 private:
  /// A packed row, or zeros, as row `row` of the target.
  void write(const RowTarget& target, std::size_t row, const std::byte* packed);

  const TableDataset& dataset_;
  FillMeters& meters_;
  const bool per_sample_;
  TableDataset::RowReader reader_;
  ParsedBlock parsed_;
  RowEncoder encoder_;
  std::vector<std::byte> rows_;
  std::vector<SampleId> present_;
};

}  // namespace penstock
