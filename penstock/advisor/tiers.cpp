#include "penstock/advisor/advisor.h"
#include "penstock/loader/loader.h"

namespace penstock {

std::vector<TierCapacity> tiers_of(const TierPlan& plan) {
  std::vector<TierCapacity> tiers;
  std::int64_t rows = 0;
  for (const TierRows& place : plan.places) rows += place.rows;
  for (const TierPlan::Line& line : plan.lines) {
    // The device's memory would be the host's again: no faster than `ram`.
    bool same_as_ram =
        line.tier == Tier::device && plan.limits.device_is_host && !line.chosen;
    if (same_as_ram) continue;
    tiers.push_back({.name = std::string(name_of(line.tier)),
                     .fits = line.fits,
                     .in_use = line.chosen,
                     .holds = line.chosen && rows > 0
                                  ? static_cast<double>(line.rows) /
                                        static_cast<double>(rows)
                                  : 0,
                     .why = line.why,
                     .lacks_budget = line.lacks_budget});
  }
  return tiers;
}

}  // namespace penstock
