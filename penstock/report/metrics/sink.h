#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

/// Numbers by their names, in the order in which they are shown; NaN: not
/// known.
using Metrics = std::vector<std::pair<std::string, double>>;

/// By the system's clock, UTC.
double seconds_since_1970();

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
