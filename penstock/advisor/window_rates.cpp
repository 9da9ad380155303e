#include "penstock/advisor/window_rates.h"

#include <algorithm>
#include <limits>

#include "penstock/advisor/pipeline.h"
#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr double kAtWork = 0.8;  // of the time of a pool's threads

}  // namespace

double rate_in(const Snapshot& window) {
  return static_cast<double>(window.parts.samples) / seconds(window.parts.wall);
}

double step_rate(const Snapshot& window) {
  if (!window.parts.steps_take_time())
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(window.parts.samples) /
         seconds(window.parts.compute);
}

double waits_in(const Snapshot& window) {
  return seconds(window.parts.wait_data) / seconds(window.parts.wall);
}

const std::string& name_of(const Pool& pool) {
  return pool.name.empty() ? pool.stages.front().name : pool.name;
}

double pool_rate(const Snapshot& window, const std::string& name) {
  for (const Pool& pool : pools_of(window.stages))
    if (name_of(pool) == name) return pool.rate();
  return 0;
}

double cpu_share(const Pool& pool) {
  double wall = 0;
  for (const StageNumbers& stage : pool.stages)
    wall += seconds(stage.busy_wall);
  return wall <= 0 ? 0 : std::min(1.0, processor_s(pool.stages) / wall);
}

bool threads_lack_work(const Snapshot& window) {
  if (pipeline_of(window)) return false;
  return std::ranges::none_of(pools_of(window.stages), [&](const Pool& pool) {
    double busy = 0;
    for (const StageNumbers& stage : pool.stages)
      busy += seconds(stage.busy_wall);
    return busy >
           kAtWork * seconds(window.parts.wall) * std::max(1, pool.workers);
  });
}

std::optional<double> requests_per_batch(const Snapshot& window) {
  std::int64_t calls = 0;
  for (const StageNumbers& stage : window.stages)
    calls = std::max(calls, stage.calls);
  const double of_batch =
      static_cast<double>(calls) / static_cast<double>(window.parts.steps);
  // Batches are read ahead: a window may hold fewer reads than it took batches.
  if (of_batch < 0.5 || pipeline_of(window)) return std::nullopt;
  return std::max(1.0, of_batch);
}

std::string rounded(double number) {
  return formatted(number < 100 ? "%.1f" : "%.0f", number);
}

}  // namespace penstock
