#pragma once

#include <vector>

#include "penstock/advisor/pipeline.h"
#include "penstock/advisor/verdict.h"

namespace penstock {

/// What single changes to a pipeline would give: each is simulated with the
/// numbers that were measured, beside the pipeline unchanged and with the same
/// draws, so that what remains is what the change does.
struct Trials {
  std::vector<Action> actions;  ///< each gains kSmallestGain or more
  /// If the order were not restored; 0 where it is not.
  double without_order = 0;
  /// If the slowest stage took half the time.
  double faster_stage = 0;
};
Trials try_changes(Pipeline now, std::size_t slowest);

/// How many times as many places, and what these gain.
struct DeeperQueues {
  int times = 1;
  double gain = 0;
};
/// By the same means: the fewest that are as good as `most` places in every
/// queue, or what it has where that is more.
DeeperQueues deep_enough(Pipeline now, int most);
/// Makes them so.
void deepen_queues(Pipeline& pipeline, int times, int most);

}  // namespace penstock
