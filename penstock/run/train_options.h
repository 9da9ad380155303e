#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "penstock/advisor/advisor.h"

namespace penstock {

/// How a run talks while it goes on. All may be empty.
struct TrainListener {
  std::function<void(const std::string& line)> note;  ///< plans, summaries
  std::function<void(const Progress&)> progress;      ///< at most 10 per second
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
  /// With `resume`: steps of data to leave out, or below 0 to take again (see
  /// skip_steps()). The run takes as many steps as it would without. Its folder
  /// can be resumed, and `latest` leads to it, once its rows are open.
  std::int64_t skip = 0;
};

}  // namespace penstock
