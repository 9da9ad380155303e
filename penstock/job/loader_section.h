#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/loader.h"

namespace penstock {

/// The `loader` section of a job.
struct LoaderSection {
  LoaderOptions options;  ///< of both sides: see loader_options()
  /// "batch_size" is "auto": as many rows as fit, found by trials of the model.
  /// It is a number before a job is run.
  bool find_batch_size = false;
  std::optional<int> workers;  ///< missing: as many as `cpus`
  /// Processors that the threads of the loader may use; missing: those that
  /// we may use.
  std::optional<int> cpus;
  bool tune = true;          ///< what the job leaves open, while it runs
  std::optional<Tail> tail;  ///< missing: drop for train, exact for val
  std::optional<std::int64_t> val_batch_size;  ///< missing: batch_size
  std::string cache = "auto";
  Preparing preparing = Preparing::automatic;
  Drawing drawing;  ///< "weights" or "balance"
  /// Of several sources; missing: "stop".
  std::optional<Exhausted> exhausted;
  double limit_share = 1;       ///< "limit": of each side...
  std::int64_t limit_rows = 0;  ///< ...or rows; 0: all
  TierBudgets budgets;          ///< of `auto`
  std::string cache_dir;        ///< of the stores of `disk`; empty: the user's
};

}  // namespace penstock
