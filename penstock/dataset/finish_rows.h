#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "penstock/dataset/row_finisher.h"

namespace penstock {

/// The stored rows of an item, and their runs: what a finisher makes rows of.
struct RowsToFinish {
  RowFinisher& by;
  const RowFinisher::RunOf run_of;
};

/// Finishes the rows of an item of which some are there in another form than
/// the others: which ones, `other` says, true for those of `others`. `stored`
/// are as RowFinisher::finish() has them. Padding goes with its neighbours.
void finish_both(const FillItem& item, const std::vector<bool>& other,
                 std::span<const std::byte* const> stored,
                 const RowsToFinish& rows, const RowsToFinish& others,
                 Faults& faults);

}  // namespace penstock
