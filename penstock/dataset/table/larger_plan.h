#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "penstock/cache/cache.h"
#include "penstock/dataset/table/larger_rows.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// What rows would take in the larger form of their fields.
struct LargerRequest {
  std::string shown;           ///< "field 'x' as ... has it"
  std::int64_t rows = 0;       ///< in all
  std::size_t bytes = 0;       ///< of all of them in that form
  std::size_t others = 0;      ///< bytes that something else takes
  std::size_t read_again = 0;  ///< bytes of all rows as they are read; 0: not
  int sharing = 1;             ///< ranks, as ranks_sharing() has them
};

/// What is kept of them, and what a plan says of that.
struct LargerPlan {
  std::optional<LargerRows::Keeping> keeping = {};  ///< missing: nothing
  std::size_t bytes = 0;                            ///< that are kept, at most
  std::string note = {};                            ///< empty: none
};

/// Keeps as many as fit, where they come again often enough: all of them, or,
/// where the system still has room for what is read of the others, a part that
/// is worth it. `limits` are those of rank_limits().
LargerPlan plan_larger(const LargerRequest& request, const RowsUse& use,
                       const TierLimits& limits);

}  // namespace penstock
