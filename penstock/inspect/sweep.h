#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "penstock/job/job.h"

namespace penstock {

/// Which settings of a job are tried, and for how long.
struct Sweep {
  std::vector<int> workers;   ///< empty: 0, 1, 2, 4, ... up to the processors
  std::vector<int> prefetch;  ///< empty: 0, 2, 4 and 8 batches
  double seconds = 1;         ///< of steps, each time, after those to warm up
  int repeats = 3;            ///< of every setting, one after the other
  bool ceiling_only = false;  ///< try no setting
  /// Set by another thread to end by an error for which is_stop() holds.
  const std::atomic<bool>* stop = nullptr;
  /// Called with a line for people. May be empty.
  std::function<void(const std::string& line)> progress;
};

/// Measures a job under other `loader.workers` and `loader.prefetch`, with its
/// model where it has one. Batches and their order are the same under all.
///
/// Gives {"settings": [{"loader.workers", "loader.prefetch", "rate": {"median",
/// "min", "max"}, "au"}], "present", "best": places in that list, "gain",
/// "rounds", "ceiling", "best_of_ceiling", "cumulative": [{"what", "rate"}]}.
/// Rates are samples per second. `ceiling` is the rate of the steps alone, over
/// one batch that is there already, or that of a setting where it was higher:
/// the most that any work on the input can give; null where steps take no time.
/// `gain` is that of the best over the present ones, by their medians. With a
/// gain of less than 2 %, or than rounds of the same settings differ by, the
/// present ones are the best.
///
/// The rows are read once. Writes no run. Throws Error(request) for numbers
/// that make no sense, code bench.numbers, and what reading, preparing and
/// training throw.
Json sweep_settings(const Job& job, const Sweep& sweep);

}  // namespace penstock
