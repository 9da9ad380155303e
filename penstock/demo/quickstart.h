#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "penstock/base/base.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

struct QuickstartOptions {
  std::string job = "examples/positions/job.json";
  std::string database = "build/quickstart/positions.sqlite";
  std::string output = "build/quickstart/runs";
  std::int64_t rows = 4030;
  double step_ms = 75;
  double round_trip_ms = 1;
  std::int64_t epochs = 2;  ///< of the comparison; the model's are the job's
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> note;
  std::function<void(const Progress&)> progress;
  /// Training failed. What was measured before it is returned all the same.
  std::function<void(const Error&)> failed;
};

/// The positions example before and after, on the simulated accelerator: a
/// query per sample on the training thread, then Penstock; with a simulated
/// database latency, and without. Then the job's model is trained on what the
/// machine has, where the trainer is available, and compared with the weighted
/// centroid of the receivers. Every number is measured. Returns {"runs": [...],
/// "model": {...} or null, "why_no_model", "table": text}.
Json quickstart(const QuickstartOptions& options);

}  // namespace penstock
