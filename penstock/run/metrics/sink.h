#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

/// Numbers by their names, in the order in which they are shown; NaN: not
/// known.
using Metrics = std::vector<std::pair<std::string, double>>;

/// Seconds since 1970, by the system's clock.
double wall_clock_s();

/// Where a run's numbers go for other programs to show. One thread. Throws
/// Error(request) where they cannot be written.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// About once a second, after so many steps of the whole job. The names are
  /// the same each time. `time`: seconds since 1970.
  virtual void add(std::int64_t step, double time, const Metrics& metrics) = 0;
  /// What an epoch came to. Later ones may have more names.
  virtual void add_epoch(std::int64_t step, double time,
                         const Metrics& metrics) = 0;
};

}  // namespace penstock
