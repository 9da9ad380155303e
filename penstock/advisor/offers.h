#pragma once

#include <optional>
#include <string>

#include "penstock/advisor/pools.h"
#include "penstock/advisor/verdict.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// The tiers in use and the fastest one above the slowest of them that has
/// room, or would have it with a larger budget; null where that was not
/// measured or is not so.
struct TierChoice {
  std::string used;                      // that hold rows: "device, ram"
  const TierCapacity* faster = nullptr;  // than the slowest of these: holds all
  std::string no_room;  // why none of the faster ones can be had
};
TierChoice tiers_in(const Snapshot& window);

// What to set of a loader, each with its gain and its cost; missing where it
// does not apply, or gains too little. `slowest`: the pool that limits.

/// Rows that are kept need not be read again; rows that are read by the batch
/// wait for one answer per batch.
std::optional<Action> keep_rows(const Snapshot& window, const TierChoice& tiers,
                                const Pool& slowest);
/// Rows that are on the device need no copy.
std::optional<Action> keep_on_device(const Snapshot& window,
                                     const TierChoice& tiers);
/// The device needs its memory for something else (see SpilledMemory).
std::optional<Action> keep_off_device(const Snapshot& window);
/// Not where these wait for each other.
std::optional<Action> add_threads(const Snapshot& window, const Pool& slowest);
/// Where readers wait, and one more would only have a batch read in smaller
/// parts: that, and what to try. No gain is predicted of larger parts, which
/// take longer to come unless it is the way that takes the time. Else empty.
std::string instead_of_reader(const Snapshot& window, const Pool& slowest);
/// More batches that lie ready outlast a longer burst.
std::optional<Action> add_batches_ahead(const Snapshot& window);

}  // namespace penstock
