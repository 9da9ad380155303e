#pragma once

#include <optional>
#include <vector>

#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/indexed/indexed_rows.h"
#include "penstock/dataset/row_finisher.h"
#include "penstock/dataset/table/larger_filler.h"

namespace penstock {

/// Reads samples by position, and parses, encodes and finishes them.
class IndexedFiller final : public SlotFiller {
 public:
  IndexedFiller(const IndexedDataset& dataset, FillMeters& meters,
                const FillerOptions& options);

  void fill(const FillItem& item, Stream& stream, Faults& faults) override;
  void queue(const FillItem& batch, std::byte* scratch,
             Stream& stream) override;

 private:
  void check_lengths(const FillItem& item) const;
  void finish(const FillItem& item, Faults& faults);

  const IndexedDataset& dataset_;
  FillMeters& meters_;
  const FillerOptions options_;
  bool told_ = false;  // the scan, to begin
  KeptFiller kept_;
  std::optional<LargerFiller> larger_;  // where rows are kept in another form
  std::optional<IndexedRows> rows_;     // until all of them are kept
  RowFinisher finisher_;
  std::vector<const std::byte*> stored_;  // by range; null: padding, rejected
};

}  // namespace penstock
