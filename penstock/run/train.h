#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "penstock/advisor/advisor.h"
#include "penstock/job/job.h"
#include "penstock/run/stepper.h"

namespace penstock {

/// How a run talks while it goes on. All may be empty.
struct TrainListener {
  std::function<void(const std::string& line)> note;  ///< plans, summaries
  std::function<void(const Progress&)> progress;      ///< at most 10 per second
};

/// What a run leaves behind.
struct TrainResult {
  Json report;               ///< also written to report.json
  bool interrupted = false;  ///< stopped by `stop`; state saved
};

struct TrainOptions {
  /// Set (by a signal handler, say) to end after the step at hand.
  const std::atomic<bool>* stop = nullptr;
  /// Set it to have a checkpoint saved after the step at hand; the run sets it
  /// back and goes on.
  std::atomic<bool>* save = nullptr;
  TrainListener listener;
  /// A run folder to go on from: position and model are taken from it, and
  /// the statistics are applied, not fitted anew. The rows must be the same.
  std::string resume;
};

/// Runs a job: prepares its data set, takes its steps, writes its run folder.
TrainResult train(const Job& job, const TrainOptions& options);

/// The job of an earlier run, for `--resume`. Throws Error(request) when the
/// folder is no run of ours or is damaged.
Job job_of_run(const std::string& run_folder);

}  // namespace penstock
