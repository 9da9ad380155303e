#include "penstock/advisor/water_filling.h"

#include <algorithm>

#include "penstock/advisor/window_rates.h"

namespace penstock {
namespace {

double processors(const std::vector<PlannedPool>& planned, double steps,
                  bool all_busy) {
  double pace = steps;
  for (const PlannedPool& pool : planned) pace = std::min(pace, pool.rate());
  double sum = 0;
  for (const PlannedPool& pool : planned)
    sum += pool.cpu * (all_busy
                           ? pool.threads
                           : std::min<double>(pool.threads, pace / pool.each));
  return sum;
}

}  // namespace

// The rate of the whole is that of its slowest pool, so only a thread for that
// one can raise it. Each round adds one thread, and the budget ends the rounds.
std::string fill_up(std::vector<PlannedPool>& pools, const TunerBudget& budget,
                    double steps, double ahead, bool all_busy) {
  int threads = 0;
  for (const PlannedPool& pool : pools) threads += pool.threads;
  while (!pools.empty()) {
    PlannedPool& lowest =
        *std::ranges::min_element(pools, {}, &PlannedPool::rate);
    if (lowest.rate() >= ahead * steps) break;
    ++lowest.threads;
    const bool room =
        processors(pools, steps, all_busy) <= budget.cpus + 1e-9 &&
        threads < budget.threads;
    if (lowest.threads > lowest.most || !room) {
      --lowest.threads;
      return "'" + lowest.name + "' gives " + rounded(lowest.rate()) +
             " samples/s with " + std::to_string(lowest.threads) +
             (lowest.threads == 1 ? " thread" : " threads") +
             (room ? ", the most it may have"
                   : ", and all " + rounded(budget.cpus) +
                         " processors of the budget are used");
    }
    ++threads;
  }
  return {};
}

}  // namespace penstock
