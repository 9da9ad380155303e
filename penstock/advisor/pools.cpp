#include "penstock/advisor/pools.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

/// 0 where it was not measured.
double seconds_per_row(const StageNumbers& stage) {
  if (stage.items == 0) return 0;
  return seconds(stage.busy_wall) / static_cast<double>(stage.items);
}

double seconds_per_row(const Pool& pool) {
  double sum = 0;
  for (const StageNumbers& stage : pool.stages) sum += seconds_per_row(stage);
  return sum;
}

}  // namespace

double Pool::rate() const {
  double busy = seconds_per_row(*this);
  return busy > 0 ? std::max(1, workers) / busy : kEndless;
}

const StageNumbers& Pool::busiest() const {
  return *std::ranges::max_element(
      stages, {}, [](const StageNumbers& s) { return seconds_per_row(s); });
}

double Pool::share_of(const StageNumbers& stage) const {
  double busy = seconds_per_row(*this);
  return busy > 0 ? seconds_per_row(stage) / busy : 0;
}

std::vector<Pool> pools_of(const std::vector<StageNumbers>& stages) {
  std::vector<Pool> pools;
  for (const StageNumbers& stage : stages) {
    auto pool = stage.pool.empty()
                    ? pools.end()
                    : std::ranges::find(pools, stage.pool, &Pool::name);
    if (pool == pools.end()) pool = pools.insert(pool, {.name = stage.pool});
    pool->workers = std::max(pool->workers, stage.workers);
    pool->stages.push_back(stage);
  }
  return pools;
}

double processor_s(std::span<const StageNumbers> stages) {
  double cpu = 0;
  for (const StageNumbers& stage : stages) cpu += seconds(stage.busy_cpu);
  return cpu;
}

double slowest_rate(const std::vector<StageNumbers>& stages) {
  double rate = kEndless;
  for (const Pool& pool : pools_of(stages)) rate = std::min(rate, pool.rate());
  return rate;
}

}  // namespace penstock
