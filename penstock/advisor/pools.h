#pragma once

#include <span>
#include <string>
#include <vector>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// Threads and the stages that they do, one after the other.
struct Pool {
  std::string name;  ///< empty for a stage with threads of its own
  int workers = 0;   ///< 0: the consumer's own thread does it
  std::vector<StageNumbers> stages;

  /// Rows per second if it were never made to wait: workers / the sum of its
  /// stages' busy times per row. Infinite where nothing was measured.
  double rate() const;
  /// The stage that takes most of that sum, and its share of it.
  const StageNumbers& busiest() const;
  double share_of(const StageNumbers& stage) const;
};

std::vector<Pool> pools_of(const std::vector<StageNumbers>& stages);

/// Seconds that stages were on processors.
double processor_s(std::span<const StageNumbers> stages);

/// The rate of the slowest pool; infinite where nothing was measured.
double slowest_rate(const std::vector<StageNumbers>& stages);

}  // namespace penstock
