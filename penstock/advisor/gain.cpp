#include "penstock/advisor/gain.h"

#include <algorithm>
#include <cmath>

#include "penstock/advisor/pools.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/advisor/window_rates.h"

namespace penstock {
namespace {

/// Samples that the stages were made to work for. Those of steps that were not
/// timed, as of the first one, took processors, too. Not the stages' items:
/// these are documents where a sample is a bin of them.
double samples_made(const Snapshot& window) {
  return static_cast<double>(
      std::max({std::int64_t{1}, window.parts.samples, window.samples}));
}

}  // namespace

double gain(const Snapshot& window, const std::vector<StageNumbers>& stages) {
  // What the loop does between two steps stays.
  return gain(window, stages,
              seconds(window.parts.compute) + seconds(window.parts.host));
}

// An upper bound: the rate is at most that of the loop, of the slowest pool,
// and of all processors over what a sample takes of them.
double gain(const Snapshot& window, const std::vector<StageNumbers>& stages,
            double loop_s) {
  const double of_loop = static_cast<double>(window.parts.samples) / loop_s;
  const double of_processors =
      window.limits.cpus /
      std::max(1e-12, processor_s_per_sample(window, stages));
  return std::min({of_loop, slowest_rate(stages), of_processors}) /
             rate_in(window) -
         1;
}

double processor_s_per_sample(const Snapshot& window,
                              const std::vector<StageNumbers>& stages) {
  return processor_s(stages) / samples_made(window);
}

double processors_needed(const Snapshot& window) {
  return step_rate(window) * processor_s_per_sample(window, window.stages);
}

std::optional<Action> worth_it(Action action) {
  if (!(action.predicted_gain >= kSmallestGain) ||
      std::isinf(action.predicted_gain))
    return std::nullopt;
  return action;
}

}  // namespace penstock
