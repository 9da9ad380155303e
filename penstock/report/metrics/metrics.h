#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "penstock/job/job.h"
#include "penstock/report/metrics/sink.h"
#include "penstock/session/session.h"

namespace penstock {

/// A run's numbers for other programs, to where its job's `output` section
/// says. One that cannot be written ends no run: the log reports it, once. One
/// thread.
class MetricSinks {
 public:
  MetricSinks(const OutputSection& output, const std::filesystem::path& folder);

  bool any() const { return !sinks_.empty(); }
  /// A piece of the time line: the loss, the rate, AU and the other parts as
  /// shares of the time, and what was used. `takes_time`: that steps do.
  void add(std::int64_t step, const TimelineNumbers::Point& point,
           bool takes_time);
  /// An epoch, as an entry of `epochs` in a report.
  void add_epoch(std::int64_t step, const Json& epoch);

 private:
  template <class Call>
  void each(Call call);
  std::vector<std::unique_ptr<MetricSink>> sinks_;
};

/// The numbers of a piece of the time line by name; NaN: not known.
Metrics metrics_of(const TimelineNumbers::Point& point, bool takes_time);
/// The numbers of an epoch by name, {"cpus": {"max": 2}} as "cpus_max".
Metrics metrics_of(const Json& epoch);

}  // namespace penstock
