#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "penstock/monitor/monitor.h"
#include "penstock/run/job.h"

namespace penstock {

/// What a run measured, to be reported.
struct RunNumbers {
  std::string folder;
  Nanoseconds started{0};
  Nanoseconds first_step{0};
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::map<std::int64_t, std::int64_t> samples_by_epoch;
  std::map<std::int64_t, StepParts> by_epoch;
  Snapshot snapshot;

  /// Samples of the steps that were timed: all but the first step's.
  std::int64_t samples_timed() const;
};

/// The first thing a run folder holds.
Json run_json(const Job& job, const Device& device, const std::string& resumed);

/// The document of report.json.
Json report_json(const RunNumbers& run, const Job& job, const Dataset& dataset,
                 const Device& device);

}  // namespace penstock
