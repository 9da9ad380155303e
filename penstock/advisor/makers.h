#pragma once

#include <optional>

#include "penstock/advisor/fetch_window.h"

namespace penstock {

/// What those that make a window's items (workers, or the loop itself) need of
/// processors, as shares of their time.
struct MakersUse {
  double ran = 0;
  double queued = 0;  ///< they could run, and waited for a processor
  double runnable() const { return ran + queued; }
};

/// None where that was not measured.
std::optional<MakersUse> use_of_makers(const FetchWindow& window);

/// Of the time in which the loop could run, the share in which it had a
/// processor; where there are workers of which that is known, and a processor
/// for each, theirs counts, too: a loop that computes little only shows how
/// soon it is woken.
double share_of_processors(const FetchWindow& window);

/// Seconds that so many workers take for work of which one waits for `waits`
/// and computes for `computes`, where they share `cpus` processors: it is their
/// own number that some of them now wait for one.
double seconds_of_workers(int workers, double waits, double computes, int cpus);

}  // namespace penstock
