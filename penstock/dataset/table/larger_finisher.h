#pragma once

#include <memory>
#include <vector>

#include "penstock/dataset/row_finisher.h"
#include "penstock/dataset/table/larger_rows.h"

namespace penstock {

/// Finishes rows of a table from the larger form of their runs, where that is
/// kept, and makes and keeps it where that pays. One per thread.
class LargerFinisher {
 public:
  LargerFinisher(LargerRows& rows, const DatasetFacts& facts,
                 const FillerOptions& options);
  /// As RowFinisher::finish() with `run_of`; `by` finishes the other rows.
  void finish(const FillItem& item, std::span<const std::byte* const> stored,
              const RowFinisher::RunOf& run_of, RowFinisher& by,
              Faults& faults);

 private:
  void make(SampleId id, std::size_t i, const RowFinisher::RunOf& run_of);

  LargerRows& rows_;
  RowFinisher finisher_;
  std::vector<bool> is_larger_;                          // by field
  std::vector<std::unique_ptr<FieldEncoder>> encoders_;  // of these, else null
  std::vector<Values> made_;                             // by field
  Faults rejected_;
  LargerRows::Parts parts_;  // of the row at hand
  // By range of the item at hand.
  std::vector<bool> is_kept_;
  std::vector<LargerRows::Parts> kept_;
};

}  // namespace penstock
