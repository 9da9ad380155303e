#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What a step with so many rows took.
struct TriedBatch {
  std::int64_t rows = 0;
  bool fits = false;            ///< false: memory was short
  std::int64_t peak_bytes = 0;  ///< of all that counts against the limit
  double rows_per_s = 0;
};

/// What is looked for.
struct BatchSearch {
  std::int64_t most = 1;  ///< rows: no more are tried
  std::int64_t limit_bytes = 0;
  std::int64_t fixed_bytes = 0;  ///< taken whatever the rows
};

struct FoundBatch {
  std::int64_t rows = 0;  ///< one of those that were tried; 0: none fits
  enum class By : std::uint8_t {
    memory,  ///< more rows would not leave the headroom
    rate,    ///< more rows would hardly give more rows per second
    most,    ///< more rows are not wanted
  };
  By by = By::most;
  std::vector<TriedBatch> tried;
};
const char* name_of(FoundBatch::By by);
Json json_of(const FoundBatch& found);

/// The largest batch that leaves 8 % of the memory that rows may take, or the
/// smaller one from which on twice the rows give less than 3 % more rows per
/// second. Sizes double, but do not go beyond what the line through the last
/// two peaks allows, so that memory rarely runs short. `attempt` runs a step of
/// so many rows; a pure function of what it gives.
FoundBatch search_batch(
    const BatchSearch& wanted,
    const std::function<TriedBatch(std::int64_t rows)>& attempt);

}  // namespace penstock
