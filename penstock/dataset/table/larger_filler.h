#pragma once

#include <vector>

#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/indexed/indexed_rows.h"
#include "penstock/dataset/row_finisher.h"

namespace penstock {

/// Fills from the rows that are kept in a larger form, and makes the others: in
/// that form, and keeps them, where that pays. One per thread.
class LargerFiller {
 public:
  LargerFiller(const IndexedDataset& dataset, FillMeters& meters,
               const FillerOptions& options);
  /// `rows` makes those that are not to be kept, and `by` finishes them.
  void fill(const FillItem& item, IndexedRows& rows, RowFinisher& by,
            Faults& faults);

 private:
  void find(const FillItem& item);
  void keep(const FillItem& item);
  void finish(const FillItem& item, const IndexedRows& made, RowFinisher& by,
              Faults& faults);

  LargerRows& rows_;
  FillMeters& meters_;
  IndexedRows made_;
  RowFinisher finisher_;
  // By range of the item at hand.
  std::vector<LargerRows::Parts> kept_;  // of those that were there
  std::vector<bool> is_kept_;
  std::vector<bool> larger_;              // those, and what `made_` has made
  std::vector<SampleId> ids_;             // to be made, then all good ones
  std::vector<const std::byte*> stored_;  // null: padding, rejected
  LargerRows::Parts parts_;               // of the row at hand
};

}  // namespace penstock
