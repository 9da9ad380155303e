#pragma once

#include <string>
#include <vector>

namespace penstock {

/// What the knobs may use in all, at any instant.
struct TunerBudget {
  double cpus = 1;   ///< of threads that are all busy
  int threads = 64;  ///< whether or not they use a processor
};

/// One pool of threads while its number is looked for.
struct PlannedPool {
  std::string name;
  double each = 0;  ///< samples per second of one thread
  double cpu = 0;   ///< processors that it uses while it is busy
  int threads = 1;
  int most = 1;  ///< `threads` where it may not be changed

  double rate() const { return each * threads; }
};

/// From the threads that they have on, gives the slowest pool one more, until
/// each is `ahead` times as fast as the steps or nothing is left of the budget.
/// `all_busy`: threads count when all are busy, else at the pace of the slowest
/// of them or of the steps. Says why it went no further; empty where it needed
/// not.
std::string fill_up(std::vector<PlannedPool>& pools, const TunerBudget& budget,
                    double steps, double ahead, bool all_busy);

}  // namespace penstock
